// Checkpoints: folders step-00001234 that exist whole and on disk, or not at all. Their MANIFEST,
// and that of the best model in the run directory, has name, length and hash of each file.
#ifndef CLOZE_TASKS_RUN_CHECKPOINT_H_
#define CLOZE_TASKS_RUN_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/manifest/manifest.h"

namespace cloze {

// Files of a run directory: the spec, the log, and the answers of the best model to the validation
// data (MetricResults::answers).
inline constexpr char kSpecName[] = "spec.textproto";
inline constexpr char kLogName[] = "log.jsonl";
inline constexpr char kAnswersName[] = "answers.json";
// The optimizer's moments in a checkpoint.
inline constexpr char kMomentsName[] = "optimizer.safetensors";

// Name of the folder of a step.
std::string CheckpointName(int64_t step);
bool IsCheckpointName(absl::string_view name);
// kMismatch unless `path` ends with CheckpointName(step), where `step` is the one in its MANIFEST.
absl::Status CheckCheckpointName(const std::string& path, int64_t step);

// Creates plain files in `folder`.
using WriteFiles = absl::FunctionRef<absl::Status(const std::string& folder)>;

// Lets `write` fill a temporary folder, adds a MANIFEST, fsyncs everything and renames the folder
// to its name in `run_dir`. Then reads it again and deletes the oldest checkpoints, keeping `keep`
// sound ones. Keeps a sound checkpoint of the same step; renames a damaged one to broken-.... Fails
// early with less than `expected_bytes` (0: unknown) of free space. kIo or the error of `write`; no
// existing checkpoint is lost. Requires the RunLock.
absl::Status SaveCheckpoint(const std::string& run_dir, int64_t step, WriteFiles write, int keep,
    int64_t expected_bytes = 0);

// Moves the files that `write` creates, and their MANIFEST, into `run_dir` itself, replacing the
// files of the MANIFEST there and files of the same names. All are complete and on disk before the
// first is moved. Between the first move and the last, MANIFEST holds a mark (MarkReplaced). Errors
// and `expected_bytes` as SaveCheckpoint.
absl::Status SaveModel(
    const std::string& run_dir, int64_t step, WriteFiles write, int64_t expected_bytes = 0);

// Compares every file that SaveModel put into `run_dir` for `step`, or every file of a checkpoint,
// with its MANIFEST. kMismatch names the file or another step; kIo if one cannot be read.
absl::Status VerifyModel(const std::string& run_dir, int64_t step);
absl::Status VerifyCheckpoint(const std::string& path);

// Returns the path of the newest checkpoint that verifies; "" if there are none. Adds a line
// "skipped step-00001234: why" to `notes` for each newer one that does not. kMismatch (kIo
// if one cannot be read) if there are checkpoints and none verifies: a run never starts from zero
// over the remains of another.
absl::StatusOr<std::string> FindCheckpoint(
    const std::string& run_dir, std::vector<std::string>* notes);

// Removes temporary checkpoints and specs that dead processes left in `run_dir`. Requires the
// RunLock.
void RemoveLeftovers(const std::string& run_dir);

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_CHECKPOINT_H_
