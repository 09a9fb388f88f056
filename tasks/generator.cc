#include "tasks/generator.h"

#include <numeric>

#include "core/base/philox.h"
#include "core/ops/sample.h"

namespace cloze {

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
  const LossSum sum = TrainingPass(generator.encoder, generator.head, pass, scale, loss);
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

}  // namespace cloze
