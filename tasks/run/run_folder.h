// The directory of a run: the best model so far as a model folder (or adapter, with LoRA) with
// metrics.json, answers.json and MANIFEST, checkpoints step-00001234/, spec.textproto, about.json,
// log.jsonl, README.md, cache/ and, if the run has learned its vocabulary, vocab/.
#ifndef CLOZE_TASKS_RUN_RUN_FOLDER_H_
#define CLOZE_TASKS_RUN_RUN_FOLDER_H_

#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/comm/ranks.h"
#include "proto/spec.h"
#include "tasks/run/checkpoint.h"

namespace cloze {

// Folder of the token cache.
std::string CacheFolder(const TaskSpec& spec);

// Folder of the vocabulary that a run learns, see LearnsVocabulary.
std::string VocabFolder(const TaskSpec& spec);

// True for the folder of one of a spec's repeated runs: "seed-7".
bool IsSeedFolder(absl::string_view name);

// Describes what `directory` holds that no run wrote and a run would overwrite, as "a model that
// ..."; returns "" if there is nothing.
std::string ForeignContent(const std::string& directory);

// Returns the path of the spec of the run in `folder`, or of the run whose checkpoint it is; "" if
// there is none.
std::string SpecOfRun(absl::string_view folder);
// Copies it, if there is one, into the folder `to`.
absl::Status CopySpec(const std::string& folder, const std::string& to);
// Gives `spec` the rules (KeepRules) of the run in `directory`, or of one of its repeated or swept
// runs, if there is one.
void KeepRulesOf(const std::string& directory, TaskSpec* spec);

// File of a sweep in the directory of its runs.
inline constexpr const char* kSweepName = "sweep.json";

// Allows one process in a run directory: holds flock on run.lock until it is destroyed or the
// process ends in any way. Advisory; on network file systems possibly local to a machine.
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

// Holds the directory's lock. Only rank 0 locks, writes and deletes.
class RunFolder {
 public:
  // Creates output.directory if missing and locks it. kCannotCreate if another process uses it, if
  // the run starts from the model there, or if it holds a model or spec that no run wrote, runs of
  // a spec with `repeat`, or a sweep.
  static absl::StatusOr<RunFolder> Open(const TaskSpec& spec, Ranks* ranks = &OneRank());

  // For a run that could not begin, for the reason `why`: removes what it created. An interrupted
  // run keeps the finished parts of its token cache.
  void Undo(Exit why);

  std::string Path(absl::string_view name) const { return JoinPath(directory_, name); }
  const std::string& directory() const { return directory_; }

 private:
  explicit RunFolder(const TaskSpec& spec);
  absl::Status Lock(const TaskSpec& spec);

  std::string directory_, cache_, vocab_;
  bool cache_is_new_, vocab_is_new_;
  std::optional<RunLock> lock_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_RUN_FOLDER_H_
