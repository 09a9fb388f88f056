// A training run: from a spec to a model folder, resumable at any step.
#ifndef CLOZE_TASKS_TRAINING_TRAINER_H_
#define CLOZE_TASKS_TRAINING_TRAINER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/comm/ranks.h"
#include "proto/spec.h"
#include "tasks/batcher.h"
#include "tasks/choice.h"
#include "tasks/console/progress.h"
#include "tasks/run/run_folder.h"
#include "tasks/training/learner.h"
#include "tasks/training/schedule.h"

namespace cloze {

class Trainer {
 public:
  struct Options {
    // Progress of tokenizing; may be empty.
    std::function<void(absl::string_view stage, int64_t done, int64_t total)> preparing = {};
    // True: save and return kInterrupted after the current step. May be null.
    const std::atomic<bool>* stop = nullptr;
    // Called after each step; may be empty.
    std::function<void(int64_t step)> after_step = {};
    // Called with the gradients before each update, may change them; may be empty.
    std::function<void(int64_t step, absl::Span<float> gradients)> on_gradients = {};
    // Seconds, monotonic.
    std::function<double()> clock = SteadySeconds;
    // Run directory whose newest checkpoint gives the start weights; ignored by a run that resumes.
    std::string fork = {};
    // The processes that train together.
    Ranks* ranks = &OneRank();
    // Name and version of the program, for about.json.
    std::string program = {};
    // Of a run that shares the streams of an earlier one; a run that resumes knows its own.
    MadeStores made = {};
  };
  struct Summary {
    int64_t steps = 0;
    double loss = 0;     // of the last step
    Metric metric = {};  // selects the best model; without a name if there is no validation
    MetricResults best;
  };

  // Verifies the spec, locks the run directory, tokenizes, and initializes the model, loads it or
  // resumes from the newest checkpoint. After an error an earlier run is unchanged, and nothing is
  // left of a new one except, if it was interrupted, finished parts of the token cache.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const LoadedSpec& loaded, const Options& options);

  // The spec, with the batch.micro_tokens that the run has chosen.
  const TaskSpec& spec() const { return spec_; }
  // The stores of its data.
  MadeStores stores() const;

  // Trains to the end. Call once.
  absl::StatusOr<Summary> Run();

 private:
  Trainer(const LoadedSpec& loaded, const Options& options) : loaded_(loaded), options_(options) {}

  // kMismatch, naming the rank, if ranks differ in program, spec or instruction set.
  absl::Status CheckRanks();
  absl::Status Start();
  // Reads the state of the newest checkpoint, takes over its micro-batch and share_rule, and
  // returns its path; "" if there is none. kMismatch if it belongs to another spec.
  absl::StatusOr<std::string> FindRun();
  // Finds the run, and prepares its data. Rank 0 sets the names of the stores in *made; the others
  // read them. kMismatch if the training data have changed.
  absl::Status PrepareRun(BuildOptions build, MadeStores* made, std::string* checkpoint);
  absl::Status CreateLearner();
  // Checks the model of a directory that has no checkpoint; returns "".
  absl::StatusOr<std::string> CheckModelWithoutCheckpoints();
  absl::Status PlanSteps();
  // Before the first step, returns an error if evaluation.metric is unknown or differs from the
  // metric by which a resumed run has chosen its best model.
  absl::Status CheckMetric();
  absl::Status Resume(const std::string& checkpoint);
  // Makes sure that the run directory holds the best model of a resumed run: a kill may have left
  // part of a later one. Restores it from its checkpoint, or forgets it so that the next evaluation
  // saves a model. Changes the learner.
  absl::Status RestoreBest();
  // Starts with the weights of the newest checkpoint in options_.fork.
  absl::Status Fork();

  // True between two averages of distributed.local_steps, when no checkpoint can be written.
  bool BetweenAverages() const;
  // Sets the time, from the clock of rank 0, and whether to stop, which any rank may ask for.
  void Synchronize();
  // `waited`: seconds that the step waited for its data.
  absl::Status Step(const StepData& data, double waited);
  // After twice the warm-up, once a run: says so if the loss is still that of a model that ignores
  // its input. `before`: share of the run that was done before the last step.
  absl::Status NoteIfNotLearning(double before);
  // Saves that fail in a row before the run ends.
  static constexpr int kMaxFailedSaves = 3;
  // Evaluates, and saves the model if it is the best; of equal ones, the last is. An evaluation
  // that is stopped stays due.
  absl::Status Evaluate();
  // Returns the name of the metric that selects the best model: the spec's, else the first result.
  std::string MetricOf(const MetricResults& results) const;
  // Saves the model, which is the best. If the disk fails, keeps it in memory and goes on, unless
  // the run ends here.
  absl::Status KeepBest(const MetricResults& results, double value);
  // Tries again to save the best model that is kept in memory, if there is one.
  absl::Status SaveUnsaved();
  // Saves the model as the one of `step`. Rank 0 needs the exact weights (GatherWeights).
  absl::Status WriteBest(int64_t step, const MetricResults& results);
  // Saves a checkpoint unless this step has one. First saves the best model: a run that resumes at
  // a checkpoint finds it. Only reports the first failures, unless `last`.
  absl::Status Save(bool last = false);
  absl::Status WriteState(const std::string& folder);
  // Returns `error` after saving what can be saved.
  absl::Status SaveBefore(const absl::Status& error);
  // Reports once if a data file has changed since it was read.
  void WatchSources();
  // True if nothing is left to do: the run or the patience is over.
  bool Finished() const;
  // Makes sure that the run directory holds the best model; without validation, the last one.
  absl::Status FinishModel();

  // Returns what the run has reached.
  absl::StatusOr<Summary> Summarize() const;

  Ranks& ranks() const { return *options_.ranks; }

  LoadedSpec loaded_;
  const TaskSpec& spec_ = loaded_.spec;
  Options options_;
  DType compute_ = DType::kF32;
  std::optional<RunFolder> folder_;
  Setup setup_;
  TrainerState state_;  // fields that WriteState sets: as of the last checkpoint
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<Pace> pace_;
  std::unique_ptr<Progress> progress_;
  int64_t evaluate_every_ = 0, save_every_ = 0;  // steps; 0: ten times a run
  MetricResults latest_;                         // of the last evaluation of this process
  // The best model if it could not be saved yet.
  struct Unsaved {
    int64_t step;
    double value;
    MetricResults results;
    std::vector<float> weights;  // empty on other ranks than the first
  };
  std::optional<Unsaved> unsaved_;
  bool sources_changed_ = false, stopped_ = false;
  bool keeps_spec_ = false;  // the run's spec stays as it is, because its metrics belong to it
  double seconds_ = 0;       // by the clock
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_TRAINER_H_
