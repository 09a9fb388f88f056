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
#include "proto/state.pb.h"
#include "tasks/batcher.h"
#include "tasks/metrics.h"
#include "tasks/run/run_lock.h"
#include "tasks/training/memory.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/pace.h"
#include "tasks/training/progress.h"
#include "tasks/training/setup.h"
#include "tasks/training/skipped_steps.h"

namespace cloze {

// The run directory holds the best model so far as a model folder (config.json, model.safetensors,
// tokenizer, samples.safetensors and metrics.json, with their MANIFEST), spec.textproto, log.jsonl,
// cache/, and checkpoints step-00001234/. With LoRA an adapter stands in place of the model.
class Trainer {
 public:
  struct Options {
    std::function<void(absl::string_view stage, int64_t done, int64_t total)> preparing =
        {};  // tokenising; may be empty
    const std::atomic<bool>* stop =
        nullptr;  // true: save, and end with kInterrupted after the step under way
    std::function<void(int64_t step)> after_step = {};  // may be empty
    // Sees the gradients before each optimizer step, and may change them; may be empty.
    std::function<void(int64_t step, absl::Span<float> gradients)> on_gradients = {};
    std::function<double()> clock = {};  // seconds, monotonic; empty: the system's
    std::string fork = {};  // run directory whose newest checkpoint gives the first weights;
                            // ignored when there is something to resume
  };
  struct Summary {
    int64_t steps = 0;
    double loss = 0;     // of the last step
    std::string metric;  // by which the best model was kept; empty without validation
    MetricResults best;
  };

  // Validates, locks the run directory, tokenises, initialises or loads the model, or resumes from
  // the newest checkpoint. Nothing of an earlier run is changed when it fails, and nothing is left
  // of a new one but, when it was interrupted, finished parts of the token cache.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const LoadedSpec& loaded, const Options& options);

  // The spec with what the run has chosen: batch.micro_tokens.
  const TaskSpec& spec() const { return spec_; }

  // Trains to the last step. Call once.
  absl::StatusOr<Summary> Run();

 private:
  Trainer(const LoadedSpec& loaded, const Options& options) : loaded_(loaded), options_(options) {}

  absl::Status Start();
  // Leaves no trace of a run that Start could not begin.
  void Undo(Exit why);
  absl::Status PrepareRunDirectory();
  // Looks for the newest checkpoint of this run, and takes over the micro-batch that the run has;
  // kMismatch when its spec is another.
  absl::Status FindRun();
  absl::Status ChooseMicroBatch();
  absl::Status InitializeModel();
  void PlanSteps();
  absl::Status Resume();
  // Starts with the weights of options_.fork's newest checkpoint.
  absl::Status Fork();
  // Loss per target of the step, gradients accumulated.
  double ForwardBackward(const StepData& data);
  // `waited`: seconds that the data were waited for.
  absl::Status TrainStep(const StepData& data, double waited);
  // Passes over a step whose loss or gradient (`what`) is not finite; an error when there are too
  // many.
  absl::Status SkipStep(absl::string_view what);
  absl::StatusOr<MetricResults> EvaluateOn(int64_t max_examples);
  // A metric that does not exist is found before the first step.
  absl::Status CheckMetric();
  // Is nothing left to do, as the run is over or the metric got no better for `patience`
  // evaluations?
  bool Finished() const;
  absl::Status LoadCheckpoint(const std::string& folder);
  // With the moving average of the weights, where there is one.
  absl::Status EvaluateNow();
  absl::Status EvaluateWeights();
  absl::Status SaveBest();
  // Sees to it that the run directory holds the best model: without an evaluation the last one,
  // which also replaces it when it is damaged.
  absl::Status FinishModel();
  // Is it time for what happens every `every` steps, or, when nobody knows the number of steps, ten
  // times a run?
  bool Due(int64_t every) const;
  absl::Status Save();
  // `error`, after saving what can be saved.
  absl::Status SaveBefore(const absl::Status& error);
  // Says once when a file that was read for this run is not what it was.
  void WatchSources();
  // What the run makes, a model folder or, for LoRA, an adapter folder: weights, tokenizer,
  // samples.
  absl::Status WriteModel(const std::string& folder) const;
  absl::Status WriteState(const std::string& folder) const;
  // Bytes that WriteModel writes, at most.
  int64_t ModelBytes() const;
  bool Stopped() const { return options_.stop != nullptr && *options_.stop; }
  std::string Path(absl::string_view name) const {
    return JoinPath(spec_.output().directory(), name);
  }

  // A checkpoint to go on from.
  struct Found {
    std::string path;
    TrainerState state;
  };

  LoadedSpec loaded_;
  const TaskSpec& spec_ = loaded_.spec;
  Options options_;
  std::optional<RunLock> lock_;
  std::optional<Found> found_;
  Setup setup_;
  DType compute_ = DType::kF32;
  TrainingNeed need_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<Progress> progress_;

  std::unique_ptr<Pace> pace_;
  int64_t evaluate_every_ = 0, save_every_ = 0;  // 0: by the clock
  // What a checkpoint remembers beside weights and moments.
  int64_t step_ = 0, next_example_ = 0, skipped_ = 0, best_step_ = 0;
  SkippedSteps recently_skipped_;
  double last_loss_ = 0;
  std::string metric_;
  std::optional<double> best_value_;
  MetricResults best_;
  bool evaluation_due_ = false;
  int64_t evaluations_without_best_ = 0;
  double seconds_ = 0;  // spent by earlier processes
  std::string forked_from_;

  double done_ = 0, done_before_ = 0;  // share of the run, now and before the last step
  int64_t saved_step_ = 0;
  int failed_saves_ = 0;
  bool cache_is_new_ = false, sources_changed_ = false;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_TRAINER_H_
