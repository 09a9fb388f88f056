// Linear-chain conditional random field over labels: loss, marginals and best sequence.
#ifndef CLOZE_CORE_OPS_CRF_H_
#define CLOZE_CORE_OPS_CRF_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/ops/loss.h"
#include "core/tensor/arena.h"

namespace cloze {

// Sequence y of n words scores sum_t logits[t, y_t] + start[y_0] + sum_t between[y_t, y_t+1] +
// end[y_n-1] (Lafferty et al. 2001); its probability is the softmax of that over all L^n sequences.
// A term of -infinity forbids the sequence.
struct Crf {
  const float *start, *between, *end;  // [L], [L, L] from row to column, [L]
};
struct CrfGrads {
  float *start, *between, *end;  // as in Crf, accumulated; or null
};

// Returns the sum over sequences of -log of the targets' probability, by the forward-backward
// algorithm. Sequence s is rows [cu_rows[s], cu_rows[s+1]) of logits [rows, L]; it may be empty.
// Unless gradient_scale is 0, logits become their gradient times gradient_scale, and `grads`
// accumulate theirs.
LossSum CrfLoss(Mat logits, absl::Span<const int32_t> cu_rows, const int32_t* targets,
    const Crf& crf, float gradient_scale, const CrfGrads& grads, Arena& arena);

// p [n, L] f32: probability of each label at each position of the sequence with logits [n, L] f32,
// over all sequences.
void CrfMarginals(ConstMat logits, const Crf& crf, Mat p);

// Finds the sequence with the highest score; among equal scores, the one whose labels are lowest,
// compared from the last word to the first. Returns false, with best[0, n) unspecified, if every
// sequence is forbidden or has a NaN. logits [n, L] f32, n > 0.
bool Viterbi(ConstMat logits, const Crf& crf, int* best);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_CRF_H_
