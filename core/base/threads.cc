#include "core/base/threads.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

namespace cloze {
namespace {

// CPU quota of the control group in cores; 0 when there is none.
double QuotaCores() {
  long long quota = -1, period = 0;
  if (std::FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "re")) {
    char text[32] = "";
    if (std::fscanf(f, "%31s %lld", text, &period) == 2 && std::strcmp(text, "max") != 0) std::sscanf(text, "%lld", &quota);
    std::fclose(f);
  } else {
    if (std::FILE* q = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re")) {
      if (std::fscanf(q, "%lld", &quota) != 1) quota = -1;
      std::fclose(q);
    }
    if (std::FILE* p = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re")) {
      if (std::fscanf(p, "%lld", &period) != 1) period = 0;
      std::fclose(p);
    }
  }
  return quota > 0 && period > 0 ? static_cast<double>(quota) / period : 0;
}

}  // namespace

int AvailableCores() {
  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  if (const double quota = QuotaCores(); quota > 0) cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  return std::max(cores, 1);
}

void SetThreads(int threads) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads > 0 ? threads : AvailableCores());
}

int Threads() { return omp_get_max_threads(); }

int ThreadIndex() { return omp_get_thread_num(); }

void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> f) {
  if (tasks <= 1 || omp_in_parallel() || Threads() == 1) {
    for (int64_t i = 0; i < tasks; ++i) f(i);
    return;
  }
  // An exception (memory that ran out) must not leave a parallel region: the first one is thrown again behind it.
  std::exception_ptr thrown;
  std::atomic<bool> failed = false;
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t i = 0; i < tasks; ++i) {
    if (failed.load(std::memory_order_relaxed)) continue;
    try {
      f(i);
    } catch (...) {
      if (!failed.exchange(true)) thrown = std::current_exception();
    }
  }
  if (failed) std::rethrow_exception(thrown);
}

void ParallelChunks(int64_t n, int64_t chunk, absl::FunctionRef<void(int64_t, int64_t)> f) {
  ParallelFor((n + chunk - 1) / chunk, [&](int64_t i) { f(i * chunk, std::min(n, (i + 1) * chunk)); });
}

}  // namespace cloze
