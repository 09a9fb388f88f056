// Threads. The only place that knows OpenMP.
#ifndef CLOZE_CORE_BASE_THREADS_H_
#define CLOZE_CORE_BASE_THREADS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace cloze {

// Cores this process may use: those of its affinity mask, each once however many hyper-threads it
// has, and no more than the cgroup's quota rounded up or OMP_NUM_THREADS.
int AvailableCores();

// Threads that ParallelFor uses from now on; 0 means AvailableCores(). At first it is OpenMP's
// number. Not inside ParallelFor.
void SetThreads(int threads);
int Threads();

// Calls f(0) ... f(tasks - 1), each once, spread over the threads; returns when all are done. What
// f(i) computes must not depend on which thread runs it, so that results have the same bits for any
// number of threads. Runs inline when there is one task or one thread, inside another ParallelFor,
// or while another thread's ParallelFor has the team. What an f(i) throws is thrown again here;
// then some of the others were not called.
void ParallelFor(int64_t tasks, absl::FunctionRef<void(int64_t)> f);

// Calls f(begin, end) for consecutive chunks of `chunk` (the last may be shorter) that cover [0,
// n).
void ParallelChunks(
    int64_t n, int64_t chunk, absl::FunctionRef<void(int64_t begin, int64_t end)> f);

// Index of the calling thread in [0, Threads()); for per-thread scratch memory only, never for
// results.
int ThreadIndex();

// Threads of OpenMP regions that libraries open on the calling thread from now on. Usually 1:
// parallel work is ParallelFor's.
void SetLibraryThreads(int threads);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_THREADS_H_
