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

class MaskedLm : public Task {
 public:
  explicit MaskedLm(const MaskedLmSpec& spec, HeadKind head = HeadKind::kMaskedLm)
      : Task("masked_lm", head, "fill-mask"), spec_(spec) {}

  int32_t max_tokens() const override { return spec_.max_tokens(); }
  bool pretrains() const override { return true; }
  std::vector<Metric> metrics() const override { return LanguageModelMetrics(); }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = HeadKind::kMaskedLm;
  }
  void Restore(const ModelConfig&, JsonFields&, int64_t longest) override {
    spec_.set_max_tokens(std::min<int64_t>(longest, spec_.max_tokens()));
  }

  absl::Status Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed) override {
    RETURN_IF_ERROR(Task::Bind(config, tokenizer, seed));
    if (tokenizer == nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(masker_, Masker::Create(spec_, *tokenizer, seed));
    return absl::OkStatus();
  }

  absl::Status CheckData(const DataSpec& data) const override {
    return CheckFirst<DocumentPiece>(data, Labels::kIgnored);
  }
  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {.sep = spec_.append_sep(), .mask = true}));
    return OpenOrBuild(data,
        StoreKindOf("masked_lm", tokenizer, {}, spec_.max_tokens(), spec_.append_sep()), tokenizer,
        options, [&](ExampleStoreWriter* writer, DataStats* stats) {
          return FillWithDocuments(data,
              {.max_tokens = spec_.max_tokens(), .append_sep = spec_.append_sep()}, tokenizer,
              options, writer, stats);
        });
  }

  std::vector<Example> Sequences(Example example, double done) const override {
    if (spec_.warmup_from_tokens() == 0 || done >= spec_.warmup_share())
      return Task::Sequences(std::move(example), done);
    constexpr int64_t kMultiple = 8;  // of lengths
    const double from = spec_.warmup_from_tokens(), to = spec_.max_tokens();
    const auto longest = static_cast<int64_t>(from + (to - from) * done / spec_.warmup_share());
    return SplitSequence(example, longest / kMultiple * kMultiple, spec_.append_sep());
  }
  void PrepareExample(uint64_t number, double done, Example* example) const override {
    masker_->Apply(number, done, example);
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override {
    return TokenEntropy(train, *tokenizer());
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override {
    if (spec_.causal_share() > 0) return rows;
    return ShareOfRows(rows, std::max(MaskShare(spec_, 0), MaskShare(spec_, 1)) + 1.0 / 32);
  }

  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats& stats, const DecodeOptions&) const override {
    return NewLanguageModelEvaluation(*this, model, stats);
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

// Trains a discriminator and its generator; the masked batches are the generator's.
class ReplacedTokens : public MaskedLm {
 public:
  explicit ReplacedTokens(const MaskedLmSpec& spec) : MaskedLm(spec, HeadKind::kReplacedTokens) {}
  std::vector<Metric> metrics() const override { return ReplacedTokensMetrics(); }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = HeadKind::kReplacedTokens;
    config->pooler = true;
    config->training.generator = {
        GeneratorOf(*config, own().generator_size(), own().share_embeddings())};
  }
  LossSum Loss(const Head&, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const override {
    LossSum sum =
        BinaryCrossEntropy(logits, pass.batch.values.data() + first, scale * own().weight(), arena);
    sum.loss *= own().weight();
    return sum;
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore&) const override { return std::nan(""); }
  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions&) const override {
    return NewReplacedTokensEvaluation(model, own().weight());
  }

 private:
  const ReplacedTokensSpec& own() const { return spec().replaced_tokens(); }
};

}  // namespace

std::unique_ptr<Task> MakeMaskedLm(const MaskedLmSpec& spec) {
  if (spec.has_replaced_tokens()) return std::make_unique<ReplacedTokens>(spec);
  return std::make_unique<MaskedLm>(spec);
}

}  // namespace cloze
