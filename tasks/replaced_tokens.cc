#include "tasks/replaced_tokens.h"

#include <numeric>

#include "core/base/philox.h"
#include "core/ops/sample.h"

namespace cloze {
namespace {

class ReplacedTokensEvaluation : public Evaluation {
 public:
  ReplacedTokensEvaluation(const Model& model, double weight) : model_(model), weight_(weight) {}
  // The logits, then 1 for each token that is replaced, else 0.
  Output Compute(const Pass& pass, ConstMat hidden) const override {
    const std::vector<float>& replaced = pass.batch.values;
    const Mat logits = Rows(model_.head().Logits(pass, hidden), 0, replaced.size());
    Output output;
    for (int64_t r = 0; r < logits.rows; ++r) output.logits.push_back(*logits.f32(r));
    output.logits.insert(output.logits.end(), replaced.begin(), replaced.end());
    output.sum = BinaryCrossEntropy(logits, replaced.data(), 0, pass.arena);
    return output;
  }
  void Add(Output output, absl::Span<const Example>) override {
    const size_t n = output.logits.size() / 2;
    loss_ += output.sum.loss;
    tokens_ += n;
    for (size_t i = 0; i < n; ++i) {
      const bool replaced = output.logits[n + i] > 0.5f, found = output.logits[i] > 0;
      replaced_.labelled += replaced, replaced_.predicted += found;
      replaced_.right += replaced && found;
      right_ += replaced == found;
    }
  }
  void AddGenerator(const LossSum& loss, int64_t targets) override {
    generator_ += loss;
    masked_ += targets;
  }
  MetricResults Results() override {
    const auto tokens = static_cast<double>(tokens_), masked = static_cast<double>(masked_);
    const double own = loss_ / tokens, generator = generator_.loss / masked;
    MetricResults results;
    results.values = {{"loss", generator + weight_ * own}, {"generator_loss", generator},
        {"replaced_loss", own}, {"accuracy", right_ / tokens}, {"precision", replaced_.Precision()},
        {"recall", replaced_.Recall()}, {"f1", replaced_.F1()},
        {"generator_accuracy", generator_.correct / masked}};
    return results;
  }

 private:
  const Model& model_;
  const double weight_;
  double loss_ = 0;
  LossSum generator_;
  int64_t masked_ = 0, tokens_ = 0, right_ = 0;
  ClassCount replaced_;
};

}  // namespace

LossSum ReplaceTokens(
    const Model::Generator& generator, const Pass& given, float scale, Batch* replaced) {
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

const Batch& EvaluatedBatch(
    Model& model, const Batch& batch, DType compute, Batch* replaced, LossSum* loss) {
  if (model.generator() == nullptr) return batch;
  *loss += ReplaceTokens(*model.generator(), model.NewPass(batch, compute), 0, replaced);
  return *replaced;
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
