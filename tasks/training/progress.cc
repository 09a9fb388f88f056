#include "tasks/training/progress.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "core/base/text.h"

namespace cloze {
namespace {

constexpr double kDecay = 0.95;       // of the smoothed values, per step
constexpr double kDrawSeconds = 0.1;  // between redraws of the live line
constexpr int kDefaultWidth = 80;

}  // namespace

Progress::Progress(Options options) : options_(std::move(options)) {
  terminal_ = options_.width < 0 ? ::isatty(options_.fd) == 1 : options_.width > 0;
  start_time_ = last_time_ = options_.clock();
  if (!options_.log_path.empty()) OpenLog();
}

Progress::~Progress() { Finish(); }

void Progress::Smooth(const StepStats& stats) {
  const double now = options_.clock(), elapsed = now - last_time_;
  last_time_ = now;
  total_tokens_ += stats.tokens;
  weight_ = weight_ * kDecay + 1;
  seconds_ = seconds_ * kDecay + elapsed;
  tokens_ = tokens_ * kDecay + stats.tokens;
  wait_ = wait_ * kDecay + stats.data_wait;
  if (stats.skipped) return;
  loss_weight_ = loss_weight_ * kDecay + 1;
  loss_ = loss_ * kDecay + stats.loss;
}

std::string Progress::StatusLine(const StepStats& stats) const {
  const bool timed = options_.total_steps == 0;
  const double eta =
      timed ? stats.seconds_left : (options_.total_steps - stats.step) * (seconds_ / weight_);
  const std::string total = timed ? absl::StrFormat(" (%.0f %%)", 100 * stats.done)
                                  : absl::StrCat("/", options_.total_steps);
  return absl::StrFormat("step %d%s  loss %.4f  %s tokens/s  ETA %s  lr %.3g", stats.step, total,
      loss_ / loss_weight_, FormatCount(tokens_ / seconds_), FormatDuration(eta),
      stats.learning_rate);
}

void Progress::Step(const StepStats& stats) {
  Smooth(stats);
  const bool last =
      options_.total_steps == 0 ? stats.done >= 1 : stats.step >= options_.total_steps;
  const bool record =
      last || stats.skipped || stats.step % std::max<int64_t>(options_.log_every_steps, 1) == 0;
  if (terminal_) {
    if (last || record || last_time_ - last_draw_ >= kDrawSeconds) DrawLive(StatusLine(stats));
  } else if (record) {
    PrintLine(StatusLine(stats));
  }
  if (!record) return;
  nlohmann::ordered_json json = {{"step", stats.step}, {"steps", options_.total_steps},
      {"loss", stats.loss}, {"smoothed_loss", loss_ / loss_weight_},
      {"learning_rate", stats.learning_rate}, {"grad_norm", stats.grad_norm},
      {"tokens", total_tokens_}, {"tokens_per_second", tokens_ / seconds_},
      {"data_wait_share", seconds_ > 0 ? std::min(wait_ / seconds_, 1.0) : 0},
      {"seconds", last_time_ - start_time_}, {"memory_bytes", stats.memory_bytes}};
  if (options_.total_steps == 0) json.erase("steps"), json["done"] = stats.done;
  if (stats.skipped) json["skipped"] = true;
  AppendLog(json.dump());
}

void Progress::Evaluation(int64_t step, const MetricResults& results, bool best) {
  PrintLine(absl::StrCat("evaluation at step ", step, ": ", QuotePath(results.ToLine()),
      best ? "  (best so far)" : ""));
  AppendLog(absl::StrCat("{\"step\":", step, ",\"best\":", best ? "true" : "false",
      ",\"evaluation\":", results.ToJson(), "}"));
  SkipTime();
}

void Progress::Note(absl::string_view text) {
  PrintLine(QuotePath(text));
  SkipTime();
}

void Progress::Finish() {
  if (live_columns_ > 0) Write("\n");
  live_columns_ = 0;
}

int Progress::Width() const {
  if (options_.width > 0) return options_.width;
  winsize size;
  return ::ioctl(options_.fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                         : kDefaultWidth;
}

// Uses carriage return and blanks, which every terminal knows. Leaves the last column free, because
// some terminals wrap there.
void Progress::DrawLive(const std::string& line) {
  const std::string visible = line.substr(0, std::max(Width() - 1, 1));
  const size_t blanks = live_columns_ > visible.size() ? live_columns_ - visible.size() : 0;
  Write(absl::StrCat("\r", visible, std::string(blanks, ' ')));
  live_columns_ = visible.size();
  last_draw_ = last_time_;
}

void Progress::PrintLine(const std::string& line) {
  const std::string erase =
      live_columns_ > 0 ? absl::StrCat("\r", std::string(live_columns_, ' '), "\r") : "";
  Write(absl::StrCat(erase, line, "\n"));
  live_columns_ = 0;
}

void Progress::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(options_.fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(n);
  }
}

void Progress::OpenLog() {
  const char* path = options_.log_path.c_str();
  struct stat info;
  if (::lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) ::unlink(path);  // never follow a link
  log_ = Fd(::open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!log_.ok() || ::fstat(log_.get(), &info) != 0) return LogFailed(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) {
    LogFailed("not a regular file");
    log_ = Fd();
    return;
  }
  char end = '\n';  // a killed run may have left an incomplete line
  torn_ = info.st_size > 0 && ::pread(log_.get(), &end, 1, info.st_size - 1) == 1 && end != '\n';
}

void Progress::AppendLog(const std::string& record) {
  if (!log_.ok()) return;
  const std::string line = absl::StrCat(torn_ ? "\n" : "", record, "\n");
  const ssize_t n = ::write(log_.get(), line.data(), line.size());
  if (n == static_cast<ssize_t>(line.size())) {
    torn_ = false;
    return;
  }
  torn_ = torn_ || n > 0;
  LogFailed(n < 0 ? std::strerror(errno) : "no space left");
}

void Progress::LogFailed(absl::string_view what) {
  if (!warned_)
    PrintLine(absl::StrCat("warning: ", QuotePath(options_.log_path),
        ": cannot write the log: ", what, "; the run continues without it"));
  warned_ = true;
}

}  // namespace cloze
