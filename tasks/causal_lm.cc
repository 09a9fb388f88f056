// Causal language modelling: predicts each token of unlabelled text from those before it.
#include <algorithm>

#include "tasks/language_model.h"

namespace cloze {
namespace {

class CausalLm : public Task {
 public:
  explicit CausalLm(const CausalLmSpec& spec)
      : Task("causal_lm", HeadKind::kCausalLm, "generate"), spec_(spec) {}

  int32_t max_tokens() const override { return spec_.max_tokens(); }
  bool pretrains() const override { return true; }
  std::vector<Metric> metrics() const override { return LanguageModelMetrics(); }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = HeadKind::kCausalLm;
  }
  void Restore(const ModelConfig&, JsonFields&, int64_t longest) override {
    spec_.set_max_tokens(std::min<int64_t>(longest, spec_.max_tokens()));
  }

  absl::Status CheckData(const DataSpec& data) const override {
    return CheckFirst<DocumentPiece>(data, Labels::kIgnored);
  }
  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {}));
    return OpenOrBuild(data, StoreKindOf("causal_lm", tokenizer, {}, spec_.max_tokens(), true),
        tokenizer, options, [&](ExampleStoreWriter* writer, DataStats* stats) {
          return FillWithDocuments(data, {.max_tokens = spec_.max_tokens(), .ends_only = true},
              tokenizer, options, writer, stats);
        });
  }

  void PrepareExample(uint64_t, double, Example* example) const override {
    example->rows.clear();
    for (size_t i = 1; i < example->ids.size(); ++i)
      example->rows.push_back(static_cast<int32_t>(i - 1));
    example->labels.assign(example->ids.begin() + 1, example->ids.end());
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override {
    return TokenEntropy(train, *tokenizer());
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override { return rows; }
  int64_t SampleRow(int64_t tokens) const override { return tokens - 1; }

  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats& stats, const DecodeOptions&) const override {
    return NewLanguageModelEvaluation(*this, model, stats);
  }

  // Returns a prompt: what the tokenizer puts before a text, and the text.
  absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts*) const override {
    const bool ids = record.kind == Record::Kind::kIds;
    if (!ids && record.kind != Record::Kind::kText)
      return Error(Exit::kData, "a prompt of words or a pair: expected a text or ids");
    if (ids ? record.ids.empty() : record.text.empty())
      return Error(Exit::kData, "an empty prompt: expected at least one token");
    Example example;
    example.ids = record.ids;
    if (!ids) {
      ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
      example.ids = tokenizer->Encode(record.text).ids;
      const std::vector<TemplateItem>& single = tokenizer->data().templates.single;
      for (auto item = single.rbegin(); item->text < 0; ++item) example.ids.pop_back();
      if (example.ids.empty())
        return Error(Exit::kData, "a prompt without tokens: expected at least one token");
    }
    const auto size = static_cast<int32_t>(example.ids.size());
    if (size >= input.longest) {
      return Error(Exit::kData, "a prompt of ", size, " tokens: expected at most ",
          input.longest - 1, ", as the model has ", input.longest, " positions");
    }
    example.second = size;
    example.rows = {size - 1};
    return std::vector<Example>{std::move(example)};
  }

 private:
  CausalLmSpec spec_;
};

}  // namespace

std::unique_ptr<Task> MakeCausalLm(const CausalLmSpec& spec) {
  return std::make_unique<CausalLm>(spec);
}

}  // namespace cloze
