// Timing and result lines of `cloze bench`.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/base/clock.h"
#include "core/base/system.h"
#include "core/base/threads.h"
#include "tools/bench/bench.h"
#include "tools/output.h"

namespace cloze {
namespace {

constexpr double kForeign = 0.06;       // share of the machine that others may use
constexpr double kChunkSeconds = 0.25;  // between two looks at the clock ticks of the machine

double OwnSeconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage u;
    ::getrusage(who, &u);
    sum += u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
  }
  return sum;
}

// Returns the CPU seconds that the machine has spent since its start, stolen ones included.
double BusySeconds() {
  const std::vector<int64_t> t = SystemNumbers("/proc/stat", "cpu");
  return t.size() < 8 ? 0
                      : double(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]) / ::sysconf(_SC_CLK_TCK);
}

std::string Number(double value) {
  if (!std::isfinite(value)) return "null";
  return value == std::floor(value) && std::fabs(value) < 1e15 ? absl::StrFormat("%.0f", value)
                                                               : absl::StrFormat("%.5g", value);
}

}  // namespace

double Timing::Median() const {
  std::vector<double> sorted = ms;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

double Timing::Sum() const { return std::accumulate(ms.begin(), ms.end(), 0.0); }

Timing TimeSteps(absl::FunctionRef<void(int)> step, int reps, int warmup, double budget) {
  for (int i = 0; i < warmup; ++i) step(i);
  const double processors = std::max(1u, std::thread::hardware_concurrency()),
               start = SteadySeconds();
  Timing clean, all;
  double shares = 0;
  for (int i = 0, chunks = 1;; ++chunks) {
    const double busy = BusySeconds(), own = OwnSeconds(), begin = SteadySeconds();
    const int first = i;
    double now = begin;
    do {
      const double before = SteadySeconds();
      step(warmup + i);
      now = SteadySeconds();
      all.ms.push_back((now - before) * 1e3);
      all.steps.push_back(warmup + i++);
    } while (now - begin < kChunkSeconds && static_cast<int>(clean.ms.size()) + i - first < reps);
    const double wall = now - begin;
    double share =
        std::max(0.0, (BusySeconds() - busy - (OwnSeconds() - own)) / (wall * processors));
    if (wall < kChunkSeconds)
      share = std::max(0.0, share - 0.01 * processors / std::max(wall, 0.02));  // ticks of 10 ms
    shares += share;
    if (share <= kForeign) {
      clean.ms.insert(clean.ms.end(), all.ms.begin() + first, all.ms.end());
      clean.steps.insert(clean.steps.end(), all.steps.begin() + first, all.steps.end());
    }
    const int good = clean.ms.size();
    const double elapsed = now - start;
    if (good >= reps || (good >= 5 && elapsed > budget) || i >= 3 * std::max(reps, 5) ||
        (i >= std::min(5, reps) && elapsed > 2.5 * budget)) {
      Timing result = good >= std::min(5, reps) ? clean : all;
      result.clean = good >= std::min(5, reps);
      result.foreign_cpu = shares / chunks;
      return result;
    }
  }
}

BenchLine::BenchLine(const BenchOptions& options, const std::string& work, const std::string& dtype,
    const std::string& config, int64_t batch, int64_t seq)
    : options_(options) {
  AddText("peer", options.peer)
      .AddText("work", work)
      .AddText("dtype", dtype)
      .AddText("config", config);
  Add("batch", batch).Add("seq", seq);
}

BenchLine& BenchLine::Add(const std::string& name, double value) {
  fields_.emplace_back(name, Number(value));
  return *this;
}

BenchLine& BenchLine::Set(const std::string& name, double value) {
  for (auto& [key, json] : fields_) {
    if (key == name) json = Number(value);
  }
  return *this;
}

BenchLine& BenchLine::AddText(const std::string& name, const std::string& value) {
  fields_.emplace_back(name, JsonString(value));
  return *this;
}

BenchLine& BenchLine::AddTiming(const Timing& timing, double tokens) {
  const auto [min, max] = std::minmax_element(timing.ms.begin(), timing.ms.end());
  Add("tokens_per_s", tokens / timing.Median() * 1e3)
      .Add("step_ms_median", timing.Median())
      .Add("min", *min)
      .Add("max", *max);
  Add("reps", timing.ms.size()).Add("foreign_cpu", timing.foreign_cpu);
  fields_.emplace_back("clean", timing.clean ? "true" : "false");
  return Add("peak_rss_mb", PeakMemory() * 1e-6).Add("threads", Threads());
}

BenchLine& BenchLine::AddFlop(double flop, double ms, DType type) {
  return Add("gflops_useful", flop / ms / 1e6)
      .Add("share_of_peak", flop / ms * 1e3 / MatmulPeak(type));
}

std::string BenchLine::Readable() const {
  std::map<std::string, std::string> f(fields_.begin(), fields_.end());
  for (auto& [name, value] : f) value = absl::StrReplaceAll(value, {{"\"", ""}});
  const std::string rate = f.count("mb_per_s") > 0 ? f["mb_per_s"] + " MB/s"
                           : f.count("gflops") > 0 ? f["gflops"] + " GFLOP/s"
                                                   : "";
  std::string line =
      absl::StrFormat("%-15s %-15s %5sx%-4s %-4s %10s  %8s ms [%s .. %s]", f["work"], f["config"],
          f["batch"], f["seq"], f["dtype"], rate.empty() ? f["tokens_per_s"] + " tokens/s" : rate,
          f["step_ms_median"], f["min"], f["max"]);
  double share = 0;
  if (absl::SimpleAtod(f["share_of_peak"], &share))
    absl::StrAppendFormat(&line, "  %.0f %% of peak", 100 * share);
  absl::StrAppend(&line, "  ", f["peak_rss_mb"], " MB",
      f["clean"] == "true" ? "" : "  (disturbed by other processes)", "\n");
  return line;
}

absl::Status BenchLine::Write() const {
  if (!options_.json) return WriteStdout(Readable());
  std::string line;
  for (const auto& [name, value] : fields_)
    absl::StrAppend(&line, line.empty() ? "{" : ", ", JsonString(name), ": ", value);
  return WriteStdout(line + "}\n");
}

void ForgetPeak() {
  ::malloc_trim(0);
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "we")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

std::string NameOf(DType type) { return type == DType::kF32 ? "fp32" : "bf16"; }

}  // namespace cloze
