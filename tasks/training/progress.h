// What a run says while it works: one live line on a terminal, plain lines elsewhere, and the same
// as JSON lines in a file.
#ifndef CLOZE_TASKS_TRAINING_PROGRESS_H_
#define CLOZE_TASKS_TRAINING_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "tasks/metrics.h"

namespace cloze {

// One optimizer step.
struct StepStats {
  int64_t step = 0;  // steps done, this one included
  double loss = 0;   // mean over the step's targets
  double learning_rate = 0, grad_norm = 0;
  double done = 0, seconds_left = 0;  // when the clock ends the run: share of the run, and time
  int64_t tokens = 0;                 // that the step saw
  double data_wait = 0;               // seconds that it waited for its data
  int64_t memory_bytes = 0;           // most that the passes needed at once
  bool skipped = false;  // because its loss or gradient was not finite; always recorded
};

// Not thread-safe. Printing never fails a run: a log that cannot be written is warned of once and
// given up until it can be written again.
class Progress {
 public:
  struct Options {
    std::string log_path = {};  // JSON lines are appended here; empty: none
    int64_t total_steps = 1;    // 0: the clock ends the run
    int64_t log_every_steps = 10;
    int fd = 2;                          // where lines go
    int width = -1;                      // columns of a terminal there; 0: it is none; -1: ask
    std::function<double()> clock = {};  // seconds, monotonic; empty: the system's
  };
  explicit Progress(Options options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Redraws the live line, at most ten times a second; every log_every_steps and at the last step
  // writes the records.
  void Step(const StepStats& stats);
  // A result on held-out data after `step` steps. `best`: is it the best so far?
  void Evaluation(int64_t step, const MetricResults& results, bool best);
  // A line for people; control characters in it are made visible. Not in the log.
  void Note(absl::string_view text);
  // Ends the live line. Further calls may follow.
  void Finish();
  // What took place since the last call is not training: do not count it into the speed.
  void SkipTime() { last_time_ = clock_(); }

 private:
  void Smooth(const StepStats& stats);
  bool Last(const StepStats& stats) const;
  std::string StatusLine(const StepStats& stats) const;
  void DrawLive(const std::string& line);
  void PrintLine(const std::string& line);
  void Write(absl::string_view bytes);
  int Width() const;

  void OpenLog();
  void AppendLog(const std::string& record);
  void LogFailed(absl::string_view what);

  Options options_;
  std::function<double()> clock_;
  bool terminal_ = false;
  double start_time_ = 0, last_time_ = 0, last_draw_ = -1;
  // Means over about the last 20 steps: decaying sums of the values and of their weights.
  double weight_ = 0, loss_weight_ = 0, loss_ = 0, seconds_ = 0, tokens_ = 0, wait_ = 0;
  int64_t total_tokens_ = 0;
  size_t live_columns_ = 0;  // drawn and not yet ended
  Fd log_;
  bool warned_ = false, torn_ = false;
};

// "45s", "12m03s", "3h05m", "2d07h"; "?" when unknown (negative or not finite).
std::string FormatDuration(double seconds);
// Like "950", "12.3k", "4.56M".
std::string FormatCount(double count);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_PROGRESS_H_
