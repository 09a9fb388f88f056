// The exponential moving average of the weights.
#ifndef CLOZE_TASKS_UPDATE_WEIGHT_AVERAGE_H_
#define CLOZE_TASKS_UPDATE_WEIGHT_AVERAGE_H_

#include <algorithm>
#include <cstdint>

#include "core/tensor/param_store.h"
#include "tasks/update/sharded_params.h"

namespace cloze {

// Averages the weights of this rank's shard.
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

}  // namespace cloze

#endif  // CLOZE_TASKS_UPDATE_WEIGHT_AVERAGE_H_
