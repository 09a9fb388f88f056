// Forward and backward of everything between the matmuls, side by side: y before dy before dx.
// Gradients of parameters accumulate; dx is overwritten; an empty dx is not needed. Arrays of rows
// are split over the threads in fixed chunks, so that sums have the same bits for any number of
// threads.
#ifndef CLOZE_CORE_OPS_OPS_H_
#define CLOZE_CORE_OPS_OPS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "core/ops/kernels/kernels.h"
#include "core/tensor/arena.h"
#include "core/tensor/mat.h"

namespace cloze {

// What the bits of results hang on beside MatmulLibrary(): instruction set, version and compiler of
// the kernels in use, as "amx 2, GCC 12.2.0".
std::string KernelsName();
// Does it multiply bf16, so that it is the faster type?
bool MultipliesBf16();

// What the randomness of each packed row hangs on: the global number of its example and its
// position inside. Arrays of [rows].
struct RowKeys {
  const uint64_t* example = nullptr;
  const int32_t* position = nullptr;
};

// Dropout with probability p (0: none) at the place `stream` of the model.
struct DropoutSite {
  float p = 0;
  uint64_t seed = 0;
  uint32_t stream = 0;
  RowKeys keys;
};

// y = dropout(x), and its backward, which is the same function of dy. x, y [rows, cols] without
// gaps; may be the same.
void Dropout(ConstMat x, const DropoutSite& site, Mat y);

// Statistics of each row, [rows].
struct NormStats {
  float *mean = nullptr, *rstd = nullptr;
};
struct NormParams {
  const float *gain, *bias;  // [cols]
  float epsilon;
};
struct NormGrads {
  float *gain, *bias;  // [cols], added to
  float* dx_sum;       // [cols] or null: gradient of the bias of the layer that made x
};

// z = residual + in(x); y = out(norm(z)), norm(z) = (z - mean) rstd gain + bias. x or residual may
// be empty; all [rows, cols].
void NormForward(ConstMat x, ConstMat residual, const NormParams& p, const DropoutSite& in,
    const DropoutSite& out, Mat z, Mat y, NormStats stats);
// dz: gradient of the residual, dz_in (may be empty) what reaches z by another way. dx: gradient of
// x; empty or dz itself when x has no dropout.
void NormBackward(ConstMat dy, ConstMat z, NormStats stats, const NormParams& p,
    const DropoutSite& in, const DropoutSite& out, ConstMat dz_in, const NormGrads& grads,
    Arena& arena, Mat dz, Mat dx);

// y = act(u), elementwise.
void ActivationForward(ActivationKind kind, ConstMat u, Mat y);
// y = act(u) again; du = dy act'(u), may be dy; dbias [cols] += column sums of du.
void ActivationBackward(
    ActivationKind kind, ConstMat u, ConstMat dy, float* dbias, Arena& arena, Mat y, Mat du);

// sum [cols] += column sums of x; null: nothing.
void AddColumnSums(ConstMat x, Arena& arena, float* sum);

// x[r] = words[ids[r]] + positions[pos[r]] + types[type[r]]. Tables f32 [.., cols].
void EmbeddingForward(ConstMat words, const int32_t* ids, ConstMat positions, const int32_t* pos,
    ConstMat types, const int32_t* type, Mat x);
// dtable[ids[r]] += dx[r] for r < rows: sorted by id, each table row summed in the order of r.
void EmbeddingBackward(ConstMat dx, const int32_t* ids, int64_t rows, Arena& arena, Mat dtable);

// Attention of packed sequences: sequence s is rows [cu_seqlens[s], cu_seqlens[s+1]). qkv [rows, 3
// heads dim], out [rows, heads dim]. Rows behind the last sequence become 0. lse [heads, rows] is
// kept for backward.
struct AttentionShape {
  absl::Span<const int32_t> cu_seqlens;
  int heads;
};
// probs: null, or for each sequence in order [heads, tokens, tokens].
void AttentionForward(ConstMat qkv, const AttentionShape& shape, const DropoutSite& dropout,
    Arena& arena, Mat out, float* lse, float* probs = nullptr);
void AttentionBackward(ConstMat qkv, ConstMat out, ConstMat dout, const float* lse,
    const AttentionShape& shape, const DropoutSite& dropout, Arena& arena, Mat dqkv);

// Sum over rows of the cross entropy of softmax(logits) against targets; logits become their
// gradient times gradient_scale, unless that is 0.
struct LossSum {
  double loss = 0;      // nats
  int64_t correct = 0;  // rows whose largest logit is the target
};
LossSum SoftmaxCrossEntropy(Mat logits, const int32_t* targets, float gradient_scale, Arena& arena);

// The same with the weight w of each label (empty: 1) and label smoothing e, as PyTorch's
// CrossEntropyLoss(weight, label_smoothing): a row with target t and log-probabilities l has the
// loss -(1 - e) w[t] l[t] - e / labels * sum of w[c] l[c]. PyTorch's mean divides by the sum of
// w[t]. Logits f32.
struct LabelWeights {
  absl::Span<const float> weights;
  float smoothing = 0;
  bool plain() const { return weights.empty() && smoothing == 0; }
};
LossSum WeightedCrossEntropy(Mat logits, const int32_t* targets, const LabelWeights& labels,
    float gradient_scale, Arena& arena);

// Sum over all logits x with targets y [rows, cols] of the binary cross entropy -y log s(x) - (1 -
// y) log(1 - s(x)), s the logistic function, as PyTorch's BCEWithLogitsLoss(reduction="sum").
// `correct` counts rows whose logits all have the sign of their target. Logits f32.
LossSum BinaryCrossEntropy(Mat logits, const float* targets, float gradient_scale, Arena& arena);

// Sum of (x - y)^2, as PyTorch's MSELoss(reduction="sum"). Logits f32; `correct` stays 0.
LossSum SquaredError(Mat logits, const float* targets, float gradient_scale, Arena& arena);

// y[i] = x[rows[i]]; further rows of y become zero.
void GatherRows(ConstMat x, absl::Span<const int32_t> rows, Mat y);
// Backward of GatherRows for distinct rows: dx[rows[i]] = dy[i], all other rows of dx become zero.
void ScatterRows(ConstMat dy, absl::Span<const int32_t> rows, Mat dx);
// Overwrites rows [begin, m.rows) with zeros.
void ZeroRowsFrom(Mat m, int64_t begin);
// Returns the keys of `rows`, and zeros up to `padded` rows, in the arena.
RowKeys GatherKeys(
    const RowKeys& keys, absl::Span<const int32_t> rows, int64_t padded, Arena& arena);

// y = a x + b y, elementwise; x may be y. b 0: y is not read.
void Combine(float a, ConstMat x, float b, Mat y);

// dst = src with conversion of the type.
void Convert(ConstMat src, Mat dst);

// Sum of squares in double, by a fixed tree.
double SumSquares(absl::Span<const float> x);

// One AdamW step over flat ranges; grads become zero.
struct AdamW {
  float rate, beta1, beta2, epsilon, decay, grad_scale;
  bool bias_correction;
  int64_t step;  // from 1
};
void AdamWStep(const AdamW& a, float* value, float* grad, float* m, float* v, int64_t n);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_OPS_H_
