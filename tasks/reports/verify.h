// Is what a run has on disk still what it wrote, and does it still compute the same?
#ifndef CLOZE_TASKS_REPORTS_VERIFY_H_
#define CLOZE_TASKS_REPORTS_VERIFY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace cloze {

// What was found out about a checkpoint, or about a model folder.
struct Verdict {
  std::string folder;
  absl::Status status;    // kMismatch or kData: damaged; kIo: could not be read; names the file
  int64_t step = 0;       // after which it was saved
  int64_t numbers = 0;    // weights and moments that were read and are finite
  double difference = 0;  // of the samples' outputs, the largest
  bool manifest = true;   // false: a model folder of another program, or one that was being saved
                          // when its run ended; no file was compared
};

// Checks the model in `path`, when there is one, and every checkpoint, newest first; or `path`
// itself when it is a checkpoint. Each: length and hash of every file in its MANIFEST, that every
// number is finite, and that the samples (tasks/run/samples.h) come out as stored. A
// checkpoint that a running process deletes meanwhile is left out. kNoInput when there is neither
// model nor checkpoint.
absl::StatusOr<std::vector<Verdict>> VerifyRun(const std::string& path);

}  // namespace cloze

#endif  // CLOZE_TASKS_REPORTS_VERIFY_H_
