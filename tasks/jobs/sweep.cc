#include "tasks/jobs/sweep.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "tasks/jobs/runs.h"
#include "tasks/run/run_folder.h"

namespace cloze {
namespace {

// Checks the folders of seeds that are in the directory.
absl::Status CheckSeedFolders(const std::string& directory, const std::vector<Variant>& variants) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = JoinPath(directory, name);
    if (!IsSeedFolder(name) || IsOneOf(variants, name) ||
        !PathExists(JoinPath(path, kManifestName)))
      continue;
    return Error(Exit::kCannotCreate, QuotePath(path),
        ": is a run of a seed that this spec does not repeat, and may be the best one: expected "
        "`seed` and `repeat` that include it (or choose another output.directory)");
  }
  return absl::OkStatus();
}

std::string SweepText(const SweepSummary& summary) {
  OrderedJson json = {
      {"metric", summary.metric.name}, {"best", nullptr}, {"runs", OrderedJson::array()}};
  if (summary.best >= 0) json["best"] = summary.runs[summary.best].folder;
  for (const SweepSummary::Run& run : summary.runs) {
    OrderedJson row = {{"folder", run.folder}, {"value", run.value}, {"steps", run.steps}};
    if (!run.status.ok()) row["value"] = nullptr, row["error"] = run.status.message();
    json["runs"].push_back(std::move(row));
  }
  return ToJsonText(json);
}

// Computes the means of seeds.
void Summarize(SweepSummary* summary) {
  const double n = summary->runs.size();
  summary->mean = summary->loss = summary->deviation = 0;
  for (const SweepSummary::Run& run : summary->runs)
    summary->mean += run.value / n, summary->loss += run.loss / n;
  for (const SweepSummary::Run& run : summary->runs)
    summary->deviation +=
        (run.value - summary->mean) * (run.value - summary->mean) / std::max(n - 1, 1.0);
  summary->deviation = std::sqrt(summary->deviation);
}

std::string RepeatText(const SweepSummary& summary) {
  const auto number = [](const SweepSummary::Run& run) { return Json::parse(run.values[0]); };
  OrderedJson json = {{"metric", summary.metric.name}, {"mean", summary.mean},
      {"deviation", summary.deviation}, {"best_seed", number(summary.runs[summary.best])}};
  for (const SweepSummary::Run& run : summary.runs)
    json["runs"].push_back({{"seed", number(run)}, {"value", run.value}, {"steps", run.steps}});
  return ToJsonText(json);
}

// Trains variants of one spec in the folders of one directory: those of a sweep, or the seeds of
// `repeat`.
class Runs {
 public:
  Runs(
      LoadedSpec loaded, bool seeds, std::vector<std::string> fields, std::vector<Variant> variants)
      : loaded_(std::move(loaded)), directory_(loaded_.spec.output().directory()), seeds_(seeds),
        variants_(std::move(variants)) {
    done_.fields = std::move(fields);
  }

  absl::StatusOr<SweepSummary> Train(Trainer::Options options) {
    ASSIGN_OR_RETURN(RunLock lock, LockRuns(directory_, !seeds_));
    if (const absl::Status sound = LookAround(); !sound.ok()) {
      lock.Undo();
      return sound;
    }
    RemoveLeftovers(directory_);
    const std::string mark = JoinPath(directory_, kSweepName);  // says what the directory is for
    const bool begins = !seeds_ && !PathExists(mark);
    if (!seeds_) done_.metric = EarlierMetric(directory_, loaded_.spec);
    if (begins) RETURN_IF_ERROR(Record());
    for (Variant& variant : variants_) {
      const bool first = done_.runs.empty();
      SweepSummary::Run run = variant.run;
      say_.Note(absl::StrCat("run ", done_.runs.size() + 1, " of ", variants_.size(), ": ",
          seeds_ ? "seed " + run.values[0] : run.folder));
      run.status = TrainOne(first, &options, &variant.loaded, &run);
      const Exit exit = ExitOf(run.status);
      const bool goes_on = !seeds_ && (exit == Exit::kInternal || exit == Exit::kLimit);
      if (!run.status.ok() && !goes_on) {
        if (begins && first && exit != Exit::kInterrupted) ::unlink(mark.c_str());
        if (first) lock.Undo();
        return run.status;
      }
      if (!run.status.ok()) say_.Note(run.status.message());
      done_.runs.push_back(std::move(run));
      RETURN_IF_ERROR(Record());
    }
    SweepSummary all = Gather();
    const bool any = absl::c_any_of(done_.runs, [](const auto& run) { return run.status.ok(); });
    if (!any) return done_.runs.front().status;
    RETURN_IF_ERROR(Publish(all));
    return all;
  }

 private:
  // Checks what is in the directory before the first run, and finds the runs of earlier sweeps.
  absl::Status LookAround() {
    for (const Variant& variant : variants_)
      RETURN_IF_ERROR(CheckNoLink(JoinPath(directory_, variant.run.folder)));
    if (seeds_) return CheckSeedFolders(directory_, variants_);
    ASSIGN_OR_RETURN(earlier_, FindEarlierRuns(directory_));
    for (const EarlierRun& run : earlier_) {
      if (!run.parts.empty() && !IsOneOf(variants_, run.run.folder))
        RETURN_IF_ERROR(CheckSameEvaluation(JoinPath(directory_, run.run.folder), loaded_.spec));
    }
    return absl::OkStatus();
  }

  // Trains one run, or its seeds. Later seeds get what all seeds share through `options`, `loaded`.
  absl::Status TrainOne(
      bool first, Trainer::Options* options, LoadedSpec* loaded, SweepSummary::Run* run) {
    if (loaded->spec.repeat() > 1) {
      ASSIGN_OR_RETURN(SweepSummary all, TrainRepeatedly(*loaded, *options));
      SweepSummary::Run& best = all.runs[all.best];
      done_.metric = all.metric;
      run->value = all.mean;
      run->loss = all.loss;
      run->steps = best.steps;
      run->results = std::move(best.results);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(*loaded, *options));
    if (seeds_) {
      options->made = trainer->stores();
      if (first) RETURN_IF_ERROR(ShareSettings(trainer->spec()));
    }
    ASSIGN_OR_RETURN(Trainer::Summary summary, trainer->Run());
    done_.metric = summary.metric;
    run->steps = summary.steps;
    ASSIGN_OR_RETURN(const ModelScore score, BestScore(summary));
    run->value = score.value;
    run->loss = score.loss;
    run->results = std::move(summary.best);
    return absl::OkStatus();
  }

  // Gives all seeds the rules and choices of the first run.
  absl::Status ShareSettings(const TaskSpec& spec_of_first) {
    const TaskSpec first = EffectiveSpec(spec_of_first);  // as it is recorded
    const auto share = [&](TaskSpec* spec) {
      KeepChoices(first, spec);
      spec->mutable_batch()->set_micro_tokens(first.batch().micro_tokens());
    };
    for (Variant& variant : variants_) share(&variant.loaded.spec);
    share(&loaded_.spec);
    return WriteFileAtomically(JoinPath(directory_, kSpecName), PrintEffective(loaded_.spec));
  }

  // Returns all runs of which something is known, and the best of them. Runs of this sweep that
  // have not begun are as earlier sweeps have left them.
  SweepSummary Gather() const {
    SweepSummary all = {.fields = done_.fields, .metric = done_.metric, .runs = {}};
    const auto take = [&](EarlierRun run) {
      run.Measure(all.metric.name);
      all.runs.push_back(run.run);
    };
    for (const EarlierRun& run : earlier_) {
      if (!IsOneOf(variants_, run.run.folder)) take(run);
    }
    for (size_t i = 0; i < variants_.size(); ++i) {
      const std::string& folder = variants_[i].run.folder;
      const auto before =
          absl::c_find_if(earlier_, [&](const EarlierRun& e) { return e.run.folder == folder; });
      if (i < done_.runs.size()) {
        all.runs.push_back(done_.runs[i]);
      } else if (before != earlier_.end()) {
        take(*before);
      }
    }
    std::vector<ModelScore> scores;
    for (const SweepSummary::Run& run : all.runs)
      scores.push_back(run.status.ok() ? ModelScore{run.value, run.loss} : ModelScore());
    all.best = BestOfRuns(all.metric, scores);
    if (seeds_) Summarize(&all);
    return all;
  }

  // Records the runs of a sweep in its directory.
  absl::Status Record() const {
    if (seeds_) return absl::OkStatus();
    return WriteFileAtomically(JoinPath(directory_, kSweepName), SweepText(Gather()));
  }

  // Puts the model of the best run into the directory, and what says so.
  absl::Status Publish(const SweepSummary& all) {
    const SweepSummary::Run& best = all.runs[all.best];
    const std::string run = JoinPath(directory_, best.folder);
    if (!seeds_) {
      ASSIGN_OR_RETURN(const std::string spec, ReadFile(JoinPath(run, kSpecName), kMaxSpecBytes));
      RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory_, kSpecName), spec));
      return PublishRun(run, directory_);
    }
    RETURN_IF_ERROR(PublishRun(run, directory_));
    RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory_, "repeat.json"), RepeatText(all)));
    say_.Note(absl::StrFormat("%s of %d runs: mean %.4g, deviation %.2g; kept seed %s with %.4g",
        all.metric.name, all.runs.size(), all.mean, all.deviation, best.values[0], best.value));
    return absl::OkStatus();
  }

  LoadedSpec loaded_;
  const std::string directory_;
  const bool seeds_;
  std::vector<Variant> variants_;
  std::vector<EarlierRun> earlier_;
  SweepSummary done_;  // the runs of this sweep so far
  Progress say_{{}};
};

}  // namespace

absl::StatusOr<SweepSummary> TrainSweep(const LoadedSpec& given,
    const std::vector<std::string>& sweeps, const Trainer::Options& options) {
  LoadedSpec loaded = given;
  KeepRulesOf(loaded.spec.output().directory(), &loaded.spec);
  std::vector<std::string> names;
  ASSIGN_OR_RETURN(std::vector<Variant> variants, SweepVariants(loaded, sweeps, &names));
  if (loaded.spec.validation().files().empty()) {
    return SpecError(loaded, "validation",
        "is empty, but the choice of the best run of a sweep needs it: expected "
        "validation.files or validation.share");
  }
  for (const auto& [run, variant] : variants) {
    RETURN_IF_ERROR(CheckStreams(variant, "each run of the sweep reads it"));
    if (const auto errors = CheckInputs(variant); !errors.empty()) return errors.front();
  }
  return Runs(std::move(loaded), false, std::move(names), std::move(variants)).Train(options);
}

absl::StatusOr<SweepSummary> TrainRepeatedly(
    const LoadedSpec& loaded, const Trainer::Options& options) {
  RETURN_IF_ERROR(VerifySpec(loaded));
  ASSIGN_OR_RETURN(std::vector<Variant> variants, SeedVariants(loaded));
  return Runs(loaded, true, {"seed"}, std::move(variants)).Train(options);
}

}  // namespace cloze
