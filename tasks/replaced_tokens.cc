#include "tasks/replaced_tokens.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/philox.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

class ReplacedTokensEvaluation : public Evaluation {
 public:
  ReplacedTokensEvaluation(const Model& model, double weight) : model_(model), weight_(weight) {}
  // The losses of the model and of the generator; the logits, then 1 for each token that is
  // replaced, else 0.
  absl::StatusOr<Output> Run(const Pass& masked, absl::Span<const Example>) const override {
    Batch batch;
    const LossSum generator = ReplaceTokens(model_, masked, 0, &batch);
    const Pass pass = masked.Over(batch);
    const std::vector<float>& replaced = batch.values;
    const Mat logits =
        Rows(model_.head().Logits(pass, model_.backbone().Infer(pass)), 0, replaced.size());
    Output output;
    for (int64_t r = 0; r < logits.rows; ++r) output.logits.push_back(*logits.f32(r));
    output.logits.insert(output.logits.end(), replaced.begin(), replaced.end());
    const LossSum sum = BinaryCrossEntropy(logits, replaced.data(), 0, pass.arena);
    output.losses = {{sum.loss, sum.correct, logits.rows},
        {generator.loss, generator.correct, std::ssize(masked.batch.targets)}};
    return output;
  }
  void Add(Output output, absl::Span<const Example>) override {
    const size_t n = output.logits.size() / 2;
    loss_ += output.losses[0].loss;
    tokens_ += n;
    generator_loss_ += output.losses[1].loss;
    generator_right_ += output.losses[1].correct, masked_ += output.losses[1].targets;
    for (size_t i = 0; i < n; ++i) {
      const bool replaced = output.logits[n + i] > 0.5f, found = output.logits[i] > 0;
      replaced_.labelled += replaced, replaced_.predicted += found;
      replaced_.right += replaced && found;
      right_ += replaced == found;
    }
  }
  MetricResults Results() override {
    const auto tokens = static_cast<double>(tokens_), masked = static_cast<double>(masked_);
    const double own = loss_ / tokens, generator = generator_loss_ / masked;
    return {{{"loss", generator + weight_ * own}, {"generator_loss", generator},
        {"replaced_loss", own}, {"accuracy", right_ / tokens}, {"precision", replaced_.Precision()},
        {"recall", replaced_.Recall()}, {"f1", replaced_.F1()},
        {"generator_accuracy", generator_right_ / masked}}};
  }

 private:
  const Model& model_;
  const double weight_;
  double loss_ = 0, generator_loss_ = 0;
  int64_t masked_ = 0, generator_right_ = 0, tokens_ = 0, right_ = 0;
  ClassCount replaced_;
};

}  // namespace

LossSum ReplaceTokens(const Model& model, const Pass& given, float scale, Batch* replaced) {
  const Batch& masked = given.batch;
  Pass pass = given;
  pass.seed = ~given.seed;  // dropout differs from the discriminator's
  const Philox philox(given.seed, Purpose::kSample);
  std::vector<float> uniforms;
  for (const int32_t row : masked.rows)
    uniforms.push_back(Philox::Uniform(
        philox(masked.row_examples[row], static_cast<uint32_t>(masked.positions[row]), 0)[0]));
  std::vector<int32_t> samples = masked.targets;
  const auto loss = [&](Mat logits, int64_t first, float gradient, Arena& arena) {
    SampleRows(logits, uniforms.data() + first, samples.data() + first);
    return SoftmaxCrossEntropy(logits, masked.targets.data() + first, gradient, arena);
  };
  const Arena::Mark mark = pass.arena.mark();
  const Model::Auxiliary& generator = model.auxiliary()[0];
  const LossSum sum = TrainingPass(generator.backbone, generator.head, pass, scale, loss);
  pass.arena.Rewind(mark);
  *replaced = masked;
  replaced->rows.resize(masked.tokens());
  std::iota(replaced->rows.begin(), replaced->rows.end(), 0);
  replaced->targets.assign(masked.tokens(), 0);
  replaced->values.assign(masked.tokens(), 0);
  replaced->pieces.clear(), replaced->piece_ends.clear();
  for (size_t i = 0; i < samples.size(); ++i) {
    const int32_t row = masked.rows[i];
    replaced->ids[row] = samples[i];
    replaced->values[row] = samples[i] == masked.targets[i] ? 0 : 1;
  }
  return sum;
}

ModelConfig GeneratorOf(const ModelConfig& discriminator, float size, bool shares_embeddings) {
  ModelConfig config = discriminator;
  const auto scaled = [&](int32_t n) {
    return std::max<int32_t>(8, std::lround(size * static_cast<float>(n)));
  };
  config.training.name = "generator";
  config.training.shares_embeddings = shares_embeddings;
  config.training.auxiliary.clear();
  config.head = HeadKind::kMaskedLm;
  config.pooler = config.untied = false;
  config.embeddings.size =
      discriminator.has(Role::kEmbeddingsProjection) ? discriminator.embedding_size() : 0;
  if (shares_embeddings && !discriminator.has(Role::kEmbeddingsProjection)) {
    config.layers = std::max<int32_t>(1, std::lround(size * discriminator.layers));
    if (!config.attention.local.empty()) config.attention.local.resize(config.layers);
  } else {
    config.hidden = scaled(discriminator.hidden);
    config.intermediate = scaled(discriminator.intermediate);
    config.heads = std::max(1, config.hidden / 64);
    while (config.hidden % config.heads != 0) --config.heads;
  }
  if (!shares_embeddings && config.positions.has_table())
    config.positions.kind = Positions::kLearned;
  return config;
}

std::vector<Metric> ReplacedTokensMetrics() {
  return {{"loss", Better::kSmaller}, {"generator_loss", Better::kSmaller},
      {"replaced_loss", Better::kSmaller}, {"accuracy", Better::kLarger},
      {"precision", Better::kLarger}, {"recall", Better::kLarger}, {"f1", Better::kLarger},
      {"generator_accuracy", Better::kLarger}};
}

std::unique_ptr<Evaluation> NewReplacedTokensEvaluation(const Model& model, double weight) {
  return std::make_unique<ReplacedTokensEvaluation>(model, weight);
}

}  // namespace cloze
