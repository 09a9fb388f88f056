// A training run: from a spec to a model folder, resumable at any step.
#ifndef CLOZE_TASKS_TRAINING_TRAINER_H_
#define CLOZE_TASKS_TRAINING_TRAINER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "encoder/model.h"
#include "proto/spec.h"
#include "tasks/feed.h"
#include "tasks/metrics.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/progress.h"
#include "tasks/training/run_lock.h"
#include "tasks/training/setup.h"

namespace cloze {

// The run directory holds the best model so far as a model folder (config.json, model.safetensors, tokenizer), spec.textproto,
// metrics.json, log.jsonl, cache/, and checkpoints step-00001234/.
class Trainer {
 public:
  struct Options {
    std::function<void(absl::string_view stage, int64_t done, int64_t total)> preparing;  // tokenising; may be empty
    const std::atomic<bool>* stop = nullptr;       // true: save, and end with kInterrupted after the step under way
    std::function<void(int64_t step)> after_step;  // may be empty
  };
  struct Summary {
    int64_t steps = 0;
    double loss = 0;     // of the last step
    std::string metric;  // by which the best model was kept; empty without validation
    MetricResults best;
  };

  // Validates, locks the run directory, tokenises, initialises or loads the model, or resumes from the newest checkpoint. Nothing of an
  // earlier run is changed when it fails.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(const LoadedSpec& loaded, const Options& options);

  // Trains to the last step. Call once.
  absl::StatusOr<Summary> Run();

 private:
  Trainer(const LoadedSpec& loaded, const Options& options) : loaded_(loaded), options_(options) {}

  absl::Status PrepareRunDirectory();
  absl::Status InitializeModel();
  void PlanSteps();
  absl::Status Resume();
  // Loss per target of the step, gradients accumulated.
  double ForwardBackward(const StepData& data);
  absl::Status TrainStep(const StepData& data);
  absl::StatusOr<MetricResults> EvaluateOn(int64_t max_examples);
  // A metric that does not exist is found before the first step.
  absl::Status CheckMetric();
  absl::Status EvaluateNow();
  absl::Status SaveBest();
  absl::Status Save();
  absl::Status WriteState(const std::string& folder) const;
  bool Stopped() const { return options_.stop != nullptr && *options_.stop; }
  std::string Path(absl::string_view name) const { return JoinPath(spec_.output().directory(), name); }

  const LoadedSpec loaded_;
  const TaskSpec& spec_ = loaded_.spec;
  Options options_;
  std::optional<RunLock> lock_;
  Setup setup_;
  DType compute_ = DType::kF32;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<Progress> progress_;

  int64_t total_steps_ = 0, evaluate_every_ = 0, save_every_ = 0;
  // What a checkpoint remembers beside weights and moments.
  int64_t step_ = 0, next_example_ = 0, skipped_ = 0, skipped_in_a_row_ = 0;
  double last_loss_ = 0;
  std::optional<double> best_value_;
  int64_t saved_step_ = -1;
  int failed_saves_ = 0;
  std::string metric_;
  MetricResults best_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_TRAINER_H_
