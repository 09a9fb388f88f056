#include "core/base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/base/system.h"

namespace cloze {
namespace {

thread_local int t_index = 0;
thread_local bool t_inside = false;  // runs a task of a loop

// Spins until `done`, for about ten microseconds: longer than most gaps between loops, but too
// short to slow down other processes.
template <typename F>
bool Spin(F done) {
  for (int i = 0; i < 1000; ++i) {
    if (done()) return true;
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }
  return false;
}

// Throws std::system_error unless `count` threads can be made: libgomp would end the program.
void RequireThreads(int count) {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  const absl::Cleanup end = [&] {
    done = true;
    done.notify_all();
    for (std::thread& thread : threads) thread.join();
  };
  while (static_cast<int>(threads.size()) < count) threads.emplace_back([&] { done.wait(false); });
}

// A thread pool inside one long OpenMP region. At the end of every region libgomp spins for
// milliseconds, which costs several times the work if another process needs the core. A loop ends
// when its tasks are done, even if some workers did not take part, so a preempted worker delays
// only its own task. Each thread starts with its own share of consecutive tasks, so that
// consecutive loops process the same rows on the same core.
class Team {
 public:
  explicit Team(int workers) : workers_(workers), open_(workers + 1) {
    RequireThreads(workers);
    host_ = std::thread([this] {
      omp_set_dynamic(0);
#pragma omp parallel num_threads(workers_)
      Work(omp_get_thread_num() + 1);
    });
  }

  ~Team() {
    stop_ = true;
    loop_.fetch_add(1);
    loop_.notify_all();
    host_.join();
  }

  int workers() const { return workers_; }

  void Run(uint32_t tasks, absl::FunctionRef<void(int64_t)> f) {
    f_ = &f, tasks_ = tasks;
    pending_.store(tasks, std::memory_order_relaxed);
    const uint32_t loop = loop_.load() + 1;
    for (uint32_t share = 0; share < open_.size(); ++share)
      open_[share].left = uint64_t{loop} << 32 | (End(share) - End(share - 1));
    loop_.store(loop);
    loop_.notify_all();
    t_inside = true;
    Drain();
    t_inside = false;
    while (const uint32_t left = pending_.load()) {
      if (!Spin([&] { return pending_.load() == 0; })) pending_.wait(left);
    }
  }

 private:
  void Work(int index) {
    t_index = index;
    t_inside = true;
    SetLibraryThreads(1);
    while (true) {
      const uint32_t loop = loop_.load();  // before stop_, which is set before the last change
      if (stop_) return;
      Drain();
      if (!Spin([&] { return loop_.load() != loop; })) loop_.wait(loop);
    }
  }

  // Returns the first task after a share.
  uint32_t End(uint32_t share) const { return uint64_t{tasks_} * (share + 1) / open_.size(); }

  // Runs tasks until none is left, first those of its own share. f_ and tasks_ belong to the loop
  // of the task, which cannot end before the task.
  void Drain() {
    uint32_t done = 0;
    for (uint32_t i = 0; i < open_.size(); ++i) {
      const uint32_t share = (t_index + i) % open_.size();
      std::atomic<uint64_t>& left = open_[share].left;
      for (uint64_t open = left.load(); static_cast<uint32_t>(open) > 0;) {
        if (!left.compare_exchange_weak(open, open - 1)) continue;
        (*f_)(End(share) - static_cast<uint32_t>(open));
        ++done;
        open = left.load();
      }
    }
    if (done > 0 && pending_.fetch_sub(done) == done) pending_.notify_one();
  }

  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};  // number of the loop << 32 | tasks not yet taken
  };

  const int workers_;
  absl::FunctionRef<void(int64_t)>* f_ = nullptr;
  uint32_t tasks_ = 0;
  std::vector<Share> open_;           // one per thread
  std::atomic<uint32_t> loop_{0};     // number of the loop; idle workers wait on it
  std::atomic<uint32_t> pending_{0};  // unfinished tasks
  std::atomic<bool> stop_{false};
  std::thread host_;
};

// The pool runs one loop at a time, guarded by `mutex`. Never destroyed, because its threads may
// still wait when the process exits.
struct Pool {
  std::mutex mutex;
  std::unique_ptr<Team> team;
  const int openmp = omp_get_max_threads();  // from the environment
  std::atomic<int> threads{openmp};
};
Pool& ThePool();

// The child of a fork has the memory of the threads, but only the thread that forked.
void ForgetThreads() {
  Pool& pool = ThePool();
  new (&pool.mutex) std::mutex;
  (void)pool.team.release();
}

Pool& ThePool() {
  static Pool* const pool = [] {
    ::pthread_atfork(nullptr, nullptr, ForgetThreads);
    return new Pool;
  }();
  return *pool;
}

}  // namespace

int AvailableCores() {
  cpu_set_t set;
  int cores = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    std::set<std::string> known;
    cores = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &set)) continue;
      const std::string siblings = ReadSystemFile(  // logical CPUs of the core, as "0,32"
          absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
      cores += siblings.empty() || known.insert(siblings).second;
    }
  }
  if (std::getenv("OMP_NUM_THREADS") != nullptr) cores = std::min(cores, ThePool().openmp);
  if (const double quota = CoresOfGroups(); quota > 0)
    cores = std::min(cores, static_cast<int>(std::ceil(quota)));
  return std::max(cores, 1);
}

void SetThreads(int threads) {
  Pool& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  pool.threads = threads > 0 ? threads : AvailableCores();
}

void EndThreads() {
  Pool& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  pool.team.reset();
}

int Threads() { return ThePool().threads; }

int ThreadsHere() { return t_inside ? 1 : Threads(); }

int ThreadIndex() { return t_index; }

void SetLibraryThreads(int threads) {
  ThePool();  // reads OpenMP's number before it changes
  omp_set_num_threads(threads);
}

int LibraryThreads() {
  ThePool();
  return omp_get_max_threads();
}

void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> f) {
  CLOZE_CHECK(tasks < int64_t{1} << 32);
  Pool& pool = ThePool();
  std::unique_lock<std::mutex> lock(pool.mutex, std::defer_lock);
  if (tasks <= 1 || ThreadsHere() == 1 || !lock.try_lock()) {
    for (int64_t i = 0; i < tasks; ++i) f(i);
    return;
  }
  const int workers = Threads() - 1;
  if (pool.team == nullptr || pool.team->workers() != workers) {
    pool.team.reset();
    pool.team = std::make_unique<Team>(workers);
  }
  // Exceptions (out of memory) must not leave a worker; the first one is rethrown here.
  std::exception_ptr thrown;
  std::atomic<bool> failed = false;
  const auto guarded = [&](int64_t i) {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      f(i);
    } catch (...) {
      if (!failed.exchange(true)) thrown = std::current_exception();
    }
  };
  pool.team->Run(static_cast<uint32_t>(tasks), guarded);
  if (failed) std::rethrow_exception(thrown);
}

void ParallelChunks(int64_t n, int64_t chunk, absl::FunctionRef<void(int64_t, int64_t)> f) {
  ParallelFor(
      (n + chunk - 1) / chunk, [&](int64_t i) { f(i * chunk, std::min(n, (i + 1) * chunk)); });
}

}  // namespace cloze
