// The objective of a task: the sequences of a batch, their loss, and the training pass.
#ifndef CLOZE_TASKS_OBJECTIVE_H_
#define CLOZE_TASKS_OBJECTIVE_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "encoder/model.h"
#include "tasks/data/example_store.h"

namespace cloze {

// Properties of the data that decide how many rows of a batch have a target.
struct DataShape {
  double mean_length = 0;  // tokens of a sequence
  double words = 1;        // words per token
};
DataShape ShapeOfData(const DataStats& stats);

// Settings of a pass that trains.
struct PassOptions {
  DType compute = DType::kF32;
  uint64_t seed = 0;       // of dropout
  float scale = 1;         // of the loss: 1 / the step's sum of LossWeight; 0: no gradients
  bool recompute = false;  // runtime.recompute
  float token_scale = 1;   // of a loss over all tokens: 1 / the step's tokens
  // See Pass. Tasks that train by several passes over a batch do not use it.
  const absl::FunctionRef<void(int layer)>* complete = nullptr;
  // If Objective::spans_batches(): the gradients of Outputs. Null: the batch is the whole step.
  const std::vector<float>* output_gradients = nullptr;

  // Returns a pass of training; `batch` must outlive it.
  Pass NewPass(Model& model, const Batch& batch) const;
};

// Const methods are thread-safe.
class Objective {
 public:
  virtual ~Objective() = default;
  // Returns the sequences to train in place of `example` when the share `done` of the run is done.
  // A sequence with `joined` gets into the batch of the one before.
  virtual std::vector<Example> Sequences(Example example, double /*done*/) const {
    return {std::move(example)};
  }
  // Sets rows and labels of sequence `number` if the store does not hold them in their final form,
  // for example because they are drawn anew each time. `done` is the share of the run that is done
  // (1 in evaluations). A pure function.
  virtual void PrepareExample(uint64_t /*number*/, double /*done*/, Example*) const {}

  // Forward and backward of one micro-batch, in an empty arena. Accumulates the gradients of the
  // trainable parameters. Returns the unscaled sum of the losses of the batch's targets; a task
  // with several losses adds the others, each times its scale / options.scale. By default one pass
  // with Loss.
  virtual double Train(Model& model, const Batch& batch, const PassOptions& options) const;
  // -- A loss that compares the outputs of all batches of a step.
  // True if the objective has one. A step of several batches calls Outputs for each, StepLoss once,
  // and Train for each with PassOptions::output_gradients: forward twice with the same dropout, so
  // that only the activations of one batch are in memory (Gao et al. 2021, "GradCache").
  virtual bool spans_batches() const { return false; }
  // Returns what StepLoss reads of a batch, from a forward pass with the dropout of Train.
  virtual std::vector<float> Outputs(
      Model& /*model*/, const Batch& /*batch*/, const PassOptions& /*options*/) const {
    return {};
  }
  // Returns the mean loss of a step. The outputs of its batches become their gradients. Uses the
  // model's arena.
  virtual double StepLoss(Model& /*model*/, absl::Span<const Batch> /*step*/,
      absl::Span<std::vector<float>> /*outputs*/) const {
    return 0;
  }
  // Returns keys of the texts of an example that a step may have only once. An example with one
  // that the step has waits for the next step. By default none.
  virtual std::vector<uint64_t> TextKeys(const Example& /*example*/) const { return {}; }

  // Runs the passes of an evaluation without its metrics, to plan memory and time.
  virtual void Infer(Model& model, const Batch& batch, DType compute) const;
  // Returns the summed loss of `logits`, which belong to the batch's targets from `first` on; with
  // scale != 0, logits become their gradient times scale. By default the cross entropy.
  virtual LossSum Loss(const Head& head, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const;
  // Returns Loss as the function that Head::Loss calls. All must outlive it.
  auto LossOf(const Head& head, const Pass& pass) const {
    return [this, &head, &pass](Mat logits, int64_t first, float scale, Arena& arena) {
      return Loss(head, pass, logits, first, scale, arena);
    };
  }
  // Forward of `model` and, if pass.training and scale != 0, backward: TrainingPass with Loss.
  LossSum RunPass(const Model& model, const Pass& pass, float scale) const {
    return TrainingPass(model.backbone(), model.head(), pass, scale, LossOf(model.head(), pass));
  }

  // The divisor of a batch's loss, to be summed over all batches of a step. By default the number
  // of targets.
  virtual double LossWeight(const Batch& batch) const {
    return static_cast<double>(batch.targets.size());
  }
  // Returns the training loss of a model that has learned only how frequent each label or token is:
  // the entropy of the targets. The loss stays there until the model uses its input. NaN if the
  // task has no such loss.
  virtual absl::StatusOr<double> ChanceLoss(const ExampleStore& /*train*/) const {
    return std::numeric_limits<double>::quiet_NaN();
  }
  // Upper bound, with some room, of the rows with a target among `rows` rows; `examples` (0:
  // unknown) limits the sequences.
  virtual int64_t TargetRows(int64_t rows, int64_t examples, const DataShape& data) const = 0;
  // Returns a batch for dry runs: `rows` rows in sequences of at most `longest`, at most `targets`
  // targets.
  virtual Batch DryBatch(int64_t rows, int64_t longest, int64_t targets) const;
};

// For objectives: calls `visit` with up to 100,000 examples, evenly spaced.
absl::Status ForSomeExamples(
    const ExampleStore& store, absl::FunctionRef<void(const Example& example)> visit);
// For objectives: the entropy, in nats, of outcomes with these counts.
double Entropy(absl::Span<const double> counts);
// For objectives: `share` of `rows`, with some room, at most `rows`.
int64_t ShareOfRows(int64_t rows, double share);

}  // namespace cloze

#endif  // CLOZE_TASKS_OBJECTIVE_H_
