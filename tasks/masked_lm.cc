// Masked language modelling: predicts hidden tokens of unlabelled text; answers fill-mask.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "tasks/language_model.h"
#include "tasks/masker.h"
#include "tasks/replaced_tokens.h"

namespace cloze {
namespace {

// Replaces "<mask>" and "[MASK]" by the model's own mask token.
std::string WithOwnMask(std::string text, const std::string& own) {
  for (const std::string other : {"<mask>", "[MASK]"}) {
    if (other == own) continue;
    for (size_t at = 0; (at = text.find(other, at)) != std::string::npos; at += own.size())
      text.replace(at, other.size(), own);
  }
  return text;
}

class MaskedLm : public LanguageModelTask {
 public:
  explicit MaskedLm(const MaskedLmSpec& spec, HeadKind head = HeadKind::kMaskedLm)
      : LanguageModelTask("masked_lm", head, "fill-mask", spec.max_tokens()), spec_(spec) {}

  absl::Status CheckModel(const LoadedSpec& loaded, const ModelConfig& config) const override {
    if (spec_.causal_share() > 0 && config.relative.any())
      return SpecError(loaded, "masked_lm.causal_share",
          "cannot be used with a model with relative positions: expected 0");
    return Task::CheckModel(loaded, config);
  }

  absl::Status Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed) override {
    RETURN_IF_ERROR(Task::Bind(config, tokenizer, seed));
    if (tokenizer == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(masker_, Masker::Create(spec_, *tokenizer, seed));
    return absl::OkStatus();
  }

  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {.sep = spec_.append_sep(), .mask = true}));
    return BuildSequences(data, {.append_sep = spec_.append_sep()}, tokenizer, options);
  }

  std::vector<Example> Sequences(Example example, double done) const override {
    if (spec_.warmup_from_tokens() == 0 || done >= spec_.warmup_share())
      return Task::Sequences(std::move(example), done);
    constexpr int64_t kMultiple = 8;  // of lengths
    const double from = spec_.warmup_from_tokens(), to = max_tokens();
    const auto longest = static_cast<int64_t>(from + (to - from) * done / spec_.warmup_share());
    return SplitSequence(example, longest / kMultiple * kMultiple, spec_.append_sep());
  }
  void PrepareExample(uint64_t number, double done, Example* example) const override {
    masker_->Apply(number, done, example);
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override {
    if (spec_.causal_share() > 0) return rows;
    return ShareOfRows(rows, std::max(MaskShare(spec_, 0), MaskShare(spec_, 1)) + 1.0 / 32);
  }

  absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts* cut) const override {
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
    const int32_t mask = tokenizer->special().mask;
    const int64_t cut_before = cut->texts;
    Record own = record;
    for (std::string* text : {&own.text, &own.text_pair})
      *text = WithOwnMask(std::move(*text), tokenizer->token(mask));
    for (std::string& word : own.words) word = WithOwnMask(std::move(word), tokenizer->token(mask));
    ASSIGN_OR_RETURN(Example example, EncodeRecord(own, input, cut));
    for (size_t i = 0; i < example.ids.size(); ++i) {
      if (example.ids[i] == mask) example.rows.push_back(static_cast<int32_t>(i));
    }
    if (example.rows.empty()) {
      const std::string text = absl::StrCat(own.text, absl::StrJoin(own.words, " "));
      return Error(Exit::kData, "no ", tokenizer->token(mask), " in \"", Quote(text), "\"",
          cut->texts > cut_before ? " after cutting it to the model's length" : "");
    }
    return std::vector<Example>{std::move(example)};
  }
  Decoder NewDecoder(const Model&, const DecodeOptions& options) const override {
    return [this, top = options.top](const Record& record, const TextLogits& text) -> OrderedJson {
      OrderedJson masks = OrderedJson::array();
      for (int64_t r = 0; r < text.logits.rows; ++r)
        masks.push_back(LikeliestTokens(*tokenizer(), text.logits, r, top));
      OrderedJson answer = InputMembers(record);
      answer["masks"] = std::move(masks);
      return answer;
    };
  }

 protected:
  const MaskedLmSpec& spec() const { return spec_; }

 private:
  MaskedLmSpec spec_;
  std::optional<Masker> masker_;
};

// Trains a discriminator and its generator, an auxiliary model; the masked batches are the
// generator's.
class ReplacedTokens : public MaskedLm {
 public:
  explicit ReplacedTokens(const MaskedLmSpec& spec) : MaskedLm(spec, HeadKind::kReplacedTokens) {}
  std::vector<Metric> metrics() const override { return ReplacedTokensMetrics(); }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = head();
    config->pooler = true;
    config->training.auxiliary = {
        GeneratorOf(*config, settings().generator_size(), settings().share_embeddings())};
  }
  absl::Status CheckModel(const LoadedSpec& loaded, const ModelConfig& config) const override {
    if (config.has(Role::kDiscriminatorOutput)) return MaskedLm::CheckModel(loaded, config);
    return SpecError(loaded, "masked_lm.replaced_tokens", "the model is of the family ",
        config.family->model_type,
        ": expected electra or modernbert (model.encoder.architecture ELECTRA or MODERN)");
  }
  // The generator's pass over the masked batch, then the model's over the batch of samples. The
  // loss of the samples is that of all tokens.
  double Train(Model& model, const Batch& batch, const PassOptions& given) const override {
    model.arena().Reset();
    PassOptions options = given;
    options.complete = nullptr;
    Batch replaced;
    const double loss =
        ReplaceTokens(model, options.NewPass(model, batch), options.scale, &replaced).loss;
    if (options.scale == 0) return loss;  // the step has no targets
    return loss + RunPass(model, options.NewPass(model, replaced), options.token_scale).loss *
                      options.token_scale / options.scale;
  }
  void Infer(Model& model, const Batch& batch, DType compute) const override {
    model.arena().Reset();
    Batch replaced;
    ReplaceTokens(model, model.NewPass(batch, compute), 0, &replaced);
    MaskedLm::Infer(model, replaced, compute);
  }
  LossSum Loss(const Head&, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const override {
    LossSum sum = BinaryCrossEntropy(
        logits, pass.batch.values.data() + first, scale * settings().weight(), arena);
    sum.loss *= settings().weight();
    return sum;
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore&) const override { return std::nan(""); }
  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions&) const override {
    return NewReplacedTokensEvaluation(model, settings().weight());
  }

 private:
  const ReplacedTokensSpec& settings() const { return spec().replaced_tokens(); }
};

}  // namespace

std::unique_ptr<Task> MakeMaskedLm(const MaskedLmSpec& spec) {
  if (spec.has_replaced_tokens()) return std::make_unique<ReplacedTokens>(spec);
  return std::make_unique<MaskedLm>(spec);
}

}  // namespace cloze
