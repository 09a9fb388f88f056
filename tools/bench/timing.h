// Times steps, and notices disturbance by other processes.
#ifndef CLOZE_TOOLS_BENCH_TIMING_H_
#define CLOZE_TOOLS_BENCH_TIMING_H_

#include <vector>

#include "absl/functional/function_ref.h"

namespace cloze::bench {

// Milliseconds of the timed steps. Steps during which other processes took more than 6 % of the
// machine are discarded and repeated, up to three times as many. If fewer than five are left, all
// count and `clean` is false.
struct Timing {
  std::vector<double> ms;  // of the steps that count
  std::vector<int> steps;  // their numbers
  double foreign_cpu = 0;  // share of the machine that other processes took
  bool clean = true;

  double Median() const;
  double Sum() const;
};

// Calls step(i) for i = 0, 1, ...: `warmup` times untimed, then at least `reps` times, or at least
// five times if `reps` would take more than `budget` seconds.
Timing TimeSteps(absl::FunctionRef<void(int)> step, int reps, int warmup, double budget = 20);

// Resets the peak memory of this process.
void ResetPeakMemory();

}  // namespace cloze::bench

#endif  // CLOZE_TOOLS_BENCH_TIMING_H_
