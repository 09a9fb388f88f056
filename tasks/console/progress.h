// Progress of a run: a live line on a terminal, plain lines elsewhere, and JSON lines in a log
// file.
#ifndef CLOZE_TASKS_CONSOLE_PROGRESS_H_
#define CLOZE_TASKS_CONSOLE_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file.h"
#include "core/base/system.h"
#include "tasks/console/event_file.h"
#include "tasks/console/screen.h"
#include "tasks/metrics.h"

namespace cloze {

// The work of a rank in a step.
struct RankWork {
  double tokens = 0, seconds = 0;  // in its passes
};

// One optimizer step.
struct StepStats {
  int64_t step = 0;  // steps done, including this one
  double loss = 0;   // mean over the step's targets
  double learning_rate = 0, grad_norm = 0;
  double done = 0, seconds_left = 0;  // share of the run and time left, of timed runs
  double later_batches = 1;           // mean size of the remaining batches, relative to this one
  int64_t tokens = 0;                 // in the step
  double data_wait = 0;               // seconds spent waiting for data
  bool skipped = false;               // loss or gradient was not finite; always recorded
  absl::Span<const RankWork> ranks = {};
};

// Means over about the last 20 steps: decaying sums of values and of weights.
struct RecentSteps {
  double weight = 0, seconds = 0, tokens = 0, wait = 0;
  double loss_weight = 0, loss = 0;  // of steps that were not skipped

  void Add(const StepStats& stats, double elapsed);
};

// Not thread-safe. Never fails a run: warns once if the log cannot be written.
class Progress {
 public:
  struct Options {
    std::string log_path = {};     // appends JSON lines here; empty: no log
    std::string events_path = {};  // the same for TensorBoard
    int64_t step = 0;              // steps of the run before this process
    int64_t total_steps = 1;       // 0: the clock ends the run
    int64_t log_every_steps = 10;
    int64_t tokens = 0;                     // of the run before this process
    double seconds = 0;                     // of the run before this process
    int fd = 2;                             // receives the lines
    std::optional<ScreenStyle> style = {};  // none: that of fd
    std::function<double()> clock = SteadySeconds;
  };
  explicit Progress(Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Redraws the live line, at most ten times a second and at every record. Writes a record every
  // log_every_steps and after the last step.
  void Step(const StepStats& stats);
  // Reports metrics on held-out data after `step` steps; `best`: the best so far. On a terminal as
  // a row of a table.
  void Evaluation(int64_t step, const MetricResults& results, bool best);
  // Prints a line with control characters escaped. Does not log it.
  void Note(absl::string_view text);
  // Prints the line unless the output is a terminal.
  void MinorNote(absl::string_view text) {
    if (!screen_.is_terminal()) Note(text);
  }
  // Ends the live line; further calls may follow.
  void Finish() { screen_.Finish(); }
  // The mean loss of about the last 20 steps; NaN before the first.
  double smoothed_loss() const {
    return recent_.loss_weight > 0 ? recent_.loss / recent_.loss_weight
                                   : std::numeric_limits<double>::quiet_NaN();
  }
  // Excludes the time since the last call from the speed.
  void SkipTime() { last_time_ = options_.clock(); }

 private:
  std::string StatusLine(const StepStats& stats) const;
  // The status with as much of a bar, a sparkline and the learning rate as the terminal has room
  // for.
  std::string LiveLine(const StepStats& stats);
  void PrintResults(int64_t step, const MetricResults& results, bool best);

  void OpenLog();
  void AppendLog(const std::string& record);
  void LogFailed(absl::string_view what);
  void AddEvents(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  void EventsFailed(const absl::Status& status);

  Options options_;
  Screen screen_;
  History losses_;
  std::string columns_;  // the header of the table of evaluations
  double start_time_ = 0, last_time_ = 0, last_draw_ = -1;
  RecentSteps recent_;
  int64_t total_tokens_ = 0;
  Fd log_;
  bool warned_ = false, torn_ = false;
  std::optional<EventFile> events_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_CONSOLE_PROGRESS_H_
