// Updates the parameters of a model by the rules of its spec; each rank updates its shard.
#ifndef CLOZE_TASKS_UPDATE_OPTIMIZER_H_
#define CLOZE_TASKS_UPDATE_OPTIMIZER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/ranks.h"
#include "core/tensor/param_store.h"
#include "proto/training.pb.h"
#include "tasks/update/sharded_params.h"
#include "tasks/update/update_rule.h"

namespace cloze {

// The exponential moving average of the weights of this rank's shard.
class WeightAverage {
 public:
  // `decay` 0: no average; then all methods do nothing. The pointers must outlive this.
  WeightAverage(ParamStore* store, const ShardedParams* params, float decay)
      : store_(store), params_(params), decay_(decay),
        average_(LargeMemory(decay > 0 ? params->shard().size() * sizeof(float) : 0)) {
    Start();
  }

  // Starts the average with the present weights. The constructor does so.
  void Start() {
    ForShard([](float* weights, float* average, int64_t n) { std::copy_n(weights, n, average); });
  }
  // Adds the weights after step `step`, counted from 1.
  void Add(int64_t step) {
    const auto mix = static_cast<float>(1 - std::min(decay_, (1.0 + step) / (10.0 + step)));
    ForShard([&](const float* weights, float* average, int64_t n) {
      for (int64_t i = 0; i < n; ++i) average[i] += mix * (weights[i] - average[i]);
    });
  }
  // Exchanges the weights of the shard and their average.
  void Swap() {
    ForShard([](float* weights, float* average, int64_t n) {
      std::swap_ranges(weights, weights + n, average);
    });
  }
  bool exists() const { return decay_ > 0; }
  absl::Span<float> values() const { return average_.as<float>(); }

 private:
  // Calls f(weights, average, n) in parallel for parts of the shard, if there is an average.
  template <typename F>
  void ForShard(F f) {
    if (!exists()) return;
    params_->ForOwned([&](const ParamSlice& slice, int64_t offset) {
      f(store_->values().data() + slice.value, &values()[offset], slice.n);
    });
  }

  ParamStore* store_;
  const ShardedParams* params_;
  double decay_;
  LargeMemory average_;
};

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
