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
    run->steps = best.steps;
    run->results = std::move(best.best);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(loaded, options));
  ASSIGN_OR_RETURN(Trainer::Summary summary, trainer->Run());
  *metric = summary.metric;
  run->steps = summary.steps;
  ASSIGN_OR_RETURN(run->value, BestValue(summary));
  run->results = std::move(summary.best);
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

// Puts the spec and the model of the best run into the directory.
absl::Status Publish(const std::string& directory, const SweepSummary& summary) {
  const std::string run = JoinPath(directory, summary.runs[summary.best].folder);
  ASSIGN_OR_RETURN(const std::string spec, ReadFile(JoinPath(run, kSpecName), kMaxSpecBytes));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, kSpecName), spec));
  return PublishRun(run, directory);
}

}  // namespace

absl::StatusOr<SweepSummary> TrainSweep(const LoadedSpec& loaded,
    const std::vector<std::string>& sweeps, const Trainer::Options& options) {
  SweepSummary summary;
  std::vector<Field> fields;
  for (const std::string& sweep : sweeps) {
    ASSIGN_OR_RETURN(Field field, ParseSweep(sweep));
    if (absl::c_linear_search(summary.fields, field.name))
      return Error(Exit::kUsage, "--sweep: ", Quote(field.name), " is given twice");
    summary.fields.push_back(field.name);
    fields.push_back(std::move(field));
  }
  ASSIGN_OR_RETURN(std::vector<Variant> variants, Variants(loaded, fields));
  if (loaded.spec.validation().files().empty()) {
    return SpecError(loaded, "validation",
        "is empty, but the choice of the best run of a sweep needs it: expected "
        "validation.files or validation.share");
  }
  for (const auto& [run, variant] : variants) {
    if (const auto errors = CheckInputs(variant); !errors.empty()) return errors.front();
  }
  const std::string& directory = loaded.spec.output().directory();
  ASSIGN_OR_RETURN(RunLock lock, LockRuns(directory, true));
  RemoveLeftovers(directory);
  Progress say({});
  const std::string mark = JoinPath(directory, kSweepName);  // says what the directory is for
  const auto write = [&] { return WriteFileAtomically(mark, SweepText(summary)); };
  const bool begins = !PathExists(mark);
  if (begins) RETURN_IF_ERROR(write());
  for (auto& [run, variant] : variants) {
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
    const bool better =
        run.status.ok() &&
        (summary.best < 0 || IsBetter(summary.metric, run.value, summary.runs[summary.best].value));
    if (better) summary.best = static_cast<int>(summary.runs.size());
    summary.runs.push_back(std::move(run));
    RETURN_IF_ERROR(write());
  }
  if (summary.best < 0) return summary.runs.front().status;
  RETURN_IF_ERROR(Publish(directory, summary));
  return summary;
}

}  // namespace cloze
