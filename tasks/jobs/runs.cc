#include "tasks/jobs/runs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/sentence_vectors.h"
#include "tasks/metrics.h"
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

// True if `path` is a symbolic link.
bool IsLink(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

constexpr int64_t kMaxSummary = 64 << 20;  // bytes of metrics.json and of sweep.json

// Returns the object in the file; null if there is no file.
absl::StatusOr<Json> ReadSummary(const std::string& path) {
  if (!PathExists(path)) return Json();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxSummary));
  return ParseJson(text, path);
}

// Returns the results in the metrics.json of a run; empty if there is none. Sets its step.
absl::StatusOr<MetricResults> ReadResults(const std::string& run, int64_t* step) {
  MetricResults results;
  ASSIGN_OR_RETURN(const Json json, ReadSummary(JoinPath(run, "metrics.json")));
  const Json &metrics = JsonMember(json, "metrics"), &at = JsonMember(json, "step");
  if (at.is_number_unsigned()) *step = at.get<int64_t>();
  if (!metrics.is_object()) return results;
  for (const auto& [name, value] : metrics.items()) {
    if (value.is_number()) results.values.emplace_back(name, value.get<double>());
    if (value.is_structured()) results.tables.emplace_back(name, value.dump());
  }
  return results;
}

// Reads what the run in `path`, or its seeds, left behind.
absl::Status ReadEarlierRun(const std::string& path, EarlierRun* earlier) {
  SweepSummary::Run& run = earlier->run;
  ASSIGN_OR_RETURN(run.results, ReadResults(path, &run.steps));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) {
    if (!IsSeedFolder(name)) continue;
    int64_t steps = 0;
    ASSIGN_OR_RETURN(MetricResults part, ReadResults(JoinPath(path, name), &steps));
    if (!part.values.empty()) earlier->parts.push_back(std::move(part));
  }
  if (earlier->parts.empty()) earlier->parts = {run.results};
  return absl::OkStatus();
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

absl::Status CheckSameEvaluation(const std::string& run, const TaskSpec& now) {
  ASSIGN_OR_RETURN(const LoadedSpec before, LoadSpec(JoinPath(run, kSpecName)));
  const TaskSpec& then = before.spec;
  const bool same = absl::c_equal(then.validation().files(), now.validation().files()) &&
                    then.validation().share() == now.validation().share() &&
                    absl::c_equal(then.evaluation().pairs(), now.evaluation().pairs()) &&
                    then.evaluation().max_examples() == now.evaluation().max_examples();
  if (same) return absl::OkStatus();
  return Error(Exit::kMismatch, QuotePath(run),
      ": was evaluated on other texts, so the best run cannot be chosen: expected the same "
      "`validation`, evaluation.pairs and evaluation.max_examples (choose another "
      "output.directory)");
}

void EarlierRun::Measure(const std::string& metric) {
  if (parts.empty()) return;  // has failed
  run.value = run.loss = 0;
  for (const MetricResults& part : parts) {
    const ModelScore score = ScoreOf(part, metric);
    run.value += score.value / static_cast<double>(parts.size());
    run.loss += score.loss / static_cast<double>(parts.size());
  }
  run.status = std::isfinite(run.value)
                   ? absl::OkStatus()
                   : Error(Exit::kInternal, QuotePath(run.folder), ": has no ", metric);
}

absl::StatusOr<std::vector<EarlierRun>> FindEarlierRuns(const std::string& directory) {
  ASSIGN_OR_RETURN(const Json summary, ReadSummary(JoinPath(directory, kSweepName)));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  const Json& rows = JsonMember(summary, "runs");
  std::vector<EarlierRun> runs;
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (!absl::StrContains(name, '=') || IsLink(path) || !PathExists(JoinPath(path, kSpecName)))
      continue;
    EarlierRun earlier;
    earlier.run.folder = name;
    const absl::Status sound = ReadManifest(path).status();
    if (ExitOf(sound) == Exit::kIo) return sound;
    const bool whole = sound.ok();  // else it is half replaced, or has no model yet
    if (whole) RETURN_IF_ERROR(ReadEarlierRun(path, &earlier));
    for (const Json& row : rows) {
      if (JsonMember(row, "folder") != Json(name)) continue;
      const Json &steps = JsonMember(row, "steps"), &error = JsonMember(row, "error");
      if (steps.is_number_unsigned()) earlier.run.steps = steps.get<int64_t>();
      if (!whole && error.is_string())
        earlier.run.status = Error(Exit::kInternal, error.get<std::string>());
    }
    if (whole || !earlier.run.status.ok()) runs.push_back(std::move(earlier));
  }
  return runs;
}

Metric EarlierMetric(const std::string& directory, const TaskSpec& spec) {
  std::string name = spec.evaluation().metric();
  const auto summary = ReadSummary(JoinPath(directory, kSweepName));
  if (name.empty() && summary.ok() && JsonMember(*summary, "metric").is_string())
    name = JsonMember(*summary, "metric").get<std::string>();
  return FindMetric(MetricsOf(*MakeTask(spec), spec), name).value_or(Metric());
}

}  // namespace cloze
