// Result lines of `cloze bench`. Their names, units and counting of work are those of the benchmark
// scripts of other programs, so that one table can hold both.
#ifndef CLOZE_TOOLS_BENCH_LINE_H_
#define CLOZE_TOOLS_BENCH_LINE_H_

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/mat.h"
#include "tools/bench/timing.h"

namespace cloze::bench {

struct Options;

// A result: one JSON object, or a readable line.
class Line {
 public:
  Line(const Options& options, const std::string& work, const std::string& dtype,
      const std::string& config, int64_t batch, int64_t seq);
  // Appends a field; a number that is not finite becomes null.
  Line& Add(const std::string& name, double value);
  Line& AddText(const std::string& name, const std::string& value);
  // Replaces the value of a field.
  Line& Set(const std::string& name, double value);
  // Appends the times, tokens_per_s from `tokens` per step, and peak_rss_mb since
  // ResetPeakMemory().
  Line& AddTiming(const Timing& timing, double tokens);
  // Appends gflops_useful, from `flop` per step of `ms` milliseconds, and share_of_peak, relative
  // to MatmulPeak().
  Line& AddFlop(double flop, double ms, DType type);
  absl::Status Write() const;

 private:
  std::string Readable() const;
  const Options& options_;
  std::vector<std::pair<std::string, std::string>> fields_;  // names and JSON values
};

// Returns "fp32" or "bf16".
std::string TypeName(DType type);

}  // namespace cloze::bench

#endif  // CLOZE_TOOLS_BENCH_LINE_H_
