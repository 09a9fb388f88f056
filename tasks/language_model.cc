#include "tasks/language_model.h"

#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "tasks/probabilities.h"

namespace cloze {
namespace {

struct DocumentCutter {
  struct Ids {
    std::vector<int32_t> ids;
    int64_t invalid = 0;
  };

  // Adds a piece of a document; false when there are enough examples.
  absl::StatusOr<bool> Add(const DocumentPiece& piece, const Ids& ids) {
    if (piece.first) {
      ++stats.documents;
      bytes = tokens = written = 0;
    }
    bytes += piece.text.size();
    tokens += ids.ids.size();
    stats.invalid_bytes += ids.invalid;
    pending.insert(pending.end(), ids.ids.begin(), ids.ids.end());
    int64_t done = 0;  // of `pending`
    while (const int64_t size = NextSize(pending.size() - done, piece.last)) {
      RETURN_IF_ERROR(Write(absl::MakeSpan(pending).subspan(done, size),
          piece.last && done + size == std::ssize(pending)));
      done += size;
      if (max_examples == 0 || writer->size() < max_examples) continue;
      stats.bytes += static_cast<int64_t>(static_cast<double>(bytes) * written / tokens);
      return false;
    }
    pending.erase(pending.begin(), pending.begin() + done);
    if (piece.last) (tokens > 0 ? stats.bytes : stats.empty_documents) += tokens > 0 ? bytes : 1;
    return true;
  }

  // Tokens of the next sequence when `left` remain; 0 if more of the document are needed first.
  int64_t NextSize(int64_t left, bool complete) const {
    if (left >= 2 * capacity) return capacity;
    if (!complete) return 0;
    return left > capacity ? (left + 1) / 2 : left;
  }

  absl::Status Write(absl::Span<const int32_t> sequence, bool last) {
    const bool first = written == 0;
    written += sequence.size();
    stats.text_tokens += sequence.size();
    stats.unknown_tokens += std::count(sequence.begin(), sequence.end(), special.unk);
    example.ids.assign(first || !rules.ends_only ? 1 : 0, special.cls);
    example.ids.insert(example.ids.end(), sequence.begin(), sequence.end());
    if (rules.append_sep && (last || !rules.ends_only)) example.ids.push_back(special.sep);
    example.second = static_cast<int32_t>(example.ids.size());
    return writer->Add(example);
  }

  const SpecialIds& special;
  const DocumentRules rules;
  const int64_t capacity;  // tokens of a sequence that are not special
  const int64_t max_examples;
  ExampleStoreWriter* writer;
  DataStats& stats;
  Example example = {};
  std::vector<int32_t> pending = {};
  int64_t bytes = 0, tokens = 0, written = 0;  // of this document
};

class LanguageModelEvaluation : public Evaluation {
 public:
  LanguageModelEvaluation(const Task& task, const Model& model, const DataStats& stats)
      : task_(task), model_(model) {
    // A decoder predicts all tokens but the first one of each document.
    const bool causal = task.head() == HeadKind::kCausalLm;
    const int64_t documents = stats.documents - stats.empty_documents;
    metric_.AddText(causal ? stats.tokens - documents : stats.text_tokens, stats.bytes);
  }
  absl::StatusOr<Output> Run(const Pass& pass, absl::Span<const Example>) const override {
    const LossSum sum = task_.RunPass(model_, pass, 0);
    return Output{.losses = {{sum.loss, sum.correct, std::ssize(pass.batch.rows)}}};
  }
  void Add(Output output, absl::Span<const Example>) override {
    const Output::Loss& loss = output.losses[0];
    metric_.Add(loss.loss, loss.correct, loss.targets);
  }
  MetricResults Results() override {
    MetricResults results = metric_.Results();
    if (task_.head() == HeadKind::kCausalLm) results.tables.front().first = "predicted_tokens";
    return results;
  }

 private:
  const Task& task_;
  const Model& model_;
  MaskedLmMetric metric_;
};

}  // namespace

absl::StatusOr<BuiltStore> LanguageModelTask::BuildSequences(const DataSpec& data,
    const DocumentRules& rules, const Tokenizer& tokenizer, const BuildOptions& options) const {
  const auto encode = [&](const DocumentPiece& piece, DocumentCutter::Ids* ids) {
    tokenizer.AppendIds(piece.text, &ids->ids);
    ids->invalid = CountInvalidUtf8(piece.text);
  };
  const auto fill = [&](ExampleStoreWriter* writer, DataStats* stats) -> absl::Status {
    ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(data));
    DocumentCutter cutter{tokenizer.special(), rules, max_tokens_ - 1 - rules.append_sep,
        data.max_examples(), writer, *stats};
    const auto read = [&](DocumentPiece* piece, int64_t* bytes) {
      absl::StatusOr<bool> more = reader.Next(piece);
      *bytes += piece->text.size();
      return more;
    };
    const auto consume = [&](const DocumentPiece& piece, const DocumentCutter::Ids& ids) {
      return cutter.Add(piece, ids);
    };
    return RunPipeline<DocumentPiece, DocumentCutter::Ids>(
        read, encode, consume, Ticker(reader, options));
  };
  return OpenOrBuild(data, StoreKindOf(name(), tokenizer, {}, max_tokens_, rules.append_sep),
      tokenizer, options, fill);
}

absl::StatusOr<double> LanguageModelTask::ChanceLoss(const ExampleStore& train) const {
  std::vector<double> counts(tokenizer()->vocab_size());
  RETURN_IF_ERROR(ForSomeExamples(train, [&](const Example& example) {
    for (const int32_t id : example.ids) counts[id] += !tokenizer()->is_special(id);
  }));
  return Entropy(counts);
}

std::vector<Metric> LanguageModelTask::metrics() const {
  return {{"loss", Better::kSmaller}, {"perplexity", Better::kSmaller},
      {"accuracy", Better::kLarger}, {"bits_per_byte", Better::kSmaller}};
}

std::unique_ptr<Evaluation> LanguageModelTask::NewEvaluation(
    const Model& model, const DataStats& stats, const DecodeOptions&) const {
  return std::make_unique<LanguageModelEvaluation>(*this, model, stats);
}

OrderedJson LikeliestTokens(const Tokenizer& tokenizer, ConstMat logits, int64_t row, int64_t top) {
  std::vector<float> scores(logits.f32(row), logits.f32(row) + logits.cols);
  Softmax(scores.data(), scores.size());
  std::vector<int32_t> order(tokenizer.vocab_size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<int64_t>(top, order.size());
  std::partial_sort(order.begin(), end, order.end(),
      [&](int32_t a, int32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  OrderedJson fillings = OrderedJson::array();
  for (auto id = order.begin(); id != end; ++id)
    fillings.push_back(
        {{"token", tokenizer.TokenText(*id)}, {"id", *id}, {"score", Decimal(scores[*id])}});
  return fillings;
}

}  // namespace cloze
