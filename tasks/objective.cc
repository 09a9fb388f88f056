#include "tasks/objective.h"

#include <algorithm>
#include <cmath>

#include "core/ops/loss.h"

namespace cloze {

DataShape ShapeOfData(const DataStats& stats) {
  DataShape shape;
  if (stats.examples > 0) shape.mean_length = double(stats.tokens) / stats.examples;
  if (stats.words > 0 && stats.tokens > 0) shape.words = double(stats.words) / stats.tokens;
  return shape;
}

Pass PassOptions::NewPass(Model& model, const Batch& batch) const {
  Pass pass = model.NewPass(batch, compute, /*training=*/true, seed);
  pass.recompute = recompute;
  pass.complete = complete;
  return pass;
}

double Objective::Train(Model& model, const Batch& batch, const PassOptions& options) const {
  model.arena().Reset();
  return RunPass(model, options.NewPass(model, batch), options.scale).loss;
}

void Objective::Infer(Model& model, const Batch& batch, DType compute) const {
  model.arena().Reset();
  const Pass pass = model.NewPass(batch, compute);
  const Mat hidden = model.backbone().Infer(pass);
  // Heads over the vocabulary compute the loss of some rows at a time.
  if (!TypeOf(model.config().head).tied) model.head().Logits(pass, hidden);
  model.head().Loss(pass, hidden, 0, {}, LossOf(model.head(), pass));
}

LossSum Objective::Loss(
    const Head&, const Pass& pass, Mat logits, int64_t first, float scale, Arena& arena) const {
  return SoftmaxCrossEntropy(logits, pass.batch.targets.data() + first, scale, arena);
}

Batch Objective::DryBatch(int64_t rows, int64_t longest, int64_t targets) const {
  Batch batch;
  const std::vector<int32_t> ids(longest);
  for (int64_t left = rows; left > 0; left -= std::min(longest, left))
    batch.Add(absl::MakeConstSpan(ids).first(std::min(longest, left)), longest, 0);
  batch.Pad();
  for (int64_t i = 0; i < targets; ++i)
    batch.rows.push_back(static_cast<int32_t>(i * rows / targets));
  batch.targets.resize(targets);
  return batch;
}

absl::Status ForSomeExamples(
    const ExampleStore& store, absl::FunctionRef<void(const Example& example)> visit) {
  constexpr int64_t kMax = 100'000;
  Example example;
  for (int64_t i = 0; i < store.size(); i += (store.size() + kMax - 1) / kMax) {
    RETURN_IF_ERROR(store.Read(i, &example));
    visit(example);
  }
  return absl::OkStatus();
}

double Entropy(absl::Span<const double> counts) {
  double sum = 0, entropy = 0;
  for (const double count : counts) sum += count;
  for (const double count : counts) entropy -= count > 0 ? count / sum * std::log(count / sum) : 0;
  return entropy;
}

int64_t ShareOfRows(int64_t rows, double share) {
  return std::min<int64_t>(rows, std::ceil(share * rows) + 8);
}

}  // namespace cloze
