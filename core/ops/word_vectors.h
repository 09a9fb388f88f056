// Word vectors: the loss of negative sampling (Mikolov et al. 2013, arXiv:1310.4546), and sparse
// updates of tables. All run on the calling thread. Rows have no gaps, and a multiple of 16
// columns.
#ifndef CLOZE_CORE_OPS_WORD_VECTORS_H_
#define CLOZE_CORE_OPS_WORD_VECTORS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/ops/kernels/word_vectors.h"
#include "core/tensor/mat.h"

namespace cloze {

// hidden [1, cols] = sum of rows `rows` of table [.., cols].
void SumTableRows(ConstMat table, absl::Span<const int32_t> rows, Mat hidden);

// Forward and backward of one hidden vector [1, cols] against `rows` of table [.., cols], which are
// groups of `group_size`: a target and its negatives. Returns the loss, the sum over rows of -log
// sigmoid(score) for targets and -log sigmoid(-score) for negatives, each at most 9.2. Sets factors
// [rows] to rate (label - sigmoid(score)); the caller then adds factors[i] `hidden` to the i-th of
// the rows. Adds -rate d loss / d hidden to gradient [1, cols].
double NegativeSampling(ConstMat hidden, ConstMat table, absl::Span<const int32_t> rows,
    int64_t group_size, float rate, absl::Span<float> factors, Mat gradient);

// table[u.row] += u.factor x[u.from] for each update u in order.
void AddRows(absl::Span<const RowUpdate> updates, ConstMat x, Mat table);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_WORD_VECTORS_H_
