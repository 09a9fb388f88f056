// The data that the parts of a training run share: its inputs, its model, its clock, and the state
// that steps change.
#ifndef CLOZE_TASKS_TRAINING_TRAINING_RUN_H_
#define CLOZE_TASKS_TRAINING_TRAINING_RUN_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/ranks.h"
#include "proto/state.pb.h"
#include "tasks/batcher.h"
#include "tasks/console/progress.h"
#include "tasks/run/run_folder.h"
#include "tasks/run/trainer_state.h"
#include "tasks/training/model_trainer.h"
#include "tasks/training/run_inputs.h"
#include "tasks/training/schedule.h"

namespace cloze {

struct RunOptions {
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
  // Stores of the earlier run whose streams this run shares; a run that resumes knows its own.
  MadeStores made = {};
};

struct TrainingRun {
  explicit TrainingRun(const RunOptions& options) : options(options) {}

  Ranks& ranks() const { return *options.ranks; }
  const TaskSpec& spec() const { return inputs->loaded.spec; }
  // Prints a line for the user, joined by absl::StrCat, at the latest before the first step.
  template <typename... Parts>
  void Note(const Parts&... parts) {
    std::string line = absl::StrCat(parts...);
    if (progress != nullptr) return progress->Note(line);
    notes.push_back(std::move(line));
  }
  // True between two averages of distributed.local_steps, when no checkpoint can be written.
  bool BetweenAverages() const {
    return state.step() % spec().distributed().local_steps() != 0 && !clock->over();
  }
  // True if no step is left after `done` of the run.
  bool Finished(double done) const {
    return !state.evaluation_due() && (done >= 1 || OutOfPatience(spec(), state));
  }

  const RunOptions options;
  std::optional<RunFolder> folder;
  // Set by the start.
  std::unique_ptr<const RunInputs> inputs;
  std::unique_ptr<ModelTrainer> model;
  std::unique_ptr<Batcher> batcher;
  std::unique_ptr<RunClock> clock;
  int64_t evaluate_every = 0, save_every = 0;  // steps; 0: ten times a run

  TrainerState state;      // fields that Checkpoints sets: as of the last checkpoint
  int64_t saved_step = 0;  // of the last checkpoint; -1: step 0 must be saved
  double seconds = 0;      // by the clock of rank 0
  std::vector<std::string> notes;
  std::unique_ptr<Progress> progress;  // null before the first step
};

// Verifies the spec, locks the run directory, tokenizes, and initializes the model. Sets `run`, and
// its state to that of the newest checkpoint. Returns the path of that; "" if there is none.
absl::StatusOr<std::string> StartRun(const LoadedSpec& loaded, TrainingRun* run);
// Starts with the weights of the newest checkpoint in options.fork.
absl::Status ForkRun(TrainingRun* run);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_TRAINING_RUN_H_
