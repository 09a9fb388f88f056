// Training with distributed.local_steps: ranks take several steps on their own between averages.
#ifndef CLOZE_TASKS_UPDATE_OUTER_OPTIMIZER_H_
#define CLOZE_TASKS_UPDATE_OUTER_OPTIMIZER_H_

#include <vector>

#include "core/comm/ranks.h"
#include "core/tensor/param_store.h"
#include "proto/training.pb.h"
#include "tasks/update/sharded_params.h"

namespace cloze {

// DiLoCo (Douillard et al. 2023, algorithm 1) with the Nesterov momentum of torch.optim.SGD:
//   g = start - mean of the ranks' weights;  u = momentum u + g;  start -= rate (g + momentum u)
// The states of the inner optimizer become their mean over the ranks, so that all ranks have the
// same state and one checkpoint serves all.
class OuterOptimizer {
 public:
  // `inner`: the arrays of an optimizer that updates all parameters of `store` on each rank. The
  // pointers must outlive this.
  OuterOptimizer(ParamStore* store, const std::vector<StateArray>& inner,
      const DistributedSpec& spec, Ranks* ranks);

  // Returns an upper bound of the bytes of its arrays.
  static int64_t Bytes(const ParamStore& store, int ranks) {
    return 2 * sizeof(float) * Shard::MaxSize(ranks, store.grads().size());
  }

  // Remembers the weights, which must be the same on all ranks. Call before the first local step.
  void Begin();
  // Averages the ranks after their local steps: all have the same weights and states afterwards.
  void Step();

  // The momentum u of this rank's shard, as "outer.NAME".
  StateArray momentum() { return {"outer.", momentum_.as<float>(), ranks_}; }

 private:
  using Arrays = std::vector<float*>;  // weights, then the states
  Arrays At(const ParamSlice& slice) const;
  // Computes the result for one slice of the shard. of_ranks[r]: the arrays of rank r.
  void Update(const ParamSlice& slice, const std::vector<Arrays>& of_ranks);

  ParamStore* store_;
  std::vector<StateArray> inner_;
  DistributedSpec spec_;
  Ranks* ranks_;
  Shard shard_;
  std::vector<std::vector<ParamSlice>> owned_;  // by rank
  LargeMemory start_, momentum_;                // of the shard
};

}  // namespace cloze

#endif  // CLOZE_TASKS_UPDATE_OUTER_OPTIMIZER_H_
