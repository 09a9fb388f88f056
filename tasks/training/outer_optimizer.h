// Training with distributed.local_steps: ranks take several steps on their own between averages.
#ifndef CLOZE_TASKS_TRAINING_OUTER_OPTIMIZER_H_
#define CLOZE_TASKS_TRAINING_OUTER_OPTIMIZER_H_

#include <array>
#include <vector>

#include "core/comm/ranks.h"
#include "core/tensor/param_store.h"
#include "proto/training.pb.h"
#include "tasks/training/optimizer.h"

namespace cloze {

// DiLoCo (Douillard et al. 2023, algorithm 1) with the Nesterov momentum of torch.optim.SGD:
//   g = start - mean of the ranks' weights;  u = momentum u + g;  start -= rate (g + momentum u)
// The moments of AdamW become their mean over the ranks, so that all ranks have the same state and
// one checkpoint serves all.
class OuterOptimizer {
 public:
  // `inner` updates all parameters of `store` on each rank. The pointers must outlive this.
  OuterOptimizer(ParamStore* store, Optimizer* inner, const DistributedSpec& spec, Ranks* ranks);

  // Remembers the weights, which must be the same on all ranks. Call before the first local step.
  void Begin();
  // Averages the ranks after their local steps: all have the same weights and moments afterwards.
  void Step();

  // The momentum u of this rank's shard, as "outer.NAME".
  StateArray momentum() { return {"outer.", momentum_.as<float>(), ranks_}; }

 private:
  using Piece = Optimizer::Piece;
  using Arrays = std::array<float*, 3>;  // weights, m, v
  Arrays At(const Piece& piece) const;
  // Computes the result for one piece of the shard. of_ranks[r]: the arrays of rank r.
  void Update(const Piece& piece, const std::vector<Arrays>& of_ranks);

  ParamStore* store_;
  Optimizer* inner_;
  DistributedSpec spec_;
  Ranks* ranks_;
  Shard shard_;
  std::vector<std::vector<Piece>> owned_;  // by rank
  LargeMemory start_, momentum_;           // of the shard
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_OUTER_OPTIMIZER_H_
