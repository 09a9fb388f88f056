// The gradient of a step: the sum over its micro-batches, in an order that depends only on their
// numbers.
#ifndef CLOZE_TASKS_UPDATE_GRADIENT_SUM_H_
#define CLOZE_TASKS_UPDATE_GRADIENT_SUM_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/comm/ranks.h"
#include "core/tensor/param_store.h"

namespace cloze {

// Adds up gradients in the binary tree over the numbers 0 ... n - 1 in which the number of leaves
// of each left subtree is a power of two: ((0 + 1) + (2 + 3)) + 4. A rank can thus sum consecutive
// micro-batches on its own. Holds at most GradientBuffers() buffers besides the store's gradients.
class GradientSum {
 public:
  // `store` must outlive the sum.
  explicit GradientSum(ParamStore* store) : store_(store) {}

  // Calls `pass`, which adds the gradients of micro-batch `number` to those of the store; these are
  // zero at the first call. Numbers are consecutive from the first of this rank.
  void Add(int64_t number, absl::FunctionRef<void()> pass);
  // Sets the gradients in the shard of this rank to their sums over all micro-batches of all ranks,
  // and all others to zero. Rank r has added the micro-batches from starts[r] to starts[r + 1] - 1.
  // All gradients must be zero again before the next step.
  void Finish(Ranks& ranks, absl::Span<const int64_t> starts);
  // Adds the last micro-batch of this rank as Add does, then does what Finish does. A second thread
  // exchanges gradients with the other ranks while `pass` computes; `pass` must call its argument
  // with i when the gradients from i on are complete.
  using Complete = absl::FunctionRef<void(int64_t i)>;
  void AddLast(int64_t number, absl::FunctionRef<void(Complete)> pass, Ranks& ranks,
      absl::Span<const int64_t> starts);

 private:
  // The sum of micro-batches [first, first + size).
  struct Subtree {
    int64_t first = 0, size = 0;
    LargeMemory gradients = {};  // empty: in the store
  };
  // Moves the newest subtree out of the store.
  void KeepNewest();
  // Adds the newest subtree to the one before it.
  void Merge();
  // Computes the sums of this rank's shard from the subtrees of all ranks, from the last gradient
  // to the first. Calls wait(i) before it reads those from i on.
  void Reduce(
      Ranks& ranks, absl::Span<const int64_t> starts, absl::FunctionRef<void(int64_t i)> wait);
  // Ends the step.
  void Clear(const Ranks& ranks);

  ParamStore* store_;
  Subtree newest_;                  // in the store
  std::vector<Subtree> subtrees_;   // those before it
  std::vector<LargeMemory> spare_;  // zero
};

// Returns an upper bound of the bytes of the store's gradients and the buffers besides them on each
// of `ranks` ranks, for steps of up to `passes` micro-batches.
int64_t GradientBytes(const ParamStore& store, int64_t passes, int ranks);

// Returns the number of buffers that the sum of micro-batches 0 ... n - 1 needs; with `anywhere`,
// the most that the sum of any n consecutive micro-batches needs.
int GradientBuffers(int64_t n, bool anywhere = false);

}  // namespace cloze

#endif  // CLOZE_TASKS_UPDATE_GRADIENT_SUM_H_
