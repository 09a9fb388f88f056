// Terms of attention scores that depend on the distance between query and key.
#ifndef CLOZE_CORE_OPS_RELATIVE_H_
#define CLOZE_CORE_OPS_RELATIVE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/ops/kernels/relative.h"
#include "core/tensor/arena.h"

namespace cloze {

// Adds to the score of query i and key j, with r = rows[i - j + longest - 1],
//   bias[r, head] + (q_i . keys[r, head] + k_j . queries[r, head]) / sqrt(terms dim),
// where terms is 1 + the number of tables of vectors; it divides q_i . k_j too.
struct RelativePositions {
  absl::Span<const int32_t> rows = {};  // [2 longest - 1]
  ConstMat bias = {};                   // f32 [n, heads], or empty
  ConstMat keys = {}, queries = {};     // [n, heads dim] of the type of qkv, or empty
  int terms() const { return 1 + !keys.empty() + !queries.empty(); }
};
// Gradients: that of the bias is accumulated, those of the vectors are overwritten. Empty: not
// computed (bias), or there is no such table.
struct RelativeGrads {
  Mat bias = {}, keys = {}, queries = {};
};

// The tables of one call of attention, packed for the kernels, and their gradients. Private to
// core/ops.
class RelativeScores {
 public:
  // Allocates for sequences of up to `longest` tokens. `parts`: 0 for the forward pass; otherwise
  // the number of sums of gradients of one head, which are added in order.
  RelativeScores(const RelativePositions& positions, int heads, int64_t dim, DType type,
      int64_t longest, int64_t parts, Arena& arena);

  void Pack();
  // Return the arguments for a head; those of ArgsOfPart include the gradient sums of `part`,
  // zeroed.
  RelativeArgs Args(int64_t head) const;
  RelativeArgs ArgsOfPart(int64_t head, int64_t part) const;
  // Adds up the parts into `grads`.
  void Reduce(const RelativeGrads& grads) const;

 private:
  struct Table {
    ConstMat vectors;
    float *transposed = nullptr, *rows = nullptr, *pairs = nullptr, *sums = nullptr,
          *total = nullptr;    // total: [heads, n, dim]
    int32_t* index = nullptr;  // [2 span] row of each column
  };
  // Returns the row of a distance, clamped to the distances that pairs of tokens have.
  int32_t RowOf(int64_t distance) const;

  RelativePositions positions_;
  int64_t heads_, dim_, longest_, parts_, span_, table_size_;
  DType type_;
  float scale_;
  float *bias_ = nullptr, *dbias_ = nullptr;  // [heads, 2 span], [heads, parts, 2 span]
  Table keys_, queries_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_RELATIVE_H_
