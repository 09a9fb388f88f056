// The calls of a process into its engines, and moments without any.
#ifndef CLOZE_TOOLS_LIBRARY_GATE_H_
#define CLOZE_TOOLS_LIBRARY_GATE_H_

#include "absl/functional/function_ref.h"
#include "core/base/threads.h"

namespace cloze {

// A call, while the object exists; calls may be nested. A fork of the process waits for the calls
// of all threads, so that the child finds the engines whole. The calling thread keeps its number of
// OpenMP threads.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const LibraryThreadsKept kept_;
};

// Runs `f` when no call runs. Must not be called inside a call.
void BetweenCalls(absl::FunctionRef<void()> f);

}  // namespace cloze

#endif  // CLOZE_TOOLS_LIBRARY_GATE_H_
