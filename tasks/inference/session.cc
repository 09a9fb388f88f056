#include "tasks/inference/session.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/ops/rows.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "tasks/packer.h"

namespace cloze {
namespace {

constexpr int64_t kBatchTokens = 4096;
constexpr int64_t kMaxKept = 16 << 20;  // numbers that wait for their turn

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

// True if the rows ascend and, with the pieces of their words, are rows of the sequence.
bool HasSoundRows(const Example& e) {
  const int64_t length = e.ids.size();
  bool sound = std::is_sorted(e.rows.begin(), e.rows.end()) &&
               (!e.averages || e.further.size() == e.rows.size());
  for (size_t i = 0; sound && i < e.rows.size(); ++i) {
    const int64_t further = e.averages ? e.further[i] : 0;
    sound = e.rows[i] >= 0 && further >= 0 && e.rows[i] + further < length;
  }
  return sound;
}

// kMismatch for an encoder-decoder, kData for a query that the model cannot take.
absl::Status CheckQueries(
    const Session& session, absl::Span<const Query> queries, bool needs_rows) {
  const ModelConfig& config = session.config();
  if (config.encoder != nullptr) {
    return Error(Exit::kMismatch, QuotePath(session.folder()),
        ": is an encoder-decoder: expected an encoder (`cloze generate` runs this model)");
  }
  for (const Query& query : queries) {
    if (query.adapter == kDefaultAdapter) RETURN_IF_ERROR(session.AdapterNamed("").status());
    const int64_t length = query.ids.size();
    if (length == 0 || length > config.max_tokens()) {
      return Error(
          Exit::kData, "a sequence of ", length, " tokens: expected 1 to ", config.max_tokens());
    }
    for (const int32_t id : query.ids) {
      if (id < 0 || id >= config.vocab)
        return Error(Exit::kData, "token id ", id, " is not below the vocabulary's ", config.vocab);
    }
    if (query.second < 1 || query.second > length) {
      return Error(
          Exit::kData, "token types: ", query.second, " tokens of type 0, expected 1 to ", length);
    }
    if (!HasSoundRows(query) || (needs_rows && query.rows.empty())) {
      return Error(Exit::kData, "rows: expected ascending indexes of the sequence's ", length,
          " tokens, at least one");
    }
  }
  return absl::OkStatus();
}

// Calls f(members, pass) for each batch of queries. `members` are the indices of its queries, which
// have the same adapter; `by_length` sorts queries by length before they are divided.
absl::Status ForEachBatch(Session& session, absl::Span<const Query> queries, bool by_length,
    absl::FunctionRef<void(absl::Span<const int64_t>, const Pass&)> f) {
  std::vector<int64_t> order(queries.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int64_t i) {
    return std::pair(
        session.PassAdapter(queries[i].adapter), by_length ? queries[i].ids.size() : 0);
  };
  std::stable_sort(
      order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
  size_t begin = 0, end = 0;  // of the batch, in `order`
  const auto adapter = [&](size_t i) { return session.PassAdapter(queries[order[i]].adapter); };
  Packer packer(kBatchTokens, [&](const Batch& batch) -> absl::Status {
    RETURN_IF_ERROR(session.model().ReadEmbeddings(batch.ids));
    session.model().arena().Reset();
    f(absl::MakeSpan(order).subspan(begin, end - begin),
        session.model().NewPass(batch, session.compute(), false, 0, adapter(begin)));
    begin = end;
    return absl::OkStatus();
  });
  for (; end < order.size(); ++end) {
    if (end > begin && adapter(end) != adapter(begin)) RETURN_IF_ERROR(packer.Finish());
    RETURN_IF_ERROR(packer.Add(queries[order[end]], /*number=*/0));
  }
  return packer.Finish();
}

// Calls f(i, result) in the order of the queries, although batches are in the order of lengths.
// run(pass, keep) computes a batch and passes its results to `keep`: for each query those of all
// rows if `hidden`, else those of the wanted rows.
absl::Status InOrder(Session& session, absl::Span<const Query> queries, bool hidden,
    absl::FunctionRef<void(const Pass&, absl::FunctionRef<void(ConstMat)>)> run,
    absl::FunctionRef<void(int64_t, ConstMat)> f) {
  const auto rows = [&](int64_t i) { return (hidden ? queries[i].ids : queries[i].rows).size(); };
  const auto size = [&](int64_t i) -> int64_t {
    return rows(i) *
           (hidden ? session.config().hidden : session.config(queries[i].adapter).logits());
  };
  for (int64_t begin = 0, end, n = queries.size(); begin < n; begin = end) {
    int64_t sum = size(begin);
    for (end = begin + 1; end < n && sum + size(end) <= kMaxKept; ++end) sum += size(end);
    std::vector<std::vector<float>> kept(end - begin);
    std::vector<int64_t> columns(end - begin);
    const auto keep = [&](absl::Span<const int64_t> members, const Pass& pass) {
      run(pass, [&](ConstMat results) {
        int64_t row = 0;
        for (const int64_t i : members) {
          columns[i] = results.cols;
          for (const int64_t last = row + rows(begin + i); row < last; ++row)
            kept[i].insert(kept[i].end(), results.f32(row), results.f32(row) + results.cols);
        }
      });
    };
    RETURN_IF_ERROR(ForEachBatch(session, queries.subspan(begin, end - begin), true, keep));
    for (int64_t i = 0; i < end - begin; ++i) {
      const std::vector<float> values = std::move(kept[i]);
      if (!AllFinite(values)) return NotFinite();
      f(begin + i, View(values.data(), rows(begin + i), columns[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

NamedAdapter NamedAdapter::Parse(const std::string& text) {
  const size_t equals = text.find('=');
  const bool named = equals != std::string::npos && text.find('/') > equals && !IsAdapter(text);
  return {named ? text.substr(0, equals) : "", named ? text.substr(equals + 1) : text};
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const std::string& folder, DType compute,
    std::vector<NamedAdapter> adapters, std::optional<bool> int8) {
  if (!IsDirectory(folder)) return NoSuchModel(folder);
  auto session = std::unique_ptr<Session>(new Session());
  session->folder_ = folder;
  session->compute_ = compute;
  ASSIGN_OR_RETURN(const std::string base, BaseFolder(folder));
  if (IsAdapter(folder)) adapters.insert(adapters.begin(), {"", folder});
  if (adapters.size() == 1 && adapters[0].name.empty()) {
    session->folder_ = adapters[0].folder;
    ASSIGN_OR_RETURN(session->model_, LoadModel(base, adapters[0].folder));
    if (int8.value_or(session->model_->config().int8)) session->UseInt8();
  } else {
    RETURN_IF_ERROR(session->LoadWithAdapters(base, std::move(adapters), int8));
  }
  auto& tokenizer = session->tokenizer_;
  tokenizer = LoadFirstTokenizer({session->folder_, base}, true, session->config().vocab);
  if (ExitOf(tokenizer.status()) != Exit::kNoInput) {
    RETURN_IF_ERROR(tokenizer.status());
    return session;
  }
  tokenizer = Error(Exit::kNoInput, tokenizer.status().message(),
      " (without a tokenizer, only token ids can be read and written)");
  return session;
}

// The base with all adapters beside it.
absl::Status Session::LoadWithAdapters(
    const std::string& base, std::vector<NamedAdapter> named, std::optional<bool> int8) {
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
      (config.head != configs_[0].head || config.pooler != configs_[0].pooler ||
          config.crf != configs_[0].crf)) {
    config = configs_[0];
    base_usable_ = false;
  }
  adapters_ = std::move(named);
  model_ = std::make_unique<Model>(config, adapters);
  if (int8.value_or(model_->config().int8)) UseInt8();
  return LoadBase(base, adapters);
}

absl::Status Session::LoadBase(const std::string& base, const std::vector<Adapter>& adapters) {
  std::vector<std::string> fresh, except;
  if (!base_usable_) {
    for (const Param& param : adapters[0].whole()) {
      if (param.layer >= model_->config().layers) except.push_back(param.name);  // of the head
    }
  }
  const ModelConfig& config = model_->config();
  // Adapters check all weights of their base.
  const LoadMode mode = adapters.empty() ? LoadMode::kPasses : LoadMode::kAll;
  RETURN_IF_ERROR(model_->Load(base, 0, &fresh, except, mode));
  if (adapters.empty() && !fresh.empty()) {
    return Error(Exit::kMismatch, QuotePath(base), ": the weights lack ", fresh.front(),
        ", a part of the head that config.json describes");
  }
  base_usable_ &= fresh.empty();
  fresh.insert(fresh.end(), except.begin(), except.end());
  const ParamHashes hashes = adapters.empty() ? ParamHashes() : HashBase(model_->params(), config);
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

absl::Status NotFinite() {
  return Error(Exit::kData, "the model's results are not finite numbers: its weights are too ",
      "large for the computation (`cloze verify` checks a model)");
}

absl::StatusOr<int> Session::AdapterNamed(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < adapters_.size(); ++i) {
    if (adapters_[i].name == name) return static_cast<int>(i);
    if (!adapters_[i].name.empty()) names.push_back(adapters_[i].name);
  }
  const std::string known = names.empty() ? "no \"adapter\", because no adapter has a name"
                                          : absl::StrCat("one of ", absl::StrJoin(names, ", "));
  if (!name.empty())
    return Error(Exit::kData, "\"adapter\": unknown adapter ", Quote(name), ": expected ", known,
        DidYouMean(name, names));
  if (!base_usable_)
    return Error(Exit::kData,
        "\"adapter\": none is named, and the base alone has no such head: expected ", known);
  return -1;
}

absl::StatusOr<const Tokenizer*> Session::TokenizerOr() const {
  RETURN_IF_ERROR(tokenizer_.status());
  return tokenizer_->get();
}

absl::Status Session::Logits(
    absl::Span<const Query> queries, absl::FunctionRef<void(int64_t, ConstMat)> f) {
  RETURN_IF_ERROR(CheckQueries(*this, queries, /*needs_rows=*/true));
  const auto run = [&](const Pass& pass, absl::FunctionRef<void(ConstMat)> keep) {
    keep(model_->head().Logits(pass, model_->backbone().Infer(pass)));
  };
  return InOrder(*this, queries, false, run, f);
}

absl::Status Session::Hidden(absl::Span<const Query> queries, bool only_last,
    absl::FunctionRef<void(int64_t, int, ConstMat)> f) {
  RETURN_IF_ERROR(CheckQueries(*this, queries, false));
  const int last = config().layers;
  // Calls g(layer, hidden [rows, hidden] f32) for the wanted layers.
  const auto observe = [&](const Pass& pass, absl::FunctionRef<void(int, ConstMat)> g) {
    model_->backbone().encoder()->Observe(pass, [&](int layer, ConstMat hidden) {
      if (only_last && layer != last) return;
      const Arena::Mark mark = pass.arena.mark();
      const Mat f32 = pass.arena.New(hidden.rows, hidden.cols, DType::kF32);
      Convert(hidden, f32);
      g(layer, f32);
      pass.arena.Rewind(mark);
    });
  };
  if (only_last) {
    const auto run = [&](const Pass& pass, absl::FunctionRef<void(ConstMat)> keep) {
      observe(pass, [&](int, ConstMat hidden) { keep(hidden); });
    };
    return InOrder(
        *this, queries, true, run, [&](int64_t i, ConstMat hidden) { f(i, last, hidden); });
  }
  const auto observe_all = [&](absl::Span<const int64_t> members, const Pass& pass) {
    observe(pass, [&](int layer, ConstMat hidden) {
      const std::vector<int32_t>& begins = pass.batch.cu_seqlens;
      for (size_t m = 0; m < members.size(); ++m)
        f(members[m], layer, Rows(hidden, begins[m], begins[m + 1] - begins[m]));
    });
  };
  return ForEachBatch(*this, queries, false, observe_all);
}

std::vector<float> Pooled(ConstMat hidden, absl::string_view pool, bool normalize) {
  std::vector<float> vector(hidden.f32(0), hidden.f32(0) + hidden.cols);  // of the first token
  for (int64_t c = 0; c < hidden.cols && pool != "class" && pool != "cls"; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < hidden.rows; ++r) {
      sum += hidden.f32(r)[c];
      if (pool == "max") vector[c] = std::max(vector[c], hidden.f32(r)[c]);
    }
    if (pool == "mean") vector[c] = static_cast<float>(sum / hidden.rows);
  }
  if (normalize) ScaleToUnitLength(absl::MakeSpan(vector));
  return vector;
}

double Dot(absl::Span<const float> a, absl::Span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

void ScaleToUnitLength(absl::Span<float> vector) {
  const double squares = Dot(vector, vector);
  if (squares == 0) return;
  for (float& x : vector) x = static_cast<float>(x / std::sqrt(squares));
}

absl::StatusOr<std::vector<std::vector<float>>> Session::Attention(const Query& query) {
  RETURN_IF_ERROR(CheckQueries(*this, {&query, 1}, false));
  const int64_t n = query.ids.size();
  std::vector<std::vector<float>> probs(
      config().layers, std::vector<float>(config().heads * n * n));
  std::vector<float*> layers;
  for (std::vector<float>& layer : probs) layers.push_back(layer.data());
  const auto pass = [&](absl::Span<const int64_t>, const Pass& pass) {
    model_->backbone().encoder()->Observe(
        pass, [](int, ConstMat) {}, layers);
  };
  RETURN_IF_ERROR(ForEachBatch(*this, {&query, 1}, false, pass));
  if (!absl::c_all_of(probs, [](const auto& layer) { return AllFinite(layer); }))
    return NotFinite();
  return probs;
}

}  // namespace cloze
