// Task specs: read, overridden, checked, printed and explained. Every error names file, line and
// column (or the --set text) and the field.
#ifndef CLOZE_PROTO_SPEC_H_
#define CLOZE_PROTO_SPEC_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

// Most labels of a task, and the longest.
inline constexpr int kMaxLabels = 10'000, kMaxLabelBytes = 1024;

// A spec, and where each of its fields was said.
struct LoadedSpec {
  TaskSpec spec;
  std::string path;  // file, for messages
  // "optimizer.learning_rate" or "train.files[1]" -> "file:3:5" or "--set text".
  std::map<std::string, std::string> where;
};

// Reads a text-format file of at most 1 MiB. kNoInput when it cannot be read, else kSpec with the
// first error: syntax, unknown names (with the nearest known one), repeated fields, numbers that
// look octal, nesting deeper than 32. Ranges are left to VerifySpec.
absl::StatusOr<LoadedSpec> LoadSpec(const std::string& path);

// The same from memory; any bytes give a status. `path` is for messages.
absl::StatusOr<LoadedSpec> ParseSpec(absl::string_view text, const std::string& path);

// Applies "optimizer.learning_rate=1e-4". Enums by name; repeated fields as a comma list that
// replaces the old one; strings as they are; "validation={}" makes a message empty, "validation="
// removes it. Naming a member of a oneof chooses it. kSpec when it does not fit.
absl::Status ApplyOverride(LoadedSpec* loaded, absl::string_view assignment);

// Checks every range and all that fields demand of each other. kSpec with one line for each error.
// Does not look at other files.
absl::Status VerifySpec(const LoadedSpec& loaded);

// The ranges alone, for a spec that is not one of a run.
absl::Status VerifyRanges(const LoadedSpec& loaded);

// LoadSpec, all of `overrides`, VerifySpec.
absl::StatusOr<LoadedSpec> LoadVerifiedSpec(
    const std::string& path, const std::vector<std::string>& overrides);

// An error of kSpec at `field`, a dotted path: "file:3:5: optimizer.learning_rate: message".
absl::Status SpecError(
    const LoadedSpec& loaded, const std::string& field, absl::string_view message);

// `status`, which comes from what `field` names, with the same in front of its message; keeps the
// exit code. Ok stays ok.
absl::Status AtField(
    const LoadedSpec& loaded, const std::string& field, const absl::Status& status);

// `spec` with all defaults filled in, except where leaving a field out has a meaning of its own:
// sizes that the preset fills, what the folder of `model.start_from` says, and batch.micro_tokens,
// which the run chooses.
TaskSpec EffectiveSpec(const TaskSpec& spec);

// EffectiveSpec in text format, with a header for editors. Parses back to an equal EffectiveSpec.
std::string PrintEffective(const TaskSpec& spec);

// Comment, type, default, range, unit and enum values of fields, from the .proto files themselves.
// `filter`: "" for all, else a dotted path
// ("optimizer"), a message ("OptimizerSpec") or a field's name ("learning_rate"). kUsage when
// nothing has that name.
absl::StatusOr<std::string> ExplainSpec(const std::string& filter);

}  // namespace cloze

#endif  // CLOZE_PROTO_SPEC_H_
