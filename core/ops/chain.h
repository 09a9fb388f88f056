// Linear chains over labels: the loss of a conditional random field, its marginals, and the best
// sequence.
#ifndef CLOZE_CORE_OPS_CHAIN_H_
#define CLOZE_CORE_OPS_CHAIN_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/ops/ops.h"

namespace cloze {

// Sequence y of n words scores sum_t logits[t, y_t] + start[y_0] + sum_t between[y_t, y_t+1] +
// end[y_n-1] (Lafferty et al. 2001); its probability is the softmax of that over all L^n sequences.
// -infinity forbids.
struct Chain {
  const float *start, *between, *end;  // [L], [L, L] from row to column, [L]
};
struct ChainGrads {
  float *start, *between, *end;  // as Chain, added to; or null
};

// Sum over sequences of -log of the targets' probability, by the forward-backward algorithm.
// Sequence s is rows [cu_rows[s], cu_rows[s+1]) of logits [rows, L]; it may be empty. Logits become
// their gradient times gradient_scale, and `grads` grow by theirs, unless that is 0.
LossSum ChainLoss(Mat logits, absl::Span<const int32_t> cu_rows, const int32_t* targets,
    const Chain& chain, float gradient_scale, const ChainGrads& grads, Arena& arena);

// p [n, L] f32: probability of each label at each place of the sequence with logits [n, L] f32,
// over all sequences.
void ChainMarginals(ConstMat logits, const Chain& chain, Mat p);

// Viterbi: the sequence with the highest score, of equal ones that with the lowest labels at the
// end. False, with best[0, n) unspecified, when all are forbidden, as sequences through NaN are.
// logits [n, L] f32, n > 0.
bool BestSequence(ConstMat logits, const Chain& chain, int* best);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_CHAIN_H_
