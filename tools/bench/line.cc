#include "tools/bench/line.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/base/system.h"
#include "core/base/threads.h"
#include "tools/bench/bench.h"
#include "tools/process.h"

namespace cloze::bench {
namespace {

std::string Number(double value) {
  if (!std::isfinite(value)) return "null";
  return value == std::floor(value) && std::fabs(value) < 1e15 ? absl::StrFormat("%.0f", value)
                                                               : absl::StrFormat("%.5g", value);
}

}  // namespace

Line::Line(const Options& options, const std::string& work, const std::string& dtype,
    const std::string& config, int64_t batch, int64_t seq)
    : options_(options) {
  AddText("peer", options.peer)
      .AddText("work", work)
      .AddText("dtype", dtype)
      .AddText("config", config);
  Add("batch", batch).Add("seq", seq);
}

Line& Line::Add(const std::string& name, double value) {
  fields_.emplace_back(name, Number(value));
  return *this;
}

Line& Line::Set(const std::string& name, double value) {
  for (auto& [key, json] : fields_) {
    if (key == name) json = Number(value);
  }
  return *this;
}

Line& Line::AddText(const std::string& name, const std::string& value) {
  fields_.emplace_back(name, JsonString(value));
  return *this;
}

Line& Line::AddTiming(const Timing& timing, double tokens) {
  const auto [min, max] = std::minmax_element(timing.ms.begin(), timing.ms.end());
  Add("tokens_per_s", tokens / timing.Median() * 1e3)
      .Add("step_ms_median", timing.Median())
      .Add("min", *min)
      .Add("max", *max);
  Add("reps", timing.ms.size()).Add("foreign_cpu", timing.foreign_cpu);
  fields_.emplace_back("clean", timing.clean ? "true" : "false");
  return Add("peak_rss_mb", PeakMemory() * 1e-6).Add("threads", Threads());
}

Line& Line::AddFlop(double flop, double ms, DType type) {
  return Add("gflops_useful", flop / ms / 1e6)
      .Add("share_of_peak", flop / ms * 1e3 / MatmulPeak(type));
}

std::string Line::Readable() const {
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

absl::Status Line::Write() const {
  if (!options_.json) return WriteStdout(Readable());
  std::string line;
  for (const auto& [name, value] : fields_)
    absl::StrAppend(&line, line.empty() ? "{" : ", ", JsonString(name), ": ", value);
  return WriteStdout(line + "}\n");
}

std::string TypeName(DType type) { return type == DType::kF32 ? "fp32" : "bf16"; }

}  // namespace cloze::bench
