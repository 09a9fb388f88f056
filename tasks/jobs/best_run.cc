#include "tasks/jobs/best_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

#include "absl/algorithm/container.h"
#include "core/base/file.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/sentence_vectors.h"
#include "tasks/run/checkpoint.h"
#include "tasks/training/run_result.h"

namespace cloze {
namespace {

// Makes `to` a link to `from`, or a copy if links cannot be made.
absl::Status LinkOrCopy(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t size, FileSize(from));
  ASSIGN_OR_RETURN(const Fd source, OpenForRead(from));
  return CreateFile(to, [&](const Fd& fd) {
    return ForBlocks(
        source, from, size, [&](const char* data, int64_t n) { return WriteAll(fd, to, data, n); });
  });
}

}  // namespace

absl::StatusOr<RunLock> LockRuns(const std::string& directory, bool sweep) {
  ASSIGN_OR_RETURN(RunLock lock, RunLock::Acquire(directory));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  const std::string foreign = ForeignContent(directory);
  const bool single = absl::c_any_of(names, IsCheckpointName),
             other = sweep ? absl::c_any_of(names, IsSeedFolder)
                           : absl::c_linear_search(names, kSweepName);
  if (foreign.empty() && !single && !other) return lock;
  lock.Undo();
  return Error(Exit::kCannotCreate, QuotePath(directory), ": holds ",
      !foreign.empty() ? foreign
      : single         ? "a single run"
      : sweep          ? "runs of a spec with `repeat`"
                       : "runs of a sweep",
      " (choose another output.directory)");
}

bool IsLink(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

absl::Status CheckNoLink(const std::string& path) {
  if (!IsLink(path)) return absl::OkStatus();
  return Error(Exit::kCannotCreate, QuotePath(path),
      ": is a link: expected a folder of this run, or nothing (remove it, or choose another "
      "output.directory)");
}

int BestOfRuns(const Metric& metric, absl::Span<const ModelScore> runs) {
  int best = -1;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (CompareModels(metric, runs[i], best < 0 ? ModelScore() : runs[best]) > 0 &&
        std::isfinite(runs[i].value))
      best = static_cast<int>(i);
  }
  return best;
}

absl::StatusOr<ModelScore> BestScore(const Trainer::Summary& run) {
  const ModelScore score = ScoreOf(run.best, run.metric.name);
  if (std::isfinite(score.value)) return score;
  return Error(Exit::kInternal, "evaluation.metric: ", run.metric.name,
      " was never a number in this run (choose another one, or lower optimizer.learning_rate)");
}

absl::Status PublishRun(const std::string& run, const std::string& directory) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(run));
  ASSIGN_OR_RETURN(const auto vectors, ReadSentenceVectors(run));
  RETURN_IF_ERROR(CopySentenceVectors(vectors, directory));
  if (const std::string result = JoinPath(run, kResultName); PathExists(result)) {
    constexpr int64_t kMaxBytes = 1 << 20;
    ASSIGN_OR_RETURN(const std::string text, ReadFile(result, kMaxBytes));
    RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, kResultName), text));
  }
  return SaveModel(directory, manifest.step, [&](const std::string& folder) {
    for (const Manifest::File& file : manifest.files)
      RETURN_IF_ERROR(LinkOrCopy(JoinPath(run, file.name), JoinPath(folder, file.name)));
    return IsAdapter(run) ? MoveBase(run, directory, folder) : absl::OkStatus();
  });
}

}  // namespace cloze
