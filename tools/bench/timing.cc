#include "tools/bench/timing.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <thread>

#include "core/base/system.h"

namespace cloze::bench {
namespace {

constexpr double kForeign = 0.06;       // largest share of the machine for other processes
constexpr double kChunkSeconds = 0.25;  // between two readings of the machine's clock ticks

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

void ResetPeakMemory() {
  ::malloc_trim(0);
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "we")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

}  // namespace cloze::bench
