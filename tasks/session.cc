#include "tasks/session.h"

#include <algorithm>
#include <cmath>

#include "core/base/file.h"
#include "encoder/model_folder.h"

namespace cloze {
namespace {

constexpr int64_t kBatchTokens = 4096;

absl::string_view UseOf(HeadKind head) {
  switch (head) {
    case HeadKind::kNone: return "no head: only `cloze encode` can use it, or fine-tune it";
    case HeadKind::kMaskedLm: return "a masked-LM head: use `cloze fill-mask`, or fine-tune it";
    case HeadKind::kSequenceClassification: return "a text classifier: use `cloze predict`";
    case HeadKind::kTokenTagging: return "a tagger: use `cloze tag`";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const std::string& folder, DType compute) {
  if (!IsDirectory(folder)) return Error(Exit::kNoInput, absl::StrCat(QuotePath(folder), ": no such model folder"));
  auto session = std::unique_ptr<Session>(new Session());
  session->folder_ = folder;
  session->compute_ = compute;
  ASSIGN_OR_RETURN(const ModelConfig config, LoadConfig(folder));
  session->model_ = std::make_unique<Model>(config, false);
  std::vector<std::string> fresh;
  RETURN_IF_ERROR(session->model_->Load(folder, 0, &fresh));
  if (!fresh.empty()) {
    return Error(Exit::kMismatch,
                 absl::StrCat(QuotePath(folder), ": config.json describes ", UseOf(config.head), ", but the weights lack ", fresh.front()));
  }
  auto tokenizer = Tokenizer::Load(folder, true);
  if (tokenizer.ok()) {
    session->tokenizer_ = *std::move(tokenizer);
    if (session->tokenizer_->vocab_size() > config.vocab) {
      return Error(Exit::kMismatch, absl::StrCat(QuotePath(folder), ": the tokenizer has ", session->tokenizer_->vocab_size(),
                                                 " tokens, the model ", config.vocab));
    }
  } else if (ExitOf(tokenizer.status()) == Exit::kNoInput) {
    session->no_tokenizer_ = Annotate(tokenizer.status(), "texts need a tokenizer (token ids would not: --input-format ids)");
  } else {
    return tokenizer.status();
  }
  return session;
}

absl::Status Session::Require(HeadKind head) const {
  if (config().head == head) return absl::OkStatus();
  return Error(Exit::kMismatch, absl::StrCat(QuotePath(folder_), " has ", UseOf(config().head)));
}

absl::StatusOr<const Tokenizer*> Session::TokenizerOr() const {
  if (tokenizer_ == nullptr) return no_tokenizer_;
  return tokenizer_.get();
}

absl::Status Session::Check(absl::Span<const Query> queries) const {
  for (const Query& query : queries) {
    const int64_t length = query.ids.size();
    if (length == 0 || length > max_tokens()) {
      return Error(Exit::kData, absl::StrCat("a sequence of ", length, " tokens; the model takes 1 to ", max_tokens()));
    }
    for (const int32_t id : query.ids) {
      if (id < 0 || id >= config().vocab)
        return Error(Exit::kData, absl::StrCat("token id ", id, " is not below the vocabulary's ", config().vocab));
    }
  }
  return absl::OkStatus();
}

void Session::ForEachBatch(absl::Span<const Query> queries, absl::FunctionRef<void(int64_t, int64_t, const Step&)> f) {
  for (size_t first = 0, last; first < queries.size(); first = last) {
    Batch batch;
    for (last = first; last < queries.size(); ++last) {
      const Query& query = queries[last];
      if (last > first && batch.tokens() + static_cast<int64_t>(query.ids.size()) > kBatchTokens) break;
      for (const int32_t row : query.rows) batch.rows.push_back(static_cast<int32_t>(batch.tokens()) + row);
      batch.Add(query.ids, query.second, 0);
    }
    batch.Pad();
    model_->arena().Reset();
    f(first, last, model_->NewStep(batch, compute_));
  }
}

absl::Status Session::Logits(absl::Span<const Query> queries, absl::FunctionRef<void(int64_t, ConstMat)> f) {
  RETURN_IF_ERROR(Check(queries));
  ForEachBatch(queries, [&](int64_t first, int64_t last, const Step& step) {
    const Mat hidden = model_->encoder().Infer(step, [](int, ConstMat) {});
    const Mat logits = model_->head().Logits(step, hidden, step.batch.rows);
    int64_t row = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t rows = queries[i].rows.size();
      f(i, Rows(ConstMat(logits), row, rows));
      row += rows;
    }
  });
  return absl::OkStatus();
}

absl::Status Session::Hidden(absl::Span<const Query> queries, bool only_last, absl::FunctionRef<void(int64_t, int, ConstMat)> f) {
  RETURN_IF_ERROR(Check(queries));
  ForEachBatch(queries, [&](int64_t first, int64_t last, const Step& step) {
    model_->encoder().Infer(step, [&](int layer, ConstMat hidden) {
      if (only_last && layer != config().layers) return;
      const Arena::Mark mark = step.arena.mark();
      Mat f32 = step.arena.New(hidden.rows, hidden.cols, DType::kF32);
      Convert(hidden, f32);
      for (int64_t i = first; i < last; ++i) {
        const int64_t begin = step.batch.cu_seqlens[i - first];
        f(i, layer, Rows(ConstMat(f32), begin, step.batch.cu_seqlens[i - first + 1] - begin));
      }
      step.arena.Rewind(mark);
    });
  });
  return absl::OkStatus();
}

void Softmax(float* x, int64_t n) {
  const float max = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - max);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(x[i] / sum);
}

Query QueryOf(const Tokenizer& tokenizer, Encoding encoding, int64_t max_tokens, int64_t* cut) {
  const int64_t dropped = tokenizer.Truncate(&encoding, max_tokens);
  if (cut != nullptr) *cut = dropped;
  Query query;
  query.second = std::find(encoding.types.begin(), encoding.types.end(), 1) - encoding.types.begin();
  query.ids = std::move(encoding.ids);
  return query;
}

}  // namespace cloze
