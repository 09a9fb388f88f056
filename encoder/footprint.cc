// Each function here mirrors the one of the module whose name it has behind Count, allocation by
// allocation; tests/encoder/footprint_test.cc holds them together.
#include "encoder/footprint.h"

#include <algorithm>

#include "core/ops/scratch.h"

namespace cloze {
namespace {

void CountTargets(const Pass& pass, int64_t targets) {
  pass.arena.NewArray<uint64_t>(PaddedRows(targets));
  pass.arena.NewArray<int32_t>(PaddedRows(targets));
}

}  // namespace

void Norm::CountForward(const Pass& pass, int64_t rows) const {
  pass.arena.NewArray<float>(rows);
  pass.arena.NewArray<float>(rows);
}

void Norm::CountBackward(const Pass& pass, int64_t rows) const {
  CountNormBackward(pass.arena, rows, pass.params.param(gain_).cols);
}

void Lora::Count(const Pass& pass, int64_t rows) const {
  const Arena::Mark mark = pass.arena.mark();
  if (Site(pass).p > 0) pass.New(rows, pass.params.param(a_).cols);
  for (int i = 0; i < (trained(pass) ? 2 : 1); ++i) pass.New(rows, rank_);
  pass.arena.Rewind(mark);
}

int64_t Lora::PackedBytes(const Pass& pass) const {
  int64_t bytes = 0;
  for (const ParamId id : {a_, b_}) {
    const Param& p = pass.params.param(id);
    for (const bool backward : {false, true})
      bytes += Matmul::PackedBytes(p.rows, p.cols, pass.compute, backward);
  }
  return bytes;
}

void Linear::Count(const Pass& pass, int64_t rows) const {
  for (const Part& part : parts_) part.lora.Count(pass, rows);
}

int64_t Linear::PackedBytes(const Pass& pass, bool backward) const {
  int64_t bytes = Matmul::PackedBytes(out_, in_, pass.compute, false);
  if (backward) bytes += Matmul::PackedBytes(out_, in_, pass.compute, true);
  for (const Part& part : parts_) bytes += part.lora.PackedBytes(pass);
  return bytes;
}

void Block::CountForward(const Pass& pass, const PassShape& shape, bool targets) const {
  const int64_t rows = targets ? PaddedRows(shape.targets) : shape.rows, hidden = config_.hidden;
  pass.New(shape.rows, 3 * hidden);
  qkv_.Count(pass, shape.rows);
  pass.New(shape.rows, hidden);
  pass.arena.NewArray<float>(shape.rows * config_.heads);
  CountAttention(pass.arena, shape.longest, config_.head_dim());
  for (int i = 0; targets && i < 2; ++i) pass.New(rows, hidden);
  pass.New(rows, hidden);
  attention_output_.Count(pass, rows);
  pass.New(rows, hidden);
  norm_a_.CountForward(pass, rows);
  pass.New(rows, config_.intermediate);
  intermediate_.Count(pass, rows);
  if (!pre_) pass.New(rows, hidden);
  const Arena::Mark mark = pass.arena.mark();
  pass.New(rows, config_.intermediate);
  output_.Count(pass, rows);
  pass.arena.Rewind(mark);
  norm_b_.CountForward(pass, rows);
}

void Block::CountBackward(
    const Pass& pass, const PassShape& shape, bool targets, bool need_dx) const {
  const int64_t rows = targets ? PaddedRows(shape.targets) : shape.rows, hidden = config_.hidden;
  const Arena::Mark mark = pass.arena.mark();
  if (pass.training && config_.dropout > 0) pass.New(rows, hidden);
  norm_b_.CountBackward(pass, rows);
  const Arena::Mark inner = pass.arena.mark();
  const bool attention = need_dx || attention_trained(pass);
  if (attention || mlp_trained(pass)) {
    pass.New(rows, config_.intermediate);
    pass.New(rows, config_.intermediate);
    output_.Count(pass, rows);
    CountColumnSums(pass.arena, rows, config_.intermediate);
    intermediate_.Count(pass, rows);
    pass.arena.Rewind(inner);
  }
  if (attention || norm_a_.trained(pass)) norm_a_.CountBackward(pass, rows);
  if (attention) {
    pass.New(rows, hidden);
    attention_output_.Count(pass, rows);
    pass.New(shape.rows, 3 * hidden);
    if (targets) pass.New(shape.rows, hidden);
    CountAttention(pass.arena, shape.longest, config_.head_dim());
    CountColumnSums(pass.arena, shape.rows, 3 * hidden);
    qkv_.Count(pass, shape.rows);
  }
  pass.arena.Rewind(mark);
}

int64_t Block::PackedBytes(const Pass& pass, bool backward) const {
  int64_t bytes = 0;
  for (const Linear* linear : {&qkv_, &attention_output_, &intermediate_, &output_})
    bytes += linear->PackedBytes(pass, backward);
  return bytes;
}

void Encoder::CountStream(const Pass& pass, int64_t rows) const {
  for (int i = 0; i < (pre_ ? 2 : 1); ++i) pass.New(rows, config_.hidden);
}

void Encoder::CountEmbed(const Pass& pass, int64_t rows) const {
  pass.New(rows, config_.hidden);
  embedding_norm_.CountForward(pass, rows);
  if (pre_) first_norm_.CountForward(pass, rows);
}

void Encoder::CountBelow(const Pass& pass, const PassShape& shape, int count) const {
  CountStream(pass, shape.rows);
  if (count > 0) CountStream(pass, shape.rows);
  const Arena::Mark mark = pass.arena.mark();
  CountEmbed(pass, shape.rows);
  pass.arena.Rewind(mark);
  for (int i = 0; i < count; ++i) {
    blocks_[i].CountForward(pass, shape, i + 1 == config_.layers);
    pass.arena.Rewind(mark);
  }
}

void Encoder::CountInfer(const Pass& pass, const PassShape& shape) const {
  CountTargets(pass, shape.targets);
  CountBelow(pass, shape, config_.layers);
}

void Encoder::CountForward(const Pass& pass, const PassShape& shape) const {
  const int lowest = LowestTrained(pass);
  CountTargets(pass, shape.targets);
  if (lowest < 0) {
    CountStream(pass, shape.rows);
    CountEmbed(pass, shape.rows);
  } else {
    CountBelow(pass, shape, lowest);
  }
  for (int i = std::max(lowest, 0); i < config_.layers; ++i) {
    const bool last = i + 1 == config_.layers;
    CountStream(pass, last ? PaddedRows(shape.targets) : shape.rows);
    const Arena::Mark mark = pass.arena.mark();
    blocks_[i].CountForward(pass, shape, last);
    if (pass.recompute) pass.arena.Rewind(mark);
  }
}

void Encoder::CountBackward(const Pass& pass, const PassShape& shape) const {
  const Arena::Mark mark = pass.arena.mark();
  const int lowest = LowestTrained(pass);
  if (pre_) pass.New(PaddedRows(shape.targets), config_.hidden);
  for (int i = config_.layers - 1; i >= std::max(lowest, 0); --i) {
    const bool last = i + 1 == config_.layers;
    if (last && i > lowest) CountStream(pass, shape.rows);
    const Arena::Mark block = pass.arena.mark();
    if (pass.recompute) blocks_[i].CountForward(pass, shape, last);
    blocks_[i].CountBackward(pass, shape, last, i > lowest);
    pass.arena.Rewind(block);
  }
  if (lowest < 0) {
    embedding_norm_.CountBackward(pass, shape.rows);
    CountEmbeddingBackward(pass.arena, shape.rows, config_.hidden);
  }
  pass.arena.Rewind(mark);
}

int64_t Encoder::PackedBytes(const Pass& pass, bool training, bool shared) const {
  const int lowest = training ? LowestTrained(pass) : config_.layers;
  int64_t bytes = 0;
  for (int i = shared ? config_.layers - 1 : 0; i < config_.layers; ++i)
    bytes += blocks_[i].PackedBytes(pass, i >= lowest);
  return bytes;
}

void Head::CountTransform(const Pass& pass, int64_t padded) const {
  for (int i = 0; i < (dropout_before_ ? 1 : 0) + (dense_on_ ? 2 : 0) + 1; ++i)
    pass.New(padded, config_.hidden);
  if (norm_on_) norm_.CountForward(pass, padded);
}

void Head::CountTransformBackward(const Pass& pass, int64_t padded) const {
  if (norm_on_) norm_.CountBackward(pass, padded);
  if (!dense_on_) return;
  pass.New(padded, config_.hidden);
  CountColumnSums(pass.arena, padded, config_.hidden);
}

void Head::CountLoss(const Pass& pass, int64_t targets, bool gradients) const {
  const Arena::Mark mark = pass.arena.mark();
  const int64_t padded = PaddedRows(targets), rows = std::min(ChunkOf(pass, padded), padded);
  CountTargets(pass, targets);
  CountTransform(pass, padded);
  pass.arena.New(rows, labels_, LogitType(pass));
  if (LogitType(pass) != pass.compute) pass.New(rows, labels_);
  if (gradients) pass.New(padded, config_.hidden);
  CountRowLoss(pass.arena, rows);
  if (has_chain()) CountChainLoss(pass.arena, rows, labels_, gradients);
  if (gradients) CountColumnSums(pass.arena, rows, labels_);
  if (gradients) CountTransformBackward(pass, padded);
  pass.arena.Rewind(mark);
}

void Head::CountLogits(const Pass& pass, int64_t targets) const {
  CountTransform(pass, PaddedRows(targets));
  pass.arena.New(PaddedRows(targets), labels_, DType::kF32);
}

int64_t Head::PackedBytes(const Pass& pass, bool training) const {
  if (config_.head == HeadKind::kNone) return 0;
  int64_t bytes = dense_on_ ? dense_.PackedBytes(pass, training) : 0;
  bytes += Matmul::PackedBytes(labels_, config_.hidden, pass.compute, false);
  return bytes + (training ? Matmul::PackedBytes(labels_, config_.hidden, pass.compute, true) : 0);
}

namespace {

Pass CountingStep(Model& model, Arena* arena, DType compute, bool training) {
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
  Pass pass = CountingStep(model, &arena, compute, true);
  pass.recompute = recompute;
  model.encoder().CountForward(pass, shape);
  PassBytes bytes = {.kept = arena.used()};
  const bool trained = model.encoder().trained(pass);
  if (trained) pass.New(PaddedRows(shape.targets), model.config().hidden);
  model.head().CountLoss(pass, shape.targets, true);
  if (trained) model.encoder().CountBackward(pass, shape);
  bytes.peak = arena.peak();
  return bytes;
}

PassBytes CountInference(Model& model, const PassShape& shape, DType compute) {
  Arena arena = Arena::Counting();
  const Pass pass = CountingStep(model, &arena, compute, false);
  model.encoder().CountInfer(pass, shape);
  PassBytes bytes = {.kept = arena.used()};
  if (model.config().head != HeadKind::kMaskedLm) model.head().CountLogits(pass, shape.targets);
  model.head().CountLoss(pass, shape.targets, false);
  bytes.peak = arena.peak();
  return bytes;
}

int64_t PackedBytes(Model& model, DType compute, bool shared) {
  Arena arena = Arena::Counting();
  const Pass pass = CountingStep(model, &arena, compute, true);
  return model.encoder().PackedBytes(pass, true, shared) + model.head().PackedBytes(pass, true);
}

}  // namespace cloze
