// AdamW over the parameter store: groups, clipping, state, and the moving average of the weights.
#ifndef CLOZE_TASKS_TRAINING_OPTIMIZER_H_
#define CLOZE_TASKS_TRAINING_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/param_store.h"
#include "proto/task.pb.h"

namespace cloze {

// Moments for every trainable parameter of `store`, which must outlive it, laid out as the store's
// gradients.
class Optimizer {
 public:
  // layer_decay lowers the rate of each layer below the store's highest.
  Optimizer(ParamStore* store, const OptimizerSpec& spec);

  // Global norm of the gradients.
  double GradNorm() const;
  // One step with gradients of norm `norm`, scaled down to clip_norm where they exceed it;
  // gradients become zero.
  void Step(double rate, double norm);
  // Drops the gradients.
  void Skip();
  // Exchanges the weights and their moving average; without one, nothing happens.
  void SwapAverage();

  // Steps taken; the power in the bias correction.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  absl::Span<float> m() { return m_.as<float>(); }
  absl::Span<float> v() { return v_.as<float>(); }
  // Moving average of the weights; empty without ema_decay. It starts as the weights that the store
  // had at construction.
  absl::Span<float> average() { return average_.as<float>(); }

 private:
  struct Piece {
    int64_t value, grad, n;
    bool decay;
    float rate;  // share of the full learning rate
  };
  void UpdateAverage();

  ParamStore* store_;
  OptimizerSpec spec_;
  std::vector<Piece> pieces_;  // the units of parallel work
  LargeMemory m_, v_, average_;
  int64_t steps_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_OPTIMIZER_H_
