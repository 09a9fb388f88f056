// Each function here mirrors the one of the module whose name it has behind Count, allocation by
// allocation; tests/encoder/footprint_test.cc holds them together.
#include "encoder/footprint.h"

#include <algorithm>

#include "core/ops/scratch.h"

namespace cloze {
namespace {

void CountTargets(const Step& step, int64_t targets) {
  step.arena.NewArray<uint64_t>(PaddedRows(targets));
  step.arena.NewArray<int32_t>(PaddedRows(targets));
}

}  // namespace

void Norm::CountForward(const Step& step, int64_t rows) const {
  step.arena.NewArray<float>(rows);
  step.arena.NewArray<float>(rows);
}

void Norm::CountBackward(const Step& step, int64_t rows) const {
  CountNormBackward(step.arena, rows, step.params.param(gain_).cols);
}

void Lora::Count(const Step& step, int64_t rows) const {
  const Arena::Mark mark = step.arena.mark();
  if (Site(step).p > 0) step.New(rows, step.params.param(a_).cols);
  for (int i = 0; i < (trained(step) ? 2 : 1); ++i) step.New(rows, rank_);
  step.arena.Rewind(mark);
}

int64_t Lora::PackedBytes(const Step& step) const {
  int64_t bytes = 0;
  for (const ParamId id : {a_, b_}) {
    const Param& p = step.params.param(id);
    for (const bool backward : {false, true})
      bytes += Matmul::PackedBytes(p.rows, p.cols, step.compute, backward);
  }
  return bytes;
}

void Linear::Count(const Step& step, int64_t rows) const {
  for (const Part& part : parts_) part.lora.Count(step, rows);
}

int64_t Linear::PackedBytes(const Step& step, bool backward) const {
  int64_t bytes = Matmul::PackedBytes(out_, in_, step.compute, false);
  if (backward) bytes += Matmul::PackedBytes(out_, in_, step.compute, true);
  for (const Part& part : parts_) bytes += part.lora.PackedBytes(step);
  return bytes;
}

void Block::CountForward(const Step& step, const PassShape& shape, bool targets) const {
  const int64_t rows = targets ? PaddedRows(shape.targets) : shape.rows, hidden = config_.hidden;
  step.New(shape.rows, 3 * hidden);
  qkv_.Count(step, shape.rows);
  step.New(shape.rows, hidden);
  step.arena.NewArray<float>(shape.rows * config_.heads);
  CountAttention(step.arena, shape.longest, config_.head_dim());
  for (int i = 0; targets && i < 2; ++i) step.New(rows, hidden);
  step.New(rows, hidden);
  attention_output_.Count(step, rows);
  step.New(rows, hidden);
  norm_a_.CountForward(step, rows);
  step.New(rows, config_.intermediate);
  intermediate_.Count(step, rows);
  if (!pre_) step.New(rows, hidden);
  const Arena::Mark mark = step.arena.mark();
  step.New(rows, config_.intermediate);
  output_.Count(step, rows);
  step.arena.Rewind(mark);
  norm_b_.CountForward(step, rows);
}

void Block::CountBackward(
    const Step& step, const PassShape& shape, bool targets, bool need_dx) const {
  const int64_t rows = targets ? PaddedRows(shape.targets) : shape.rows, hidden = config_.hidden;
  const Arena::Mark mark = step.arena.mark();
  if (step.training && config_.dropout > 0) step.New(rows, hidden);
  norm_b_.CountBackward(step, rows);
  const Arena::Mark inner = step.arena.mark();
  const bool attention = need_dx || attention_trained(step);
  if (attention || mlp_trained(step)) {
    step.New(rows, config_.intermediate);
    step.New(rows, config_.intermediate);
    output_.Count(step, rows);
    CountColumnSums(step.arena, rows, config_.intermediate);
    intermediate_.Count(step, rows);
    step.arena.Rewind(inner);
  }
  if (attention || norm_a_.trained(step)) norm_a_.CountBackward(step, rows);
  if (attention) {
    step.New(rows, hidden);
    attention_output_.Count(step, rows);
    step.New(shape.rows, 3 * hidden);
    if (targets) step.New(shape.rows, hidden);
    CountAttention(step.arena, shape.longest, config_.head_dim());
    CountColumnSums(step.arena, shape.rows, 3 * hidden);
    qkv_.Count(step, shape.rows);
  }
  step.arena.Rewind(mark);
}

int64_t Block::PackedBytes(const Step& step, bool backward) const {
  int64_t bytes = 0;
  for (const Linear* linear : {&qkv_, &attention_output_, &intermediate_, &output_})
    bytes += linear->PackedBytes(step, backward);
  return bytes;
}

void Encoder::CountStream(const Step& step, int64_t rows) const {
  for (int i = 0; i < (pre_ ? 2 : 1); ++i) step.New(rows, config_.hidden);
}

void Encoder::CountEmbed(const Step& step, int64_t rows) const {
  step.New(rows, config_.hidden);
  embedding_norm_.CountForward(step, rows);
  if (pre_) first_norm_.CountForward(step, rows);
}

void Encoder::CountBelow(const Step& step, const PassShape& shape, int count) const {
  CountStream(step, shape.rows);
  if (count > 0) CountStream(step, shape.rows);
  const Arena::Mark mark = step.arena.mark();
  CountEmbed(step, shape.rows);
  step.arena.Rewind(mark);
  for (int i = 0; i < count; ++i) {
    blocks_[i].CountForward(step, shape, i + 1 == config_.layers);
    step.arena.Rewind(mark);
  }
}

void Encoder::CountInfer(const Step& step, const PassShape& shape) const {
  CountTargets(step, shape.targets);
  CountBelow(step, shape, config_.layers);
}

void Encoder::CountForward(const Step& step, const PassShape& shape) const {
  const int lowest = LowestTrained(step);
  CountTargets(step, shape.targets);
  if (lowest < 0) {
    CountStream(step, shape.rows);
    CountEmbed(step, shape.rows);
  } else {
    CountBelow(step, shape, lowest);
  }
  for (int i = std::max(lowest, 0); i < config_.layers; ++i) {
    const bool last = i + 1 == config_.layers;
    CountStream(step, last ? PaddedRows(shape.targets) : shape.rows);
    const Arena::Mark mark = step.arena.mark();
    blocks_[i].CountForward(step, shape, last);
    if (step.recompute) step.arena.Rewind(mark);
  }
}

void Encoder::CountBackward(const Step& step, const PassShape& shape) const {
  const Arena::Mark mark = step.arena.mark();
  const int lowest = LowestTrained(step);
  if (pre_) step.New(PaddedRows(shape.targets), config_.hidden);
  for (int i = config_.layers - 1; i >= std::max(lowest, 0); --i) {
    const bool last = i + 1 == config_.layers;
    if (last && i > lowest) CountStream(step, shape.rows);
    const Arena::Mark block = step.arena.mark();
    if (step.recompute) blocks_[i].CountForward(step, shape, last);
    blocks_[i].CountBackward(step, shape, last, i > lowest);
    step.arena.Rewind(block);
  }
  if (lowest < 0) {
    embedding_norm_.CountBackward(step, shape.rows);
    CountEmbeddingBackward(step.arena, shape.rows, config_.hidden);
  }
  step.arena.Rewind(mark);
}

int64_t Encoder::PackedBytes(const Step& step, bool training, bool shared) const {
  const int lowest = training ? LowestTrained(step) : config_.layers;
  int64_t bytes = 0;
  for (int i = shared ? config_.layers - 1 : 0; i < config_.layers; ++i)
    bytes += blocks_[i].PackedBytes(step, i >= lowest);
  return bytes;
}

void Head::CountTransform(const Step& step, int64_t padded) const {
  for (int i = 0; i < (dropout_before_ ? 1 : 0) + (dense_on_ ? 2 : 0) + 1; ++i)
    step.New(padded, config_.hidden);
  if (norm_on_) norm_.CountForward(step, padded);
}

void Head::CountTransformBackward(const Step& step, int64_t padded) const {
  if (norm_on_) norm_.CountBackward(step, padded);
  if (!dense_on_) return;
  step.New(padded, config_.hidden);
  CountColumnSums(step.arena, padded, config_.hidden);
}

void Head::CountLoss(const Step& step, int64_t targets, bool gradients) const {
  const Arena::Mark mark = step.arena.mark();
  const int64_t padded = PaddedRows(targets), rows = std::min(ChunkOf(step, padded), padded);
  CountTargets(step, targets);
  CountTransform(step, padded);
  step.arena.New(rows, labels_, LogitType(step));
  if (LogitType(step) != step.compute) step.New(rows, labels_);
  if (gradients) step.New(padded, config_.hidden);
  CountRowLoss(step.arena, rows);
  if (has_chain()) CountChainLoss(step.arena, rows, labels_, gradients);
  if (gradients) CountColumnSums(step.arena, rows, labels_);
  if (gradients) CountTransformBackward(step, padded);
  step.arena.Rewind(mark);
}

void Head::CountLogits(const Step& step, int64_t targets) const {
  CountTransform(step, PaddedRows(targets));
  step.arena.New(PaddedRows(targets), labels_, DType::kF32);
}

int64_t Head::PackedBytes(const Step& step, bool training) const {
  if (config_.head == HeadKind::kNone) return 0;
  int64_t bytes = dense_on_ ? dense_.PackedBytes(step, training) : 0;
  bytes += Matmul::PackedBytes(labels_, config_.hidden, step.compute, false);
  return bytes + (training ? Matmul::PackedBytes(labels_, config_.hidden, step.compute, true) : 0);
}

namespace {

Step CountingStep(Model& model, Arena* arena, DType compute, bool training) {
  static const Batch none;
  return {.params = model.params(),
      .matmul = model.matmul(),
      .arena = *arena,
      .batch = none,
      .training = training,
      .compute = compute};
}

}  // namespace

PassBytes CountTraining(Model& model, const PassShape& shape, DType compute, bool recompute) {
  Arena arena = Arena::Counting();
  Step step = CountingStep(model, &arena, compute, true);
  step.recompute = recompute;
  model.encoder().CountForward(step, shape);
  PassBytes bytes = {.kept = arena.used()};
  const bool trained = model.encoder().trained(step);
  if (trained) step.New(PaddedRows(shape.targets), model.config().hidden);
  model.head().CountLoss(step, shape.targets, true);
  if (trained) model.encoder().CountBackward(step, shape);
  bytes.peak = arena.peak();
  return bytes;
}

PassBytes CountInference(Model& model, const PassShape& shape, DType compute) {
  Arena arena = Arena::Counting();
  const Step step = CountingStep(model, &arena, compute, false);
  model.encoder().CountInfer(step, shape);
  PassBytes bytes = {.kept = arena.used()};
  if (model.config().head != HeadKind::kMaskedLm) model.head().CountLogits(step, shape.targets);
  model.head().CountLoss(step, shape.targets, false);
  bytes.peak = arena.peak();
  return bytes;
}

int64_t PackedBytes(Model& model, DType compute, bool shared) {
  Arena arena = Arena::Counting();
  const Step step = CountingStep(model, &arena, compute, true);
  return model.encoder().PackedBytes(step, true, shared) + model.head().PackedBytes(step, true);
}

}  // namespace cloze
