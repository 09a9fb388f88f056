// The model of a run, its optimizer, and one optimizer step.
#ifndef CLOZE_TASKS_TRAINING_MODEL_TRAINER_H_
#define CLOZE_TASKS_TRAINING_MODEL_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/types/span.h"
#include "core/comm/ranks.h"
#include "encoder/model.h"
#include "proto/state.pb.h"
#include "tasks/batcher.h"
#include "tasks/console/progress.h"
#include "tasks/metrics.h"
#include "tasks/training/memory.h"
#include "tasks/training/run_inputs.h"
#include "tasks/update/gradient_sum.h"
#include "tasks/update/optimizer.h"
#include "tasks/update/outer_optimizer.h"
#include "tasks/update/state_file.h"

namespace cloze {

class ModelTrainer {
 public:
  // Allocates the model with zero weights. `inputs` and `ranks` must outlive this.
  ModelTrainer(const RunInputs& inputs, const TrainingNeed& need, Ranks* ranks);

  // Sets the start weights, from model.start_from or from the seed, and creates the optimizer.
  // Appends lines for the user to `notes`. Errors of Model::Load.
  absl::Status Initialize(std::vector<std::string>* notes);

  // First half of a step. Each rank computes its share of the micro-batches. Adds up their
  // gradients, with local_steps only its own, in the order of GradientSum; returns the mean loss
  // over all targets.
  double ForwardBackward(const StepData& data);
  // Tokens and seconds of each rank in the last step.
  absl::Span<const RankWork> work() const { return work_; }

  struct StepResult {
    double grad_norm;     // before clipping; with local_steps the mean of the ranks
    std::string skipped;  // why the weights were not updated; empty if they were
  };
  // Second half: updates the weights with learning rate `rate`, or skips the step if the loss or
  // the gradient is not finite. Sets the gradients to zero. Counts the step in *state.
  StepResult Update(double loss, double rate, TrainerState* state);

  // Metrics on the examples of `store`, at most `max_examples` (0: all), and on evaluation.pairs
  // (`probe`: on the first pair), computed in EvaluationType(). kInterrupted if *stop.
  absl::StatusOr<MetricResults> Evaluate(const ExampleStore& store, int64_t max_examples,
      const std::atomic<bool>* stop, bool probe = false);

  // Puts the moving average of the weights (with optimizer.ema_decay) into the model until the
  // returned object is destroyed.
  auto UseAverage() {
    optimizer_->SwapAverage();
    return absl::Cleanup([this] { optimizer_->SwapAverage(); });
  }

  // Puts `weights`, as Weights() returned them, into the model until the returned object is
  // destroyed. Does nothing if they are empty.
  auto UseWeights(std::vector<float>* weights) {
    SwapWeights(weights);
    return absl::Cleanup([this, weights] { SwapWeights(weights); });
  }
  // Returns a copy of all weights of the model.
  std::vector<float> Weights() {
    const absl::Span<const float> values = model_.params().values();
    return {values.begin(), values.end()};
  }

  // Gives the exact weights to all ranks, which must call it, before rank 0 writes them.
  void GatherWeights() { optimizer_->GatherWeights(); }
  // Writes a model folder (with LoRA: an adapter folder) with the tokenizer, samples and the values
  // fitted by the evaluation that gave `results`. The caller moves its files to the folder `home`.
  // kInternal if a weight is not finite.
  absl::Status WriteModel(
      const std::string& folder, const std::string& home, const MetricResults& results);
  // Returns a hash of all weights, which GatherWeights makes the same on all ranks.
  std::string HashWeights() const;
  // Returns an upper bound of the bytes written by WriteModel and, if asked, of the moments.
  int64_t Bytes(bool moments) const;

  // Reads weights and moments of a checkpoint of this run, in `state`. kMismatch if something is
  // missing or if a LoRA's base has changed.
  absl::Status Resume(const std::string& checkpoint, const TrainerState& state);
  // Starts with the weights of a checkpoint of another run. Notes and errors as Initialize.
  absl::Status LoadWeights(const std::string& checkpoint, std::vector<std::string>* notes);

  absl::Span<float> gradients() { return model_.params().grads(); }
  StateFile& state_file() { return *state_file_; }
  // With distributed.local_steps: gives all ranks the same weights and moments.
  void AverageRanks() {
    if (outer_ != nullptr) outer_->Step();
  }

 private:
  // The loss of a step with Objective::spans_batches().
  struct SpanningLoss {
    double loss;                                // mean
    int64_t first;                              // batch that is gradients[0]
    std::vector<std::vector<float>> gradients;  // of outputs; empty: Train computes the loss
  };
  // Computes the loss over the batches whose gradients are added: those of the step or, with
  // local_steps, those from `first` to `end` - 1, which this rank computes. Adds to the seconds.
  SpanningLoss SpanBatches(const StepData& data, int64_t first, int64_t end, RankWork* work);
  void SwapWeights(std::vector<float>* weights);

  const RunInputs& inputs_;
  const TaskSpec& spec_ = inputs_.loaded.spec;
  Ranks& ranks_;
  std::vector<RankWork> work_;
  Model model_;
  GradientSum sum_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<OuterOptimizer> outer_;  // null: the ranks take each step together
  std::unique_ptr<StateFile> state_file_;
};

// Counts the last step of `state` as skipped.
void CountSkipped(TrainerState* state);
// kInternal if too many of the last steps of a run were skipped: ten consecutive ones, or more than
// 1 % of the last thousand.
absl::Status CheckSkipped(const TrainerState& state);
// kInternal if all steps of a run were skipped.
absl::Status CheckLearned(const TrainerState& state);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_MODEL_TRAINER_H_
