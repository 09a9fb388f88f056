// Updates the parameters of a model by the rules of its spec; each rank updates its shard.
#ifndef CLOZE_TASKS_UPDATE_OPTIMIZER_H_
#define CLOZE_TASKS_UPDATE_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/ranks.h"
#include "core/tensor/param_store.h"
#include "proto/training.pb.h"
#include "tasks/update/sharded_params.h"
#include "tasks/update/update_rule.h"
#include "tasks/update/weight_average.h"

namespace cloze {

// The update rules over a parameter store, with clipping and a moving average of the weights.
class Optimizer {
 public:
  // `store` and `ranks` must outlive the optimizer. With layer_decay, each layer below the store's
  // highest has a lower rate. `product`: the ProductType of the passes (see ShardedParams).
  Optimizer(ParamStore* store, const OptimizerSpec& spec, Ranks* ranks = &OneRank(),
      DType product = DType::kF32);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // The memory of an optimizer, for the plan of a run.
  struct Memory {
    int64_t bytes;      // upper bound for each rank
    std::string parts;  // "two moments, average, Muon"
  };
  static Memory MemoryOf(
      const ParamStore& store, const OptimizerSpec& spec, int ranks, DType product);

  // Returns the global norm of the gradients, of which each rank needs its shard.
  double GradNorm() const { return params_.GradNorm(); }
  // Takes one step; scales gradients of norm `norm` down to clip_norm if they exceed it. Sets the
  // gradients to zero; those of other shards must be zero already. Gives the new weights to all
  // ranks, as passes read them.
  void Step(double rate, double norm);
  // Starts the moving average, if there is one, with the present weights. The constructor does so.
  void StartAverage() { average_.Start(); }
  // Exchanges the weights and their moving average, if there is one. Gradients must be zero.
  void SwapAverage();
  // Gives the exact weights to all ranks. Call before anything but a pass reads them.
  void GatherWeights() { params_.GatherWeights(); }

  // Sets the number of steps taken: the exponent in the bias correction.
  void set_steps(int64_t steps) { steps_ = steps; }
  // States of the rules and, with ema_decay, the average.
  std::vector<StateArray> arrays();

 private:
  // Gives slices of the shard to their rules.
  void UpdateSlices(const UpdateStep& step);

  ParamStore* store_;
  OptimizerSpec spec_;
  std::vector<std::unique_ptr<UpdateRule>> rules_;
  std::vector<ParamUpdate> updates_;  // by ParamId
  ShardedParams params_;
  std::vector<LargeMemory> states_;  // of the shard, as kStatePrefixes
  WeightAverage average_;
  int64_t steps_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_UPDATE_OPTIMIZER_H_
