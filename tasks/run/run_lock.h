// Allows one process in a run directory.
#ifndef CLOZE_TASKS_RUN_RUN_LOCK_H_
#define CLOZE_TASKS_RUN_RUN_LOCK_H_

#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"

namespace cloze {

// Holds flock on run.lock until it is destroyed or the process ends in any way. Advisory; on
// network file systems possibly local to a machine.
class RunLock {
 public:
  // Creates `run_dir` if missing and locks it. Fails at once with kCannotCreate if another process
  // holds it or it is not writable.
  static absl::StatusOr<RunLock> Acquire(const std::string& run_dir);

  // For a run that could not begin: removes what Acquire created, run.lock and directories, unless
  // they hold other files.
  void Undo();

 private:
  RunLock() = default;

  std::string path_;
  Fd fd_;
  bool made_file_ = false;
  std::vector<std::string> made_;  // directories, the outermost first
};

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_RUN_LOCK_H_
