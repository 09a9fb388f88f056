// Parallel loops. Only this room uses OpenMP.
#ifndef CLOZE_CORE_BASE_THREADS_H_
#define CLOZE_CORE_BASE_THREADS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace cloze {

// Returns the number of physical cores in the affinity mask of this process, at most the quota of
// the cgroup (rounded up) and OMP_NUM_THREADS.
int AvailableCores();

// Sets the number of threads of ParallelFor; 0 means AvailableCores(). The initial number is
// OpenMP's. Must not be called inside ParallelFor.
void SetThreads(int threads);
int Threads();
// Returns the number of threads that a ParallelFor would use here: 1 inside another one.
int ThreadsHere();

// Ends the threads of ParallelFor; the next one makes them anew. Must not be called inside
// ParallelFor. In a child process after fork, which has none of the threads, this happens by
// itself.
void EndThreads();

// Calls f(0) ... f(tasks - 1) once each, in parallel, and returns when all are done. The result of
// f(i) must not depend on the thread, so that results have the same bits for any number of threads.
// Runs inline for one task or one thread, inside another ParallelFor, or while another thread uses
// the pool. Rethrows the first exception of an f(i); some of the others are then not called.
void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> f);

// Calls f(begin, end) for consecutive chunks of `chunk` (the last may be shorter) that cover [0,
// n).
void ParallelChunks(
    int64_t n, int64_t chunk, absl::FunctionRef<void(int64_t begin, int64_t end)> f);

// Returns the index of the calling thread in [0, Threads()); 0 outside the pool, so such threads
// must not share scratch memory.
int ThreadIndex();

// Sets the number of threads of OpenMP regions that libraries open on the calling thread. Usually
// 1, because ParallelFor distributes the work.
void SetLibraryThreads(int threads);
int LibraryThreads();

// Gives the calling thread back, when destroyed, the number that it had; for callers with OpenMP
// regions of their own.
class LibraryThreadsKept {
 public:
  LibraryThreadsKept() = default;
  ~LibraryThreadsKept() { SetLibraryThreads(threads_); }
  LibraryThreadsKept(const LibraryThreadsKept&) = delete;
  LibraryThreadsKept& operator=(const LibraryThreadsKept&) = delete;

 private:
  const int threads_ = LibraryThreads();
};

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_THREADS_H_
