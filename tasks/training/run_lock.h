// One process a run directory.
#ifndef CLOZE_TASKS_TRAINING_RUN_LOCK_H_
#define CLOZE_TASKS_TRAINING_RUN_LOCK_H_

#include <string>

#include "core/base/file.h"
#include "core/base/status.h"

namespace cloze {

// Holds a run directory until it is destroyed or the process ends, however that happens. Advisory: on network file systems it may be local
// to a machine.
class RunLock {
 public:
  // Locks `run_dir`, which exists. kCannotCreate, at once, when another process has it or it is not writable.
  static absl::StatusOr<RunLock> Acquire(const std::string& run_dir);

 private:
  explicit RunLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_RUN_LOCK_H_
