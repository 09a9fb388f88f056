#include "tools/library/engine.h"

#include <pthread.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/system.h"
#include "core/base/threads.h"
#include "encoder/folder/adapter.h"
#include "tasks/compute_type.h"

namespace cloze {
namespace {

thread_local int t_depth = 0;  // calls of this thread

// Calls hold it for reading. Waiting writers go first: a fork waits only for calls that have begun.
// The child of a fork gets a new one: other threads may have been at the old.
pthread_rwlock_t* Gate() {
  static constexpr pthread_rwlock_t kOpen = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
  static pthread_rwlock_t gate = kOpen;
  [[maybe_unused]] static const int registered =
      ::pthread_atfork([] { ::pthread_rwlock_wrlock(Gate()); },
          [] { ::pthread_rwlock_unlock(Gate()); }, [] { gate = kOpen; });
  return &gate;
}

std::atomic<int> engines = 0;  // of the process

// Returns the path without links; `path` itself if there is no such file.
std::string Canonical(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::canonical(path, error);
  return error ? path : canonical.string();
}

// Appends what changes when a file of the folder, or of its modules (1_Pooling), does. Logs, which
// grow during a run, do not count.
void AddFiles(const std::string& folder, std::string* state, bool modules = true) {
  for (const std::string& name : ListDirectory(folder).value_or(std::vector<std::string>())) {
    const std::string path = JoinPath(folder, name);
    struct stat file;
    if (absl::EndsWith(name, ".jsonl") || ::stat(path.c_str(), &file) != 0) continue;
    if (S_ISREG(file.st_mode))
      absl::StrAppend(state, name, "\n", file.st_dev, " ", file.st_ino, " ", file.st_size, " ",
          file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec, "\n");
    if (S_ISDIR(file.st_mode) && modules && absl::StrContains(name, "_"))
      AddFiles(path, state, /*modules=*/false);
  }
}

// An engine that was opened.
struct Opened {
  std::string files;  // their state when the engine was opened
  std::weak_ptr<Engine> engine;
};

absl::Status CheckOptions(const EngineOptions& options) {
  static constexpr absl::string_view kComputes[] = {"auto", "f32", "bf16", "int8"};
  if (!absl::c_linear_search(kComputes, options.compute))
    return Error(Exit::kUsage, "compute: ", Quote(options.compute),
        ": expected \"auto\", \"f32\", \"bf16\" or \"int8\"");
  if (options.folder.find('\0') != std::string::npos)
    return Error(Exit::kUsage, "folder: has a zero byte");
  return CheckCpu();
}

// Calls loop(records, put), which calls put(i, result), always OK, in order. If the loop fails as a
// whole, the records without a result get it, or an error, by themselves.
template <typename T, typename Loop>
Results<T> ForEachAlone(absl::Span<const Record> records, Loop loop) {
  Results<T> results(records.size(), absl::UnknownError(""));
  size_t done = 0;
  absl::Status status = loop(records, [&](size_t i, absl::StatusOr<T> result) {
    results[i] = std::move(result);
    done = i + 1;
    return absl::OkStatus();
  });
  if (status.ok()) return results;
  for (size_t i = done; i < records.size(); ++i) {
    const auto put = [&](size_t, absl::StatusOr<T> result) {
      results[i] = std::move(result);
      return absl::OkStatus();
    };
    if (records.size() > 1) status = loop(records.subspan(i, 1), put);
    if (!status.ok()) results[i] = status;
  }
  return results;
}

// Wrong records are answered in their places.
RecordSource Each() { return {.name = {}, .keep_going = true, .keep_all = true}; }

absl::Status CannotDo(const absl::Status& why) { return Error(Exit::kUsage, why.message()); }

}  // namespace

Call::Call() {
  if (t_depth++ == 0) ::pthread_rwlock_rdlock(Gate());
}

Call::~Call() {
  if (--t_depth == 0) ::pthread_rwlock_unlock(Gate());
}

Engine::Engine() { ++engines; }

Engine::~Engine() {
  const Call call;
  if (--engines == 0) EndThreads();
}

void Engine::UseThreads(int threads) {
  ::pthread_rwlock_wrlock(Gate());
  SetThreads(threads);
  ::pthread_rwlock_unlock(Gate());
}

absl::StatusOr<std::shared_ptr<Engine>> Engine::Open(const EngineOptions& options) {
  const Call call;
  RETURN_IF_ERROR(CheckOptions(options));
  std::string key = absl::StrCat(options.compute, "\n", Canonical(options.folder)), files;
  AddFiles(options.folder, &files);
  AddFiles(BaseFolder(options.folder).value_or(options.folder), &files);
  for (const NamedAdapter& adapter : options.adapters) {
    absl::StrAppend(&key, "\n", adapter.name, "=", Canonical(adapter.folder));
    AddFiles(adapter.folder, &files);
  }
  static std::mutex mutex;  // of `opened`, by the options
  static auto& opened = *new std::map<std::string, Opened>;
  const std::lock_guard lock(mutex);
  std::erase_if(opened, [](const auto& entry) { return entry.second.engine.expired(); });
  if (const auto found = opened.find(key); found != opened.end() && found->second.files == files) {
    if (std::shared_ptr<Engine> engine = found->second.engine.lock()) return engine;
  }
  std::shared_ptr<Engine> engine(new Engine);
  RETURN_IF_ERROR(engine->Load(options));
  opened[key] = {std::move(files), engine};
  return engine;
}

absl::Status Engine::Load(const EngineOptions& options) {
  const std::optional<bool> int8 = WantsInt8(options.compute);
  ASSIGN_OR_RETURN(session_,
      Session::Open(options.folder, InferenceType(options.compute), options.adapters, int8));
  compute_ = int8.value_or(session_->model().config().int8) ? "int8" : NameOf(session_->compute());
  predictor_ = NewPredictor(top_);
  vectors_ = VectorsOf(options.folder);
  scorer_ = RecordScorer::Create(session_.get());
  kind_ = predictor_.ok()                          ? (*predictor_)->task().name()
          : vectors_.ok() && vectors_->has_value() ? "sentence_embedding"
                                                   : "encoder";
  max_tokens_ = LongestText(config(), vectors_.value_or(std::nullopt));
  if (predictor_.ok() && kind_ != "masked_lm") max_tokens_ = (*predictor_)->task().max_tokens();
  dimensions_ = ColumnsOf(FolderPooling(vectors_.value_or(std::nullopt)), config().hidden);
  for (const NamedAdapter& adapter : options.adapters)
    if (!adapter.name.empty()) adapters_.push_back(adapter.name);
  if (kind_ == "token_tagging" && session_->has_adapters_beside())
    return Error(Exit::kUsage, "adapters: a tagger takes one adapter, without a name");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Predictor>> Engine::NewPredictor(int top) const {
  const bool fills = config().head == HeadKind::kMaskedLm;  // `fill-mask` answers no empty text
  return Predictor::Create(*session_, {.source = Each(), .decode = {.top = top}, .empty = !fills});
}

absl::StatusOr<Results<OrderedJson>> Engine::Answer(absl::Span<const Record> records, int top) {
  const Call call;
  const std::lock_guard lock(mutex_);
  if (top < 1 || top > 1000) return Error(Exit::kUsage, "top: ", top, ": expected 1 to 1000");
  if (!predictor_.ok()) return CannotDo(predictor_.status());
  const std::string& command = (*predictor_)->task().command();
  if (command == "generate")
    return Error(Exit::kUsage, "a model of ", kind_, " answers with `cloze generate`");
  if (top != top_) {
    ASSIGN_OR_RETURN(predictor_, NewPredictor(top));
    top_ = top;
  }
  return ForEachAlone<OrderedJson>(records,
      [&](absl::Span<const Record> some, auto put) { return (*predictor_)->AnswerOr(some, put); });
}

absl::StatusOr<const TextPooling*> Engine::PoolingFor(const EmbedOptions& options) {
  const std::string& prompt = options.prompt;
  if (!prompt.empty() && prompt != "query" && prompt != "document")
    return Error(Exit::kUsage, "prompt: ", Quote(prompt), ": expected \"query\" or \"document\"");
  const bool folder = !options.pool.has_value() && !options.tokens;
  TextPooling& how = poolings_[folder ? prompt : "pool"];
  bool normalize = false;
  if (folder) {
    RETURN_IF_ERROR(vectors_.status());
    if (how.pool.empty()) {
      ASSIGN_OR_RETURN(how, FolderPooling(*vectors_, prompt));
    }
    normalize = vectors_->has_value() && (*vectors_)->normalize;
  } else if (!prompt.empty()) {
    return Error(Exit::kUsage, "prompt: is of the folder's own vectors: expected no pool with it");
  } else {
    how.pool = options.tokens ? "none" : *options.pool;
    static constexpr absl::string_view kPools[] = {"cls", "class", "mean", "max"};
    if (!options.tokens && !absl::c_linear_search(kPools, how.pool))
      return Error(
          Exit::kUsage, "pool: ", Quote(how.pool), ": expected \"cls\", \"mean\" or \"max\"");
    if (options.tokens && (options.pool.has_value() || options.normalize.value_or(false)))
      return Error(Exit::kUsage, "tokens: expected no pool and no normalize with it");
  }
  how.normalize = options.normalize.value_or(normalize);
  const int64_t most = ColumnsOf(how, config().hidden);
  if (options.dimensions < 0 || options.dimensions > most)
    return Error(Exit::kUsage, "dimensions: ", options.dimensions, ": expected 1 to ", most,
        ", or 0 for all");
  return &how;
}

absl::StatusOr<Vectors> Engine::Embed(
    absl::Span<const Record> records, const EmbedOptions& options) {
  const Call call;
  const std::lock_guard lock(mutex_);
  ASSIGN_OR_RETURN(const TextPooling* const pooling, PoolingFor(options));
  const TextPooling& how = *pooling;
  if (config().encoder != nullptr || config().attention.causal)
    return Error(Exit::kUsage, "a model of ", kind_, " has no vectors: expected an encoder");
  Vectors vectors;
  vectors.dimensions =
      options.dimensions > 0 ? options.dimensions : ColumnsOf(how, config().hidden);
  const auto rows_of = [&](ConstMat hidden) {
    if (how.pool != "none") return TextVector(hidden, how, vectors.dimensions);
    std::vector<float> rows;
    for (int64_t r = 0; r < hidden.rows; ++r)
      rows.insert(rows.end(), hidden.f32(r), hidden.f32(r) + vectors.dimensions);
    return rows;
  };
  CutCounts cut;
  const auto loop = [&](absl::Span<const Record> some, auto put) {
    return ForEachHidden(*session_, some, Each(), how.vectors, /*only_last=*/true, &cut,
        [&](size_t i, const absl::Status& wrong, int, ConstMat hidden) {
          return wrong.ok() ? put(i, rows_of(hidden)) : put(i, wrong);
        });
  };
  vectors.begin.push_back(0);
  for (const auto& rows : ForEachAlone<std::vector<float>>(records, loop)) {
    vectors.status.push_back(rows.status());
    if (rows.ok()) vectors.values.insert(vectors.values.end(), rows->begin(), rows->end());
    vectors.begin.push_back(std::ssize(vectors.values) / vectors.dimensions);
  }
  return vectors;
}

absl::StatusOr<Results<OrderedJson>> Engine::Score(absl::Span<const Record> records, bool tokens) {
  const Call call;
  const std::lock_guard lock(mutex_);
  if (!scorer_.ok()) return CannotDo(scorer_.status());
  return ForEachAlone<OrderedJson>(records, [&](absl::Span<const Record> some, auto put) {
    return scorer_->Score(some, Each(), tokens, put);
  });
}

absl::StatusOr<Encoding> Engine::Tokenize(const Record& record) const {
  const Call call;
  RETURN_IF_ERROR(record.wrong);
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session_->TokenizerOr());
  return EncodeWhole(*tokenizer, record);
}

std::string Engine::Token(int32_t id) const {
  const auto tokenizer = session_->TokenizerOr();
  if (!tokenizer.ok() || id < 0 || id >= (*tokenizer)->vocab_size()) return "";
  return (*tokenizer)->token(id);
}

}  // namespace cloze
