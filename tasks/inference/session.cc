#include "tasks/inference/session.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/ops/rows.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "tasks/batcher.h"

namespace cloze {
namespace {

constexpr int64_t kBatchTokens = 4096;
constexpr int64_t kMostKept = 16 << 20;  // numbers that wait for their turn

// Hands results on in the order of their indices, which come in another.
class InOrder {
 public:
  InOrder(int64_t begin, int64_t end, absl::FunctionRef<void(int64_t, ConstMat)> f)
      : begin_(begin), next_(begin), kept_(end - begin), sizes_(end - begin), f_(f) {}

  void Put(int64_t i, ConstMat m) {
    if (i > next_) {
      for (int64_t r = 0; r < m.rows; ++r)
        kept_[i - begin_].insert(kept_[i - begin_].end(), m.f32(r), m.f32(r) + m.cols);
      sizes_[i - begin_] = {m.rows, m.cols, true};
      return;
    }
    f_(next_++, m);
    for (; next_ - begin_ < kept_.size() && sizes_[next_ - begin_].there; ++next_) {
      const Size& size = sizes_[next_ - begin_];
      std::vector<float> values = std::move(kept_[next_ - begin_]);
      f_(next_, View(static_cast<const float*>(values.data()), size.rows, size.cols));
    }
  }

 private:
  struct Size {
    int64_t rows = 0, cols = 0;
    bool there = false;
  };
  const int64_t begin_;
  int64_t next_;
  std::vector<std::vector<float>> kept_;
  std::vector<Size> sizes_;
  absl::FunctionRef<void(int64_t, ConstMat)> f_;
};

// f(begin, end) for consecutive queries that together have at most kMostKept numbers as results,
// size(i) each, or are but one.
absl::Status ForEachWindow(int64_t queries, absl::FunctionRef<int64_t(int64_t)> size,
    absl::FunctionRef<absl::Status(int64_t, int64_t)> f) {
  for (int64_t begin = 0, end; begin < queries; begin = end) {
    int64_t sum = size(begin);
    for (end = begin + 1; end < queries && sum + size(end) <= kMostKept; ++end) sum += size(end);
    RETURN_IF_ERROR(f(begin, end));
  }
  return absl::OkStatus();
}

// Adapters of one base, which all have the same kind of head.
absl::StatusOr<std::vector<Adapter>> OpenAdapters(
    const std::vector<NamedAdapter>& named, const ModelConfig& base) {
  std::vector<Adapter> adapters;
  for (const NamedAdapter& adapter : named) {
    ASSIGN_OR_RETURN(Adapter opened, Adapter::Open(adapter.folder, base));
    adapters.push_back(std::move(opened));
    const ModelConfig &first = adapters.front().config(), &last = adapters.back().config();
    if (last.head == first.head && last.pooler == first.pooler && last.crf == first.crf) continue;
    return Error(Exit::kMismatch, QuotePath(adapter.folder), " has another kind of head than ",
        QuotePath(named.front().folder), "; one command takes adapters of one kind");
  }
  return adapters;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(
    const std::string& folder, DType compute, std::vector<NamedAdapter> adapters) {
  if (!IsDirectory(folder))
    return Error(Exit::kNoInput, QuotePath(folder), ": no such model folder");
  auto session = std::unique_ptr<Session>(new Session());
  session->folder_ = folder;
  session->compute_ = compute;
  std::string base = folder;
  if (IsAdapter(folder)) {
    ASSIGN_OR_RETURN(base, BaseOf(folder));
    adapters.insert(adapters.begin(), {"", folder});
  }
  if (adapters.size() == 1 && adapters[0].name.empty()) {
    ASSIGN_OR_RETURN(session->model_, LoadModel(base, adapters[0].folder));
  } else {
    RETURN_IF_ERROR(session->LoadBeside(base, std::move(adapters)));
  }
  RETURN_IF_ERROR(session->LoadTokenizer(base));
  return session;
}

// The base with all adapters beside it.
absl::Status Session::LoadBeside(const std::string& base, std::vector<NamedAdapter> named) {
  for (size_t i = 0; i < named.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (named[i].name != named[j].name) continue;
      return Error(Exit::kUsage,
          named[i].name.empty() ? absl::StrCat("both ", QuotePath(named[j].folder), " and ",
                                      QuotePath(named[i].folder), " are adapters without a name")
                                : "two adapters are named ",
          Quote(named[i].name));
    }
    if (named[i].name.empty()) default_ = static_cast<int>(i);
  }
  ASSIGN_OR_RETURN(ModelConfig config, LoadConfig(base));
  ASSIGN_OR_RETURN(const std::vector<Adapter> adapters, OpenAdapters(named, config));
  for (const Adapter& adapter : adapters) configs_.push_back(adapter.config());
  if (!adapters.empty() &&
      (config.head != configs_[0].head || config.pooler != configs_[0].pooler)) {
    config = configs_[0];
    base_usable_ = false;
  }
  adapters_ = std::move(named);
  model_ = std::make_unique<Model>(config, adapters);
  return LoadBase(base, adapters);
}

absl::Status Session::LoadBase(const std::string& base, const std::vector<Adapter>& adapters) {
  std::vector<std::string> fresh, except;
  if (!base_usable_) {
    for (const Param& param : adapters[0].whole()) except.push_back(param.name);
  }
  const ReadWords words = adapters.empty()
                              ? ReadWords::kWhenUsed
                              : ReadWords::kNow;  // adapters check all weights of their base
  RETURN_IF_ERROR(model_->Load(base, 0, &fresh, except, words));
  const ModelConfig& config = model_->config();
  if (adapters.empty() && !fresh.empty()) {
    return Error(Exit::kMismatch, QuotePath(base), ": the weights lack ", fresh.front(),
        ", a part of the head that config.json describes");
  }
  base_usable_ &= fresh.empty();
  fresh.insert(fresh.end(), except.begin(), except.end());
  const ParamHashes hashes =
      adapters.empty() ? ParamHashes() : HashParams(model_->params(), config);
  for (size_t i = 0; i < adapters.size(); ++i) {
    for (const std::string& name : fresh) {
      const ParamId id = model_->params().Find(name);
      if (model_->Replaced(i, id) == id)
        return Error(Exit::kMismatch, QuotePath(adapters[i].folder()), ": lacks ", name,
            ", and so does its base");
    }
    RETURN_IF_ERROR(adapters[i].CheckBase(hashes));
    RETURN_IF_ERROR(adapters[i].Load(static_cast<int>(i), &model_->params()));
  }
  return absl::OkStatus();
}

absl::Status Session::LoadTokenizer(const std::string& base) {
  auto tokenizer = cloze::LoadTokenizer(folder_, true);
  if (ExitOf(tokenizer.status()) == Exit::kNoInput && base != folder_)
    tokenizer = cloze::LoadTokenizer(base, true);
  if (tokenizer.ok()) {
    tokenizer_ = *std::move(tokenizer);
    if (tokenizer_->vocab_size() > config().vocab) {
      return Error(Exit::kMismatch, QuotePath(folder_), ": the tokenizer has ",
          tokenizer_->vocab_size(), " tokens, the model ", config().vocab);
    }
  } else if (ExitOf(tokenizer.status()) == Exit::kNoInput) {
    no_tokenizer_ = Annotate(
        tokenizer.status(), "texts need a tokenizer (token ids would not: --input-format ids)");
  } else {
    return tokenizer.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Session::AdapterNamed(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < adapters_.size(); ++i) {
    if (adapters_[i].name == name) return static_cast<int>(i);
    if (!adapters_[i].name.empty()) names.push_back(adapters_[i].name);
  }
  const std::string known = names.empty() ? "none was given, as --adapter NAME=DIR"
                                          : absl::StrCat("one of ", absl::StrJoin(names, ", "));
  if (!name.empty())
    return Error(Exit::kData, "\"adapter\": unknown adapter ", Quote(name), DidYouMean(name, names),
        "; ", known);
  if (!base_usable_)
    return Error(Exit::kData, "no \"adapter\" is named, and the base alone has no such head; ",
        known, " expected");
  return -1;
}

absl::StatusOr<const Tokenizer*> Session::TokenizerOr() const {
  if (tokenizer_ == nullptr) return no_tokenizer_;
  return tokenizer_.get();
}

absl::StatusOr<ConstMat> Session::WordEmbeddings() {
  RETURN_IF_ERROR(model_->ReadAllEmbeddings());
  return model().params().value(model().encoder().word_embeddings());
}

absl::Status Session::Check(absl::Span<const Query> queries) const {
  for (const Query& query : queries) {
    if (query.adapter == kDefaultAdapter) RETURN_IF_ERROR(AdapterNamed("").status());
    const int64_t length = query.ids.size();
    if (length == 0 || length > max_tokens()) {
      return Error(
          Exit::kData, "a sequence of ", length, " tokens; the model takes 1 to ", max_tokens());
    }
    for (const int32_t id : query.ids) {
      if (id < 0 || id >= config().vocab)
        return Error(
            Exit::kData, "token id ", id, " is not below the vocabulary's ", config().vocab);
    }
  }
  return absl::OkStatus();
}

absl::Status Session::ForEachBatch(absl::Span<const Query> queries, bool by_length,
    absl::FunctionRef<void(absl::Span<const int64_t>, const Pass&)> f) {
  std::vector<int64_t> order(queries.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int64_t i) {
    return std::pair(Resolve(queries[i].adapter), by_length ? queries[i].ids.size() : 0);
  };
  std::stable_sort(
      order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
  for (size_t first = 0, last; first < order.size(); first = last) {
    Batch batch;
    const int adapter = Resolve(queries[order[first]].adapter);
    for (last = first; last < order.size(); ++last) {
      const Query& query = queries[order[last]];
      const bool full =
          last > first && batch.tokens() + static_cast<int64_t>(query.ids.size()) > kBatchTokens;
      if (full || Resolve(query.adapter) != adapter) break;
      AddExample(query, /*number=*/0, &batch);
    }
    batch.Pad();
    RETURN_IF_ERROR(model_->ReadEmbeddings(batch.ids));
    model_->arena().Reset();
    f(absl::MakeSpan(order).subspan(first, last - first),
        model_->NewPass(batch, compute_, false, 0, adapters_.empty() ? 0 : adapter));
  }
  return absl::OkStatus();
}

absl::Status Session::Logits(
    absl::Span<const Query> queries, absl::FunctionRef<void(int64_t, ConstMat)> f) {
  RETURN_IF_ERROR(Check(queries));
  const bool tokens = config().head == HeadKind::kMaskedLm;
  const auto size = [&](int64_t i) -> int64_t {
    const Query& query = queries[i];
    return query.rows.size() * (tokens ? config().vocab : config(query.adapter).labels.size());
  };
  return ForEachWindow(queries.size(), size, [&](int64_t begin, int64_t end) {
    InOrder results(begin, end, f);
    return ForEachBatch(queries.subspan(begin, end - begin), true,
        [&](absl::Span<const int64_t> members, const Pass& pass) {
          const Mat hidden = model_->encoder().Infer(pass);
          const Mat logits = model_->head().Logits(pass, hidden);
          int64_t row = 0;
          for (const int64_t i : members) {
            const int64_t rows = queries[begin + i].rows.size();
            results.Put(begin + i, Rows(ConstMat(logits), row, rows));
            row += rows;
          }
        });
  });
}

absl::Status Session::Hidden(absl::Span<const Query> queries, bool only_last,
    absl::FunctionRef<void(int64_t, int, ConstMat)> f) {
  RETURN_IF_ERROR(Check(queries));
  const auto size = [&](int64_t i) -> int64_t {
    return only_last ? queries[i].ids.size() * config().hidden : 0;
  };
  return ForEachWindow(queries.size(), size, [&](int64_t begin, int64_t end) {
    const auto last = [&](int64_t i, ConstMat hidden) { f(i, config().layers, hidden); };
    InOrder results(begin, end, last);
    return ForEachBatch(queries.subspan(begin, end - begin), only_last,
        [&](absl::Span<const int64_t> members, const Pass& pass) {
          model_->encoder().Observe(pass, [&](int layer, ConstMat hidden) {
            if (only_last && layer != config().layers) return;
            const Arena::Mark mark = pass.arena.mark();
            Mat f32 = pass.arena.New(hidden.rows, hidden.cols, DType::kF32);
            Convert(hidden, f32);
            for (size_t m = 0; m < members.size(); ++m) {
              const int64_t first = pass.batch.cu_seqlens[m], i = begin + members[m];
              const ConstMat mine =
                  Rows(ConstMat(f32), first, pass.batch.cu_seqlens[m + 1] - first);
              only_last ? results.Put(i, mine) : f(i, layer, mine);
            }
            pass.arena.Rewind(mark);
          });
        });
  });
}

absl::StatusOr<std::vector<std::vector<float>>> Session::Attention(const Query& query) {
  RETURN_IF_ERROR(Check({&query, 1}));
  const int64_t n = query.ids.size();
  std::vector<std::vector<float>> probs(
      config().layers, std::vector<float>(config().heads * n * n));
  std::vector<float*> layers;
  for (std::vector<float>& layer : probs) layers.push_back(layer.data());
  const auto pass = [&](absl::Span<const int64_t>, const Pass& pass) {
    model_->encoder().Observe(
        pass, [](int, ConstMat) {}, layers);
  };
  RETURN_IF_ERROR(ForEachBatch({&query, 1}, false, pass));
  return probs;
}

}  // namespace cloze
