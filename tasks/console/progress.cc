#include "tasks/console/progress.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "core/base/text.h"

namespace cloze {
namespace {

constexpr double kDecay = 0.95;       // of the smoothed values, per step
constexpr double kDrawSeconds = 0.1;  // between redraws of the live line

// The time in UTC, as in ISO 8601.
std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  char text[32];
  return std::string(
      text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &parts)));
}

}  // namespace

Progress::Progress(Options options)
    : options_(std::move(options)),
      screen_(options_.fd, options_.style ? *options_.style : ScreenStyleOf(options_.fd),
          options_.style.has_value()) {
  start_time_ = last_time_ = options_.clock();
  total_tokens_ = options_.tokens;
  if (!options_.log_path.empty()) OpenLog();
  if (options_.events_path.empty()) return;
  absl::StatusOr<EventFile> events = EventFile::Open(options_.events_path, options_.step);
  if (events.ok()) {
    events_ = *std::move(events);
  } else {
    EventsFailed(events.status());
  }
}

Progress::~Progress() { Finish(); }

void RecentSteps::Add(const StepStats& stats, double elapsed) {
  weight = weight * kDecay + 1;
  seconds = seconds * kDecay + elapsed;
  tokens = tokens * kDecay + stats.tokens;
  wait = wait * kDecay + stats.data_wait;
  if (stats.skipped) return;
  loss_weight = loss_weight * kDecay + 1;
  loss = loss * kDecay + stats.loss;
}

std::string Progress::StatusLine(const StepStats& stats) const {
  const bool timed = options_.total_steps == 0;
  const double steps_left = stats.later_batches * (options_.total_steps - stats.step);
  const double eta = timed ? stats.seconds_left : steps_left * (recent_.seconds / recent_.weight);
  const std::string total = timed ? absl::StrFormat(" (%.0f %%)", 100 * stats.done)
                                  : absl::StrCat("/", options_.total_steps);
  return absl::StrFormat("step %d%s  loss %.4f  %s tokens/s  ETA %s", stats.step, total,
      smoothed_loss(), FormatCount(recent_.tokens / recent_.seconds), FormatDuration(eta));
}

std::string Progress::LiveLine(const StepStats& stats) {
  std::string line = StatusLine(stats);
  const auto add = [&](const std::string& part) {
    const int64_t columns = CountCodePoints(line) + 2 + CountCodePoints(part);
    if (!part.empty() && columns <= screen_.columns()) absl::StrAppend(&line, "  ", part);
  };
  add(Bar(options_.total_steps == 0 ? stats.done : double(stats.step) / options_.total_steps, 10));
  if (screen_.style().blocks)
    add(losses_.Sparkline(
        std::clamp<int64_t>(screen_.columns() - CountCodePoints(line) - 2, 0, 16)));
  add(absl::StrFormat("lr %.3g", stats.learning_rate));
  return line;
}

void Progress::Step(const StepStats& stats) {
  const double now = options_.clock();
  recent_.Add(stats, now - last_time_);
  last_time_ = now;
  total_tokens_ += stats.tokens;
  const bool last =
      options_.total_steps == 0 ? stats.done >= 1 : stats.step >= options_.total_steps;
  const bool record =
      last || stats.skipped || stats.step % std::max<int64_t>(options_.log_every_steps, 1) == 0;
  if (!stats.skipped) losses_.Add(stats.loss);
  if (!screen_.is_terminal()) {
    if (record)
      screen_.Print(
          absl::StrCat(StatusLine(stats), absl::StrFormat("  lr %.3g", stats.learning_rate)));
  } else if (last || record || last_time_ - last_draw_ >= kDrawSeconds) {
    screen_.DrawLive(LiveLine(stats));
    last_draw_ = last_time_;
  }
  if (!record) return;
  nlohmann::ordered_json json = {{"step", stats.step}, {"steps", options_.total_steps},
      {"loss", stats.loss}, {"smoothed_loss", smoothed_loss()},
      {"learning_rate", stats.learning_rate}, {"grad_norm", stats.grad_norm},
      {"tokens", total_tokens_}, {"tokens_per_second", recent_.tokens / recent_.seconds},
      {"data_wait_share", recent_.seconds > 0 ? std::min(recent_.wait / recent_.seconds, 1.0) : 0},
      {"seconds", options_.seconds + last_time_ - start_time_},
      {"memory_bytes", PeakMemory()}};  // of the process
  if (options_.total_steps == 0) json.erase("steps"), json["done"] = stats.done;
  if (stats.skipped) json["skipped"] = true;
  double slowest = 0;
  for (const RankWork& rank : stats.ranks) slowest = std::max(slowest, rank.seconds);
  for (const RankWork& rank : stats.ranks) {
    if (stats.ranks.size() == 1 || slowest <= 0) break;
    json["ranks"].push_back(
        {{"tokens_per_second", rank.seconds > 0 ? rank.tokens / rank.seconds : 0},
            {"waiting_share", 1 - rank.seconds / slowest}});
  }
  json["time"] = Now();
  AppendLog(json.dump());
  AddEvents(stats.step, {{"train/loss", stats.loss}, {"train/learning_rate", stats.learning_rate},
                            {"train/tokens_per_second", recent_.tokens / recent_.seconds}});
}

void Progress::Evaluation(int64_t step, const MetricResults& results, bool best) {
  PrintResults(step, results, best);
  AppendLog(absl::StrCat("{\"step\":", step, ",\"best\":", best ? "true" : "false",
      ",\"evaluation\":", results.ToJson(), ",\"time\":\"", Now(), "\"}"));
  std::vector<std::pair<std::string, double>> scalars;
  for (const auto& [name, value] : results.values)
    scalars.emplace_back("validation/" + name, value);
  AddEvents(step, scalars);
  SkipTime();
}

void Progress::PrintResults(int64_t step, const MetricResults& results, bool best) {
  if (!screen_.is_terminal()) {
    return screen_.Print(absl::StrCat("evaluation at step ", step, ": ",
        QuotePath(results.ToLine()), best ? "  (best so far)" : ""));
  }
  std::string header = absl::StrFormat("%10s", "step"), row = absl::StrFormat("%10d", step);
  for (const auto& [name, value] : results.values) {
    const int width = std::max<int>(name.size(), 8);
    if (static_cast<int>(header.size()) + 2 + width + 6 > screen_.columns()) break;
    absl::StrAppendFormat(&header, "  %*s", width, name);
    absl::StrAppendFormat(&row, "  %*.4g", width, value);
  }
  if (header != columns_) screen_.Print(header);
  columns_ = header;
  screen_.Print(absl::StrCat(row, best ? "  best" : ""), best);
}

void Progress::Note(absl::string_view text) {
  screen_.Print(QuotePath(text));
  SkipTime();
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

void Progress::AddEvents(int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  if (!events_) return;
  const absl::Status status = events_->Add(step, scalars);
  if (!status.ok()) EventsFailed(status);
}

void Progress::EventsFailed(const absl::Status& status) {
  events_.reset();
  screen_.Print(absl::StrCat("warning: ", status.message(), "; the run continues without it"));
}

void Progress::LogFailed(absl::string_view what) {
  if (!warned_)
    screen_.Print(absl::StrCat("warning: ", QuotePath(options_.log_path),
        ": cannot write the log: ", what, "; the run continues without it"));
  warned_ = true;
}

}  // namespace cloze
