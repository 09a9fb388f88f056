// Checks that the files of a run are as it wrote them and still compute the same.
#ifndef CLOZE_TASKS_JOBS_VERIFY_H_
#define CLOZE_TASKS_JOBS_VERIFY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace cloze {

// The result for one checkpoint or model folder.
struct Verdict {
  std::string folder;
  absl::Status status;  // kMismatch or kData: damaged; kIo: cannot be read; names the file
  int64_t step = 0;     // at which it was saved
  int64_t numbers = 0;  // weights and moments, all finite
  // Largest difference in the outputs of the samples; none if the folder has no samples.
  std::optional<double> difference;
  bool manifest = true;  // false: no file could be compared, because the folder is of another
                         // program or its save was interrupted
};

// Checks the model in `path`, if there is one, and every checkpoint, newest first; or `path` itself
// if it is a checkpoint. Also checks every run in a sub-folder (of a sweep, or with `repeat`).
// Compares length and hash of every file with the MANIFEST, requires every
// number to be finite, and recomputes the samples (tasks/run/samples.h). Leaves out a checkpoint
// that a running process deletes meanwhile. `base` is the base model of adapters; "": the one that
// each names. kNoInput if there is neither model nor checkpoint.
absl::StatusOr<std::vector<Verdict>> VerifyRun(
    const std::string& path, const std::string& base = "");

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_VERIFY_H_
