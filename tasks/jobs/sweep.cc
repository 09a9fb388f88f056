#include "tasks/jobs/sweep.h"

#include <unistd.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "tasks/jobs/best_run.h"
#include "tasks/jobs/earlier_runs.h"
#include "tasks/jobs/repeat.h"

namespace cloze {
namespace {

constexpr size_t kMostRuns = 1000;

struct Field {
  std::string name;
  std::vector<std::string> values;
};

// A run that is to be trained.
struct Variant {
  SweepSummary::Run run;
  LoadedSpec loaded;
};

absl::StatusOr<Field> ParseSweep(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const Field field = {parts.first, absl::StrSplit(parts.second, ',')};
  const auto fail = [&](const auto&... what) {
    return Error(Exit::kUsage, "--sweep ", Quote(text), ": ", what...);
  };
  if (field.values.size() < 2 || absl::c_linear_search(field.values, ""))
    return fail("expected FIELD=VALUE,VALUE,...");
  for (const char* part : {"output", "evaluation", "validation"}) {
    if (field.name == part || absl::StartsWith(field.name, absl::StrCat(part, ".")))
      return fail("the runs could not be compared: expected a field outside of ", part);
  }
  std::vector<std::string> sorted = field.values;
  absl::c_sort(sorted);
  const auto twice = absl::c_adjacent_find(sorted);
  if (twice != sorted.end()) return fail("\"", Quote(*twice), "\" is given twice");
  return field;
}

// Returns "optimizer.learning_rate=1e-4"; characters that are no part of names become "_".
std::string FolderOf(const std::vector<Field>& fields, const std::vector<std::string>& values) {
  std::string name;
  for (size_t i = 0; i < fields.size(); ++i)
    absl::StrAppend(&name, i > 0 ? "," : "", fields[i].name, "=", values[i]);
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("._-=,+", c)) c = '_';
  }
  return name;
}

// Sets a swept field, also in `validation` if its rows are held out of the training data.
absl::Status Assign(const std::string& field, const std::string& value, LoadedSpec* loaded) {
  const TaskSpec& spec = loaded->spec;
  const bool held_out = spec.validation().share() > 0 &&
                        absl::c_equal(spec.validation().files(), spec.train().files());
  RETURN_IF_ERROR(ApplyOverride(loaded, absl::StrCat(field, "=", value), "--sweep"));
  absl::string_view name = field;
  if (!held_out || !absl::ConsumePrefix(&name, "train.") || name == "max_examples")
    return absl::OkStatus();
  if (name == "files")
    return Error(Exit::kUsage,
        "--sweep train.files: the runs could not be compared: expected validation.files");
  return ApplyOverride(loaded, absl::StrCat("validation.", name, "=", value), "--sweep");
}

// All combinations, each with its verified spec.
absl::StatusOr<std::vector<Variant>> Variants(
    const LoadedSpec& loaded, const std::vector<Field>& fields) {
  std::vector<std::vector<std::string>> all = {{}};
  for (const Field& field : fields) {
    std::vector<std::vector<std::string>> longer;
    for (const auto& values : all) {
      for (const std::string& value : field.values) {
        longer.push_back(values);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
    if (all.size() > kMostRuns)
      return Error(Exit::kUsage, "--sweep: ", all.size(), " runs: expected at most ", kMostRuns);
  }
  std::vector<Variant> variants;
  for (auto& values : all) {
    Variant variant;
    variant.loaded = loaded;
    variant.run.folder = FolderOf(fields, values);
    for (size_t i = 0; i < fields.size(); ++i)
      RETURN_IF_ERROR(Assign(fields[i].name, values[i], &variant.loaded));
    OutputSpec* output = variant.loaded.spec.mutable_output();
    output->set_cache_directory(CacheFolder(loaded.spec));
    output->set_directory(JoinPath(loaded.spec.output().directory(), variant.run.folder));
    RETURN_IF_ERROR(VerifySpec(variant.loaded));
    for (const Variant& other : variants) {
      if (other.run.folder == variant.run.folder)
        return Error(
            Exit::kUsage, "--sweep: two runs have the folder ", QuotePath(other.run.folder));
    }
    variant.run.values = std::move(values);
    variants.push_back(std::move(variant));
  }
  return variants;
}

// Trains one run, or its seeds.
absl::Status TrainOne(const LoadedSpec& loaded, const Trainer::Options& options, Metric* metric,
    SweepSummary::Run* run) {
  if (loaded.spec.repeat() > 1) {
    ASSIGN_OR_RETURN(RepeatSummary all, TrainRepeatedly(loaded, options));
    Trainer::Summary& best = all.runs[all.best].summary;
    *metric = best.metric;
    run->value = all.mean;
    run->loss = all.loss;
    run->steps = best.steps;
    run->results = std::move(best.best);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(loaded, options));
  ASSIGN_OR_RETURN(Trainer::Summary summary, trainer->Run());
  *metric = summary.metric;
  run->steps = summary.steps;
  ASSIGN_OR_RETURN(const ModelScore score, BestScore(summary));
  run->value = score.value;
  run->loss = score.loss;
  run->results = std::move(summary.best);
  return absl::OkStatus();
}

bool IsOneOf(const std::vector<Variant>& variants, const EarlierRun& run) {
  return absl::c_any_of(variants, [&](const Variant& v) { return v.run.folder == run.run.folder; });
}

// Returns all runs of which something is known, and the best of them. `done` are the first runs of
// this sweep; the others, if `earlier` has them, are as they were left.
SweepSummary Gather(const SweepSummary& done, const std::vector<Variant>& variants,
    std::vector<EarlierRun> earlier) {
  SweepSummary all = {.fields = done.fields, .metric = done.metric, .runs = {}};
  const auto take = [&](EarlierRun& run) {
    run.Measure(all.metric.name);
    all.runs.push_back(run.run);
  };
  for (EarlierRun& run : earlier) {
    if (!IsOneOf(variants, run)) take(run);
  }
  for (size_t i = 0; i < variants.size(); ++i) {
    const std::string& folder = variants[i].run.folder;
    const auto before =
        absl::c_find_if(earlier, [&](const EarlierRun& e) { return e.run.folder == folder; });
    if (i < done.runs.size()) {
      all.runs.push_back(done.runs[i]);
    } else if (before != earlier.end()) {
      take(*before);
    }
  }
  std::vector<ModelScore> scores;
  for (const SweepSummary::Run& run : all.runs)
    scores.push_back(run.status.ok() ? ModelScore{run.value, run.loss} : ModelScore());
  all.best = BestOfRuns(all.metric, scores);
  return all;
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

// Checks what is in the directory before the first run, and returns the runs of earlier sweeps.
absl::StatusOr<std::vector<EarlierRun>> LookAround(
    const std::string& directory, const TaskSpec& spec, const std::vector<Variant>& variants) {
  for (const Variant& variant : variants)
    RETURN_IF_ERROR(CheckNoLink(JoinPath(directory, variant.run.folder)));
  auto runs = FindEarlierRuns(directory);
  if (!runs.ok()) return runs;
  for (const EarlierRun& run : *runs) {
    if (!run.parts.empty() && !IsOneOf(variants, run))
      RETURN_IF_ERROR(CheckSameEvaluation(JoinPath(directory, run.run.folder), spec));
  }
  return runs;
}

absl::StatusOr<std::vector<Field>> ParseSweeps(const std::vector<std::string>& sweeps) {
  std::vector<Field> fields;
  for (const std::string& sweep : sweeps) {
    ASSIGN_OR_RETURN(Field field, ParseSweep(sweep));
    if (absl::c_any_of(fields, [&](const Field& f) { return f.name == field.name; }))
      return Error(Exit::kUsage, "--sweep: ", Quote(field.name), " is given twice");
    fields.push_back(std::move(field));
  }
  return fields;
}

// Puts the spec and the model of the best run into the directory.
absl::Status Publish(const std::string& directory, const SweepSummary& summary) {
  const std::string run = JoinPath(directory, summary.runs[summary.best].folder);
  ASSIGN_OR_RETURN(const std::string spec, ReadFile(JoinPath(run, kSpecName), kMaxSpecBytes));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, kSpecName), spec));
  return PublishRun(run, directory);
}

}  // namespace

absl::StatusOr<SweepSummary> TrainSweep(const LoadedSpec& given,
    const std::vector<std::string>& sweeps, const Trainer::Options& options) {
  LoadedSpec loaded = given;
  KeepShareRuleOf(loaded.spec.output().directory(), &loaded.spec);
  SweepSummary summary;
  ASSIGN_OR_RETURN(const std::vector<Field> fields, ParseSweeps(sweeps));
  for (const Field& field : fields) summary.fields.push_back(field.name);
  ASSIGN_OR_RETURN(std::vector<Variant> variants, Variants(loaded, fields));
  if (loaded.spec.validation().files().empty()) {
    return SpecError(loaded, "validation",
        "is empty, but the choice of the best run of a sweep needs it: expected "
        "validation.files or validation.share");
  }
  for (const auto& [run, variant] : variants) {
    RETURN_IF_ERROR(CheckStreams(variant, "each run of the sweep reads it"));
    if (const auto errors = CheckInputs(variant); !errors.empty()) return errors.front();
  }
  const std::string& directory = loaded.spec.output().directory();
  ASSIGN_OR_RETURN(RunLock lock, LockRuns(directory, true));
  const auto found = LookAround(directory, loaded.spec, variants);
  if (!found.ok()) {
    lock.Undo();
    return found.status();
  }
  RemoveLeftovers(directory);
  Progress say({});
  summary.metric = EarlierMetric(directory, loaded.spec);
  const std::string mark = JoinPath(directory, kSweepName);  // says what the directory is for
  const auto all = [&] { return Gather(summary, variants, *found); };
  const auto write = [&] { return WriteFileAtomically(mark, SweepText(all())); };
  const bool begins = !PathExists(mark);
  if (begins) RETURN_IF_ERROR(write());
  for (const auto& [begun, variant] : variants) {
    SweepSummary::Run run = begun;
    say.Note(
        absl::StrCat("run ", summary.runs.size() + 1, " of ", variants.size(), ": ", run.folder));
    run.status = TrainOne(variant, options, &summary.metric, &run);
    const Exit exit = ExitOf(run.status);
    if (!run.status.ok() && exit != Exit::kInternal && exit != Exit::kLimit) {
      if (summary.runs.empty() && exit != Exit::kInterrupted) {
        if (begins) ::unlink(mark.c_str());
        lock.Undo();
      }
      return run.status;
    }
    if (!run.status.ok()) say.Note(run.status.message());
    summary.runs.push_back(std::move(run));
    RETURN_IF_ERROR(write());
  }
  const auto ends_well = [](const SweepSummary::Run& run) { return run.status.ok(); };
  if (absl::c_none_of(summary.runs, ends_well)) return summary.runs.front().status;
  SweepSummary gathered = all();
  RETURN_IF_ERROR(Publish(directory, gathered));
  return gathered;
}

}  // namespace cloze
