// AdamW over a parameter store, with clipping and a moving average of the weights.
#ifndef CLOZE_TASKS_TRAINING_OPTIMIZER_H_
#define CLOZE_TASKS_TRAINING_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/param_store.h"
#include "proto/task.pb.h"

namespace cloze {

// Holds the moments of the trainable parameters, in the layout of the store's gradients.
class Optimizer {
 public:
  // `store` must outlive the optimizer. With layer_decay, each layer below the store's highest has
  // a lower rate.
  Optimizer(ParamStore* store, const OptimizerSpec& spec);

  // Returns the global norm of the gradients.
  double GradNorm() const;
  // Takes one step; scales gradients of norm `norm` down to clip_norm if they exceed it. Sets the
  // gradients to zero.
  void Step(double rate, double norm);
  // Sets the gradients to zero.
  void Skip();
  // Starts the moving average, if there is one, with the present weights. The constructor does so.
  void StartAverage();
  // Exchanges the weights and their moving average, if there is one.
  void SwapAverage();

  // Steps taken: the exponent in the bias correction.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  absl::Span<float> m() { return m_.as<float>(); }
  absl::Span<float> v() { return v_.as<float>(); }
  // Moving average of the weights; empty without ema_decay.
  absl::Span<float> average() { return average_.as<float>(); }

 private:
  struct Piece {
    int64_t value, grad, n;
    bool decay;
    float rate;  // multiplies the learning rate
  };
  void UpdateAverage();

  ParamStore* store_;
  OptimizerSpec spec_;
  std::vector<Piece> pieces_;  // units of parallel work
  LargeMemory m_, v_, average_;
  int64_t steps_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_OPTIMIZER_H_
