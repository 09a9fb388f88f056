#include "tools/library/gate.h"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <new>

namespace cloze {
namespace {

thread_local int t_depth = 0;  // calls of this thread

class Gate {
 public:
  void Enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !closed_; });
    ++inside_;
  }
  void Leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) changed_.notify_all();
  }
  void Close() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !closed_; });
    closed_ = true;
    changed_.wait(lock, [&] { return inside_ == 0; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int inside_ = 0;
};

// Never destroyed: threads may call while the process exits. The child of a fork gets a new one,
// because other threads may have been at the old one.
Gate& TheGate() {
  static Gate* const gate = [] {
    ::pthread_atfork(
        [] { TheGate().Close(); }, [] { TheGate().Open(); }, [] { new (&TheGate()) Gate; });
    return new Gate;
  }();
  return *gate;
}

}  // namespace

Call::Call() {
  if (t_depth++ == 0) TheGate().Enter();
}

Call::~Call() {
  if (--t_depth == 0) TheGate().Leave();
}

void BetweenCalls(absl::FunctionRef<void()> f) {
  TheGate().Close();
  f();
  TheGate().Open();
}

}  // namespace cloze
