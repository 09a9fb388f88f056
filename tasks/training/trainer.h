// A training run: from a spec to a model folder, resumable at any step.
#ifndef CLOZE_TASKS_TRAINING_TRAINER_H_
#define CLOZE_TASKS_TRAINING_TRAINER_H_

#include <future>
#include <memory>

#include "core/base/json.h"
#include "tasks/training/best_model.h"
#include "tasks/training/checkpoints.h"
#include "tasks/training/training_run.h"

namespace cloze {

class Trainer {
 public:
  using Options = RunOptions;
  struct Summary {
    int64_t steps = 0;
    double loss = 0;     // of the last step
    Metric metric = {};  // selects the best model; without a name if there is no validation
    MetricResults best;
    OrderedJson result;  // DescribeResult; null if there is none
  };

  // Verifies the spec, locks the run directory, tokenizes, and initializes the model, loads it or
  // resumes from the newest checkpoint. After an error an earlier run is unchanged, and nothing is
  // left of a new one except, if it was interrupted, finished parts of the token cache.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      const LoadedSpec& loaded, const Options& options);

  // The spec, with the batch.micro_tokens that the run has chosen.
  const TaskSpec& spec() const { return run_.spec(); }
  // The stores of its data.
  MadeStores stores() const { return run_.inputs->stores(); }

  // Trains to the end. Call once.
  absl::StatusOr<Summary> Run();

 private:
  explicit Trainer(const Options& options) : run_(options) {}

  // Prepares the run as Create says. Requires a new trainer.
  absl::Status Start(const LoadedSpec& loaded);
  // Opens log and screen, and writes the files that describe the run.
  absl::Status Begin();
  // Trains until the run ends.
  absl::Status Loop();
  // Sets the time, from the clock of rank 0, and whether to stop, which any rank may ask for.
  void Synchronize();
  // Evaluates if that is due. An evaluation that is stopped stays due.
  absl::Status Evaluate();
  // Reads a step's data in another thread.
  void Fetch(int64_t example, double done, std::vector<int64_t> waiting);
  // Takes one optimizer step.
  absl::Status Step();
  // After twice the warm-up, once a run: says so if the loss is still that of a model that ignores
  // its input. `before`: share of the run that was done before the last step.
  absl::Status NoteIfNotLearning(double before);
  // Reports once if a data file has changed since it was read.
  void WatchSources();
  // Returns what the run has reached.
  absl::StatusOr<Summary> Summarize() const;
  // Compares it with baselines, tells the user, and writes result.json.
  absl::Status Conclude(Summary* summary);

  TrainingRun run_;
  BestModel best_{&run_};
  Checkpoints checkpoints_{&run_, &best_};
  std::future<absl::StatusOr<StepData>> next_;  // of the next step
  bool sources_changed_ = false, stopped_ = false;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_TRAINER_H_
