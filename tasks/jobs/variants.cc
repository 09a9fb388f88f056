// The runs of a sweep, or of `repeat`, before they are trained.

#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "tasks/jobs/runs.h"

namespace cloze {
namespace {

constexpr size_t kMaxRuns = 1000;

struct SweptField {
  std::string name;
  std::vector<std::string> values;
};

absl::StatusOr<SweptField> ParseSweep(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  const SweptField field = {parts.first, absl::StrSplit(parts.second, ',')};
  const auto fail = [&](const auto&... what) {
    return Error(Exit::kUsage, "sweep ", Quote(text), ": ", what...);
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
std::string FolderOf(
    const std::vector<SweptField>& fields, const std::vector<std::string>& values) {
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
  RETURN_IF_ERROR(ApplyOverride(loaded, absl::StrCat(field, "=", value), "sweep"));
  absl::string_view name = field;
  if (!held_out || !absl::ConsumePrefix(&name, "train.") || name == "max_examples")
    return absl::OkStatus();
  if (name == "files")
    return Error(Exit::kUsage,
        "sweep train.files: the runs could not be compared: expected validation.files");
  return ApplyOverride(loaded, absl::StrCat("validation.", name, "=", value), "sweep");
}

// Returns a run for each combination of values. All share one token cache.
absl::StatusOr<std::vector<Variant>> Expand(
    const LoadedSpec& loaded, const std::vector<SweptField>& fields, bool seeds) {
  std::vector<Variant> variants = {{{}, loaded}};
  for (const auto& [name, values] : fields) {
    if (const size_t runs = variants.size() * values.size(); runs > kMaxRuns)
      return Error(Exit::kUsage, "sweep: ", runs, " runs: expected at most ", kMaxRuns);
    for (const Variant& variant : std::exchange(variants, {})) {
      for (const std::string& value : values) {
        Variant& one = variants.emplace_back(variant);
        one.run.values.push_back(value);
        RETURN_IF_ERROR(Assign(name, value, &one.loaded));
      }
    }
  }
  std::set<std::string> folders;
  for (auto& [run, one] : variants) {
    run.folder = seeds ? absl::StrCat("seed-", run.values[0]) : FolderOf(fields, run.values);
    OutputSpec* output = one.spec.mutable_output();
    output->set_cache_directory(CacheFolder(loaded.spec));
    output->set_directory(JoinPath(loaded.spec.output().directory(), run.folder));
    RETURN_IF_ERROR(VerifySpec(one));
    if (!folders.insert(run.folder).second)
      return Error(Exit::kUsage, "sweep: two runs have the folder ", QuotePath(run.folder));
  }
  return variants;
}

}  // namespace

bool IsOneOf(const std::vector<Variant>& variants, absl::string_view folder) {
  return absl::c_any_of(variants, [&](const Variant& v) { return v.run.folder == folder; });
}

absl::StatusOr<std::vector<Variant>> SweepVariants(const LoadedSpec& loaded,
    const std::vector<std::string>& sweeps, std::vector<std::string>* names) {
  std::vector<SweptField> fields;
  for (const std::string& sweep : sweeps) {
    ASSIGN_OR_RETURN(SweptField field, ParseSweep(sweep));
    if (absl::c_any_of(fields, [&](const SweptField& f) { return f.name == field.name; }))
      return Error(Exit::kUsage, "sweep: ", Quote(field.name), " is given twice");
    names->push_back(field.name);
    fields.push_back(std::move(field));
  }
  return Expand(loaded, fields, false);
}

absl::StatusOr<std::vector<Variant>> SeedVariants(const LoadedSpec& loaded) {
  LoadedSpec one = loaded;
  one.spec.clear_repeat();
  SweptField seeds = {"seed", {}};
  for (int i = 0; i < loaded.spec.repeat(); ++i)
    seeds.values.push_back(absl::StrCat(loaded.spec.seed() + i));
  return Expand(one, {seeds}, true);
}

}  // namespace cloze
