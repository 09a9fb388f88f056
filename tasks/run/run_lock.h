// One process a run directory.
#ifndef CLOZE_TASKS_RUN_RUN_LOCK_H_
#define CLOZE_TASKS_RUN_RUN_LOCK_H_

#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"

namespace cloze {

// Holds a run directory until it is destroyed or the process ends, however that happens. Advisory:
// on network file systems it may be local to a machine.
class RunLock {
 public:
  // Makes `run_dir` where it is missing and locks it. kCannotCreate, at once, when another process
  // has it or it is not writable.
  static absl::StatusOr<RunLock> Acquire(const std::string& run_dir);

  // For a run that never began: removes what Acquire made, run.lock and directories, as far as
  // nothing else is in them.
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
