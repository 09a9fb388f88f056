// The two halves of an optimizer step: the gradients of a micro-batch, and AdamW.
#ifndef CLOZE_TASKS_TRAINING_STEP_H_
#define CLOZE_TASKS_TRAINING_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/ops/kernels/adamw.h"
#include "core/tensor/param_store.h"
#include "proto/task.pb.h"
#include "tasks/task.h"

namespace cloze {

struct PassOptions {
  DType compute = DType::kF32;
  uint64_t seed = 0;       // of dropout
  float scale = 1;         // of the loss; 0: computes no gradients
  bool recompute = false;  // runtime.recompute
  // With a generator `scale` is of its loss, and this is of the model's loss over all tokens.
  float token_scale = 1;
};

// Forward and backward of one micro-batch. Accumulates the gradients of the trainable parameters.
// Returns the unscaled sum of the losses of the batch's targets.
double TrainingPass(Model& model, const Task& task, const Batch& batch, const PassOptions& options);

// AdamW over a parameter store, with clipping and a moving average of the weights. Holds the
// moments of the trainable parameters, in the layout of the store's gradients.
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
  // Starts the moving average, if there is one, with the present weights. The constructor does so.
  void StartAverage();
  // Exchanges the weights and their moving average, if there is one.
  void SwapAverage();

  // Sets the number of steps taken: the exponent in the bias correction.
  void set_steps(int64_t steps) { steps_ = steps; }
  absl::Span<float> m() { return m_.as<float>(); }
  absl::Span<float> v() { return v_.as<float>(); }
  // Moving average of the weights; empty without ema_decay.
  absl::Span<float> average() { return average_.as<float>(); }

 private:
  // A unit of parallel work.
  struct Piece {
    int64_t value, grad, n;
    bool decay;
    float rate;  // multiplies the learning rate
    ParamId param;
  };
  // Returns the settings of each piece for a step. With clip_updates the rate of a tensor is
  // divided by the root mean square of g / sqrt(v) if that is above 1 (StableAdamW).
  std::vector<AdamW> PieceSettings(const AdamW& all);
  // Calls f(weights, average, n) in parallel for parts of the weights, if there is an average.
  void ForAverage(absl::FunctionRef<void(float*, float*, int64_t)> f);

  ParamStore* store_;
  OptimizerSpec spec_;
  std::vector<Piece> pieces_;
  LargeMemory m_, v_, average_;
  int64_t steps_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_STEP_H_
