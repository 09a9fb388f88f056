// The memory that ops take from an arena and give back, taken and given back without the work: for
// plans on a counting arena. Each function mirrors the op of its name.
#ifndef CLOZE_CORE_OPS_SCRATCH_H_
#define CLOZE_CORE_OPS_SCRATCH_H_

#include <cstdint>

#include "core/tensor/arena.h"

namespace cloze {

// AddColumnSums and ActivationBackward of [rows, cols].
void CountColumnSums(Arena& arena, int64_t rows, int64_t cols);
// NormBackward of [rows, cols].
void CountNormBackward(Arena& arena, int64_t rows, int64_t cols);
// AttentionForward and AttentionBackward with sequences of at most `longest` tokens.
void CountAttention(Arena& arena, int64_t longest, int64_t head_dim);
// EmbeddingBackward of dx [rows, cols], whatever the ids.
void CountEmbeddingBackward(Arena& arena, int64_t rows, int64_t cols);
// The losses of ops.h over `rows` rows.
void CountRowLoss(Arena& arena, int64_t rows);
// ChainLoss of logits [rows, labels], whatever the sequences.
void CountChainLoss(Arena& arena, int64_t rows, int64_t labels, bool gradients);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_SCRATCH_H_
