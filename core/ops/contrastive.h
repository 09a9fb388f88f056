// Losses that compare vectors of sentences, with their gradients. All matrices are f32 [rows, n];
// gradients are added to those of the caller unless `gradient` is 0, and are those of the returned
// sum times `gradient`.
#ifndef CLOZE_CORE_OPS_CONTRASTIVE_H_
#define CLOZE_CORE_OPS_CONTRASTIVE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"

namespace cloze {

// y = x / max(|x|, 1e-12) for each row, as torch.nn.functional.normalize. lengths [rows] = |x|.
void NormalizeForward(ConstMat x, Mat y, float* lengths);
// dx += (dy - y (y . dy)) / |x|.
void NormalizeBackward(ConstMat y, const float* lengths, ConstMat dy, Mat dx);

// The rows of `c` that compete with c[targets[i]] for a[i]: all of them or, with classes, those of
// another class. Class 0 is other than all classes, also than itself.
struct Candidates {
  absl::Span<const int32_t> targets;               // [rows of a]
  absl::Span<const int32_t> a_classes, c_classes;  // empty, or a class for each row of a and c
};
// Returns the sum over the rows of a of the cross entropy of softmax(scale a c^T), the loss of
// sentence-transformers' MultipleNegativesRankingLoss (InfoNCE). The scores of some rows of a at a
// time are in memory. da and dc may be empty if `gradient` is 0.
LossSum InBatchLoss(ConstMat a, ConstMat c, const Candidates& candidates, float scale,
    float gradient, Arena& arena, Matmul& matmul, Mat da, Mat dc);

// Rows of a matrix of vectors: a pair with its score, and an anchor with its positive and negative.
struct ScoredPair {
  int32_t a, b;
  float score;
};
struct Triplet {
  int32_t anchor, positive, negative;
};
// Returns log(1 + sum of exp(scale (s_i - s_j))) over the pairs i and j with score_i < score_j; s
// is the dot product of a pair's rows of v (CoSENT; Su 2022). Requires rows of length 1 and scale
// <= 200, so that sums do not overflow.
double CosentLoss(
    ConstMat v, absl::Span<const ScoredPair> pairs, float scale, float gradient, Mat dv);
// Returns the sum of (s - score)^2.
double CosineLoss(ConstMat v, absl::Span<const ScoredPair> pairs, float gradient, Mat dv);
// Returns the sum of max(0, |anchor - positive| - |anchor - negative| + margin), with Euclid's
// distances, to each of whose differences 1e-6 is added, as torch.nn.functional.pairwise_distance
// does.
double TripletLoss(
    ConstMat v, absl::Span<const Triplet> triplets, float margin, float gradient, Mat dv);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_CONTRASTIVE_H_
