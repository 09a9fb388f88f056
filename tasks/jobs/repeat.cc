#include "tasks/jobs/repeat.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "tasks/jobs/best_run.h"
#include "tasks/run/run_folder.h"

namespace cloze {
namespace {

// Returns the spec of the run with `seed`. All runs share one token cache.
LoadedSpec SpecOf(const LoadedSpec& loaded, uint64_t seed) {
  LoadedSpec one = loaded;
  OutputSpec* output = one.spec.mutable_output();
  output->set_cache_directory(CacheFolder(loaded.spec));
  output->set_directory(JoinPath(output->directory(), SeedFolder(seed)));
  one.spec.set_seed(seed);
  one.spec.clear_repeat();
  return one;
}

void Summarize(RepeatSummary* summary) {
  const std::vector<RepeatSummary::Run>& runs = summary->runs;
  const double n = runs.size();
  std::vector<ModelScore> scores;
  for (const auto& run : runs) {
    summary->mean += run.value / n;
    summary->loss += run.loss / n;
    scores.push_back({run.value, run.loss});
  }
  for (const auto& run : runs)
    summary->deviation +=
        (run.value - summary->mean) * (run.value - summary->mean) / std::max(n - 1, 1.0);
  summary->deviation = std::sqrt(summary->deviation);
  summary->best = BestOfRuns(runs[0].summary.metric, scores);
}

// Checks the folders of seeds that are there before the first run.
absl::Status CheckSeedFolders(const std::string& directory, const TaskSpec& spec) {
  std::vector<std::string> ours;
  for (int i = 0; i < spec.repeat(); ++i) ours.push_back(SeedFolder(spec.seed() + i));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (absl::c_linear_search(ours, name)) RETURN_IF_ERROR(CheckNoLink(path));
    if (!IsSeedFolder(name) || absl::c_linear_search(ours, name) ||
        !PathExists(JoinPath(path, kManifestName)))
      continue;
    return Error(Exit::kCannotCreate, QuotePath(path),
        ": is a run of a seed that this spec does not repeat, and may be the best one: expected "
        "`seed` and `repeat` that include it (or choose another output.directory)");
  }
  return absl::OkStatus();
}

std::string SummaryText(const RepeatSummary& summary) {
  OrderedJson json = {{"metric", summary.runs[0].summary.metric.name}, {"mean", summary.mean},
      {"deviation", summary.deviation}, {"best_seed", summary.runs[summary.best].seed}};
  for (const auto& run : summary.runs)
    json["runs"].push_back(
        {{"seed", run.seed}, {"value", run.value}, {"steps", run.summary.steps}});
  return ToJsonText(json);
}

}  // namespace

absl::StatusOr<RepeatSummary> TrainRepeatedly(
    const LoadedSpec& loaded, const Trainer::Options& options) {
  RETURN_IF_ERROR(VerifySpec(loaded));
  LoadedSpec all = loaded;
  const TaskSpec& spec = all.spec;
  const std::string& directory = spec.output().directory();
  ASSIGN_OR_RETURN(RunLock lock, LockRuns(directory, false));
  if (const absl::Status sound = CheckSeedFolders(directory, spec); !sound.ok()) {
    lock.Undo();
    return sound;
  }
  RemoveLeftovers(directory);
  Progress say({});
  RepeatSummary summary;
  Trainer::Options each = options;
  for (int i = 0; i < spec.repeat(); ++i) {
    const uint64_t seed = spec.seed() + i;
    say.Note(absl::StrCat("run ", i + 1, " of ", spec.repeat(), ": seed ", seed));
    const auto trainer = Trainer::Create(SpecOf(all, seed), each);
    if (!trainer.ok()) {
      if (i == 0) lock.Undo();
      return trainer.status();
    }
    // Later runs take the micro-batch, the held-out texts and the streams of the first one.
    all.spec.mutable_batch()->set_micro_tokens((*trainer)->spec().batch().micro_tokens());
    KeepShareRule((*trainer)->spec(), &all.spec);
    each.made = (*trainer)->stores();
    if (i == 0)
      RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, kSpecName), PrintEffective(spec)));
    ASSIGN_OR_RETURN(Trainer::Summary one, (*trainer)->Run());
    ASSIGN_OR_RETURN(const ModelScore score, BestScore(one));
    summary.runs.push_back({seed, score.value, score.loss, std::move(one)});
  }
  Summarize(&summary);
  const RepeatSummary::Run& best = summary.runs[summary.best];
  RETURN_IF_ERROR(PublishRun(JoinPath(directory, SeedFolder(best.seed)), directory));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, "repeat.json"), SummaryText(summary)));
  say.Note(absl::StrFormat("%s of %d runs: mean %.4g, deviation %.2g; kept seed %d with %.4g",
      best.summary.metric.name, spec.repeat(), summary.mean, summary.deviation, best.seed,
      best.value));
  return summary;
}

}  // namespace cloze
