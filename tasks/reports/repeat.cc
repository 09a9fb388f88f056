#include "tasks/reports/repeat.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/create.h"
#include "tasks/run/run_folder.h"
#include "tasks/training/setup.h"

namespace cloze {
namespace {

constexpr int64_t kMaxFile = int64_t{1} << 40;

// The spec of one run.
LoadedSpec SpecOf(const LoadedSpec& loaded, uint64_t seed) {
  LoadedSpec one = loaded;
  OutputSpec* output = one.spec.mutable_output();
  output->set_cache_directory(CacheFolder(loaded.spec));
  output->set_directory(JoinPath(output->directory(), SeedFolder(seed)));
  one.spec.set_seed(seed);
  one.spec.clear_repeat();
  return one;
}

absl::StatusOr<RunLock> LockDirectory(const std::string& directory) {
  ASSIGN_OR_RETURN(RunLock lock, RunLock::Acquire(directory));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const bool model =
        name == "model.safetensors" && !PathExists(JoinPath(directory, "spec.textproto"));
    if (!model && !absl::StartsWith(name, "step-")) continue;
    lock.Undo();
    return Error(Exit::kCannotCreate, absl::StrCat(QuotePath(directory), ": holds ",
                                          model ? "a model that is not of a run" : "a single run",
                                          "; choose another output.directory"));
  }
  return lock;
}

// Makes `to` the same file as `from`, or a copy of it, in one step.
absl::Status Replace(const std::string& from, const std::string& to) {
  const std::string temporary = TemporaryName(to);
  if (::link(from.c_str(), temporary.c_str()) != 0) {
    ASSIGN_OR_RETURN(const std::string content, ReadFile(from, kMaxFile));
    return WriteFileAtomically(to, content);
  }
  const bool renamed = std::rename(temporary.c_str(), to.c_str()) == 0;
  const int error = errno;
  ::unlink(temporary.c_str());  // is still there when both were the same file before
  return renamed ? absl::OkStatus()
                 : Error(Exit::kIo,
                       absl::StrCat(QuotePath(to), ": cannot replace: ", std::strerror(error)));
}

// The model folder of a run, without what is the run's own; the metrics come last.
absl::Status Publish(const std::string& run, const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(run));
  for (const std::string& name : names) {
    struct stat info;
    const bool plain = ::lstat(JoinPath(run, name).c_str(), &info) == 0 && S_ISREG(info.st_mode);
    const bool own = name == "spec.textproto" || name == "log.jsonl" || name == "run.lock" ||
                     name == "metrics.json" || absl::StrContains(name, ".tmp-");
    if (plain && !own) RETURN_IF_ERROR(Replace(JoinPath(run, name), JoinPath(directory, name)));
  }
  RETURN_IF_ERROR(Replace(JoinPath(run, "metrics.json"), JoinPath(directory, "metrics.json")));
  return SyncDirectory(directory);
}

void Summarize(RepeatSummary* summary) {
  const std::vector<RepeatSummary::Run>& runs = summary->runs;
  const double n = runs.size();
  for (const auto& run : runs) summary->mean += run.value / n;
  for (const auto& run : runs)
    summary->deviation +=
        (run.value - summary->mean) * (run.value - summary->mean) / std::max(n - 1, 1.0);
  summary->deviation = std::sqrt(summary->deviation);
  for (size_t i = 1; i < runs.size(); ++i) {
    if (IsBetter(runs[i].summary.metric, runs[i].value, runs[summary->best].value))
      summary->best = i;
  }
}

std::string SummaryText(const RepeatSummary& summary) {
  nlohmann::ordered_json json = {{"metric", summary.runs[0].summary.metric}, {"mean", summary.mean},
      {"deviation", summary.deviation}, {"best_seed", summary.runs[summary.best].seed}};
  for (const auto& run : summary.runs)
    json["runs"].push_back(
        {{"seed", run.seed}, {"value", run.value}, {"steps", run.summary.steps}});
  return json.dump(2) + "\n";
}

}  // namespace

absl::StatusOr<RepeatSummary> TrainRepeatedly(
    const LoadedSpec& loaded, const Trainer::Options& options) {
  RETURN_IF_ERROR(VerifySpec(loaded));
  LoadedSpec all = loaded;
  const TaskSpec& spec = all.spec;
  const std::string& directory = spec.output().directory();
  ASSIGN_OR_RETURN(RunLock lock, LockDirectory(directory));
  Progress say({});
  RepeatSummary summary;
  for (int i = 0; i < spec.repeat(); ++i) {
    const uint64_t seed = spec.seed() + i;
    say.Note(absl::StrCat("run ", i + 1, " of ", spec.repeat(), ": seed ", seed));
    const auto trainer = Trainer::Create(SpecOf(all, seed), options);
    if (!trainer.ok()) {
      if (i == 0) lock.Undo();
      return trainer.status();
    }
    all.spec.mutable_batch()->set_micro_tokens(
        (*trainer)->spec().batch().micro_tokens());  // one for all of them
    if (i == 0)
      RETURN_IF_ERROR(
          WriteFileAtomically(JoinPath(directory, "spec.textproto"), PrintEffective(spec)));
    ASSIGN_OR_RETURN(Trainer::Summary one, (*trainer)->Run());
    ASSIGN_OR_RETURN(const double value, one.best.Value(one.metric));
    summary.runs.push_back({seed, value, std::move(one)});
  }
  Summarize(&summary);
  const RepeatSummary::Run& best = summary.runs[summary.best];
  RETURN_IF_ERROR(Publish(JoinPath(directory, SeedFolder(best.seed)), directory));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, "repeat.json"), SummaryText(summary)));
  say.Note(absl::StrFormat("%s of %d runs: mean %.4g, deviation %.2g; kept seed %d with %.4g",
      best.summary.metric, spec.repeat(), summary.mean, summary.deviation, best.seed, best.value));
  return summary;
}

}  // namespace cloze
