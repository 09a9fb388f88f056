// Causal language modelling: predicts each token of unlabelled text from those before it.
#include "tasks/language_model.h"

namespace cloze {
namespace {

class CausalLm : public LanguageModelTask {
 public:
  explicit CausalLm(const CausalLmSpec& spec)
      : LanguageModelTask("causal_lm", HeadKind::kCausalLm, "generate", spec.max_tokens()) {}

  absl::Status CheckModel(const LoadedSpec& loaded, const ModelConfig& config) const override {
    if (config.encoder != nullptr) return Task::CheckModel(loaded, config);
    if (!config.attention.causal)
      return SpecError(loaded, name(),
          "the model is an encoder: expected model.encoder.architecture GPT2 or a gpt2 folder");
    return CheckLength(loaded, "max_tokens", max_tokens(), config);
  }

  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {}));
    return BuildSequences(data, {.ends_only = true}, tokenizer, options);
  }

  void PrepareExample(uint64_t, double, Example* example) const override {
    example->rows.clear();
    for (size_t i = 1; i < example->ids.size(); ++i)
      example->rows.push_back(static_cast<int32_t>(i - 1));
    example->labels.assign(example->ids.begin() + 1, example->ids.end());
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override { return rows; }
  Example Sample(std::vector<int32_t> ids) const override { return Prompt(std::move(ids)); }

  // Returns a prompt: what the tokenizer puts before a text, and the text.
  absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts*) const override {
    const bool ids = record.kind == Record::Kind::kIds;
    if (!ids && record.kind != Record::Kind::kText)
      return Error(Exit::kData, "a prompt of words or a pair: expected a text or ids");
    if (ids ? record.ids.empty() : record.text.empty())
      return Error(Exit::kData, "an empty prompt: expected at least one token");
    std::vector<int32_t> prompt = record.ids;
    if (!ids) {
      ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
      prompt = tokenizer->Encode(record.text).ids;
      const std::vector<TemplateItem>& single = tokenizer->data().templates.single;
      for (auto item = single.rbegin(); item->text < 0; ++item) prompt.pop_back();
      if (prompt.empty())
        return Error(Exit::kData, "a prompt without tokens: expected at least one token");
    }
    if (std::ssize(prompt) >= input.longest) {
      return Error(Exit::kData, "a prompt of ", prompt.size(), " tokens: expected at most ",
          input.longest - 1, ", as the model has ", input.longest, " positions");
    }
    return std::vector<Example>{Prompt(std::move(prompt))};
  }

 private:
  // The next token comes from the last row.
  static Example Prompt(std::vector<int32_t> ids) {
    const int64_t last = std::ssize(ids) - 1;
    return WithRow(std::move(ids), last);
  }
};

}  // namespace

std::unique_ptr<Task> MakeCausalLm(const CausalLmSpec& spec) {
  return std::make_unique<CausalLm>(spec);
}

}  // namespace cloze
