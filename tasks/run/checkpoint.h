// Checkpoints: folders step-00001234 that are there, whole and on disk, or not there at all.
#ifndef CLOZE_TASKS_RUN_CHECKPOINT_H_
#define CLOZE_TASKS_RUN_CHECKPOINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"

namespace cloze {

// The spec in a run directory; files of a checkpoint beside those of a model folder.
inline constexpr char kSpecName[] = "spec.textproto";
inline constexpr char kMomentsName[] = "optimizer.safetensors";

// A checkpoint whose content was verified.
struct FoundCheckpoint {
  int64_t step = 0;
  std::string path;
};

// Name of the folder of a step.
std::string CheckpointName(int64_t step);
bool IsCheckpointName(absl::string_view name);
// kMismatch unless the folder has the name of the step that its MANIFEST tells.
absl::Status CheckCheckpointName(const std::string& path, int64_t step);

// Calls `write` to fill a temporary folder with plain files, adds MANIFEST (length and hash of
// each), makes all of it durable and gives it its name in `run_dir`; only when that is done, ok
// comes back. Then deletes the oldest checkpoints so that `keep` sound ones stay, after the new one
// was read again. A sound checkpoint of this step that is already there is left as it is; a damaged
// one is renamed to broken-... . kIo, or the error of `write`: no checkpoint that was there is
// lost. `expected_bytes` (0: unknown) is checked against the free space first. The caller holds the
// RunLock.
absl::Status SaveCheckpoint(const std::string& run_dir, int64_t step,
    absl::FunctionRef<absl::Status(const std::string& folder)> write, int keep,
    int64_t expected_bytes = 0);

// Puts the files that `write` makes, and their MANIFEST, into `run_dir` itself, each over the one
// that had its name. They are complete and on disk before the first is moved; between the first and
// the last there is no MANIFEST. Errors and `expected_bytes` as above.
absl::Status SaveModel(const std::string& run_dir, int64_t step,
    absl::FunctionRef<absl::Status(const std::string& folder)> write, int64_t expected_bytes = 0);

// Checks every file that SaveModel put into `run_dir` against its MANIFEST. kMismatch or kNoInput
// names the file.
absl::Status VerifyModel(const std::string& run_dir);

// Checks every file of a checkpoint against its MANIFEST. kMismatch names the file.
absl::Status VerifyCheckpoint(const std::string& path);

// The newest checkpoint that verifies, or nothing when there are no checkpoints. `notes` gets a
// line ("skipped step-00001234: why") for each newer one that does not. kMismatch when there are
// checkpoints and none verifies: a run never starts from zero over what is left of it.
absl::StatusOr<std::optional<FoundCheckpoint>> FindCheckpoint(
    const std::string& run_dir, std::vector<std::string>* notes);

// Deletes temporary checkpoint folders, and a half-written spec.textproto, that dead processes left
// in `run_dir`. The caller holds the RunLock.
void RemoveLeftovers(const std::string& run_dir);

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_CHECKPOINT_H_
