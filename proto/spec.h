// Task specs: read, override, verify, print and explain. Every error names the file, line and
// column (or the --set text) and the field.
#ifndef CLOZE_PROTO_SPEC_H_
#define CLOZE_PROTO_SPEC_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

inline constexpr int64_t kMaxSpecBytes = 1 << 20;

// A spec, and the source of each of its fields.
struct LoadedSpec {
  TaskSpec spec;
  std::string path;  // file, for messages
  // "optimizer.learning_rate" or "train.files[1]" -> "file:3:5" or "--set text".
  std::map<std::string, std::string> where;
};

// Reads a text-format file of at most kMaxSpecBytes. kNoInput if it cannot be read, else kSpec with
// the first error: syntax, unknown names, repeated fields, octal numbers, nesting deeper than 32.
// Does not check ranges.
absl::StatusOr<LoadedSpec> LoadSpec(const std::string& path);

// The same for text in memory, which may be any bytes. `path` is used in messages.
absl::StatusOr<LoadedSpec> ParseSpec(absl::string_view text, const std::string& path);

// Applies "optimizer.learning_rate=1e-4". Values are those of the text format, strings without
// quotes. A comma-separated list replaces a repeated field. "validation={}" sets an empty message,
// "validation=" clears the field. Setting a member of a oneof selects it. `prefix` precedes the
// name of the field. kSpec on errors, which leave `loaded` unchanged and begin with `option`, the
// one that the user gave, and the assignment.
absl::Status ApplyOverride(LoadedSpec* loaded, absl::string_view assignment,
    absl::string_view option = "--set", absl::string_view prefix = "");

// Checks all ranges and all constraints between fields. kSpec with one line per error. Does not
// read other files.
absl::Status VerifySpec(const LoadedSpec& loaded);

// Checks each field on its own, for an incomplete spec.
absl::Status VerifyValues(const LoadedSpec& loaded);

// Where validation.share is set without files, copies the files of `train`, and leaves the share
// out of training.
void HoldOut(TaskSpec* spec);

// Gives `now` the share_rule and default_rule of the spec that a run has recorded; earlier versions
// recorded none.
void KeepRules(const TaskSpec& recorded, TaskSpec* now);
// KeepRules, and gives `now` what the run has chosen where neither `now` nor the run's user has set
// it: micro-batch, batch size, length and learning rate.
void KeepChoices(const TaskSpec& recorded, TaskSpec* now);

// True for the settings that a run chooses by its data and its model: those that the spec leaves
// out with default_rule 2. All false for tasks whose defaults are fixed.
struct OpenSettings {
  bool batch = false, length = false, rate = false;
  bool any() const { return batch || length || rate; }
};
OpenSettings OpenSettingsOf(const TaskSpec& spec);
// True if a run of the spec learns its vocabulary: it has no tokenizer and starts from no model.
bool LearnsVocabulary(const TaskSpec& spec);

// LoadSpec, ApplyOverride for each of `overrides`, HoldOut, VerifySpec.
absl::StatusOr<LoadedSpec> LoadVerifiedSpec(
    const std::string& path, const std::vector<std::string>& overrides);

// Returns a warning for each setting that the spec changes although another one makes it unused.
std::vector<std::string> FieldsWithoutEffect(const TaskSpec& spec);

// True if the spec restricts no parameters.
bool TrainsAll(const TrainableSpec& trainable);

// A label and its weight, from "label=weight" in a field label_weights; nothing if malformed.
std::optional<std::pair<std::string, float>> ParseLabelWeight(const std::string& text);

// A label of the data and the one it stands for, from "billing=Billing" in label_map; nothing if
// malformed.
std::optional<std::pair<std::string, std::string>> ParseLabelMap(const std::string& text);

// Prefixes the message of `status` with the place and name of `field`. Keeps the exit code and Ok.
absl::Status AtField(
    const LoadedSpec& loaded, const std::string& field, const absl::Status& status);

// Returns a kSpec error at `field`, a dotted path: "file:3:5: optimizer.learning_rate: message";
// absl::StrCat joins the parts of the message.
template <typename... Parts>
absl::Status SpecError(
    const LoadedSpec& loaded, const std::string& field, const Parts&... message) {
  return AtField(loaded, field, Error(Exit::kSpec, message...));
}

// Returns `encoder` with layers, hidden, heads and intermediate from its preset where they are not
// set. Heads stay unset if hidden is not a multiple of 64; CUSTOM sets nothing.
EncoderSpec FillSizes(EncoderSpec encoder);

// Returns `spec` with all defaults set, except for fields whose absence has its own meaning: sizes
// from the preset, values from the folder in `model.start_from`, batch.micro_tokens, and
// OpenSettingsOf.
TaskSpec EffectiveSpec(const TaskSpec& spec);

// The first line that PrintEffective prints; for editors.
inline constexpr char kSpecHeader[] = "# proto-file: proto/task.proto\n";

// Prints EffectiveSpec in text format, with a header. Parses back to an equal EffectiveSpec.
std::string PrintEffective(const TaskSpec& spec);

// Describes fields: type, default, range, unit, comment and enum values, from the .proto files.
// `filter` is "" for all, a dotted path ("optimizer"), a message ("OptimizerSpec") or the name of a
// field ("learning_rate"). If nothing has this name, a filter of three or more characters selects
// the fields whose description mentions it; kUsage if there are none.
absl::StatusOr<std::string> ExplainSpec(const std::string& filter);

// Returns the fields of EffectiveSpec(spec) by their dotted paths, with values as in the text
// format; those of a repeated field have ", " between. `changed`: only fields whose value is not
// their default.
std::vector<std::pair<std::string, std::string>> FieldsOf(
    const TaskSpec& spec, bool changed = false);

}  // namespace cloze

#endif  // CLOZE_PROTO_SPEC_H_
