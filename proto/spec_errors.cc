#include "proto/spec_errors.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "proto/task.pb.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;

// Returns the type of the enum field named `field` in `message` or below, or null. Protobuf's error
// does not name the message.
const pb::EnumDescriptor* FindEnum(const pb::Descriptor* message, const std::string& field) {
  for (int i = 0; i < message->field_count(); ++i) {
    const pb::FieldDescriptor* candidate = message->field(i);
    if (candidate->enum_type() != nullptr && candidate->name() == field)
      return candidate->enum_type();
    if (candidate->message_type() == nullptr) continue;
    if (const pb::EnumDescriptor* found = FindEnum(candidate->message_type(), field)) return found;
  }
  return nullptr;
}

}  // namespace

std::string UnknownField(const pb::Descriptor* message, absl::string_view name) {
  std::vector<std::string> names;
  for (int i = 0; i < message->field_count(); ++i) names.push_back(message->field(i)->name());
  return absl::StrCat("unknown field \"", Quote(name), "\" in ", message->name(),
      DidYouMean(name, names), " (fields: ", absl::StrJoin(names, ", "), ")");
}

std::string UnknownValue(
    const pb::EnumDescriptor* type, absl::string_view field, absl::string_view value) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  return absl::StrCat("unknown value \"", Quote(value), "\" of ", field, DidYouMean(value, names),
      " (values: ", absl::StrJoin(names, ", "), ")");
}

// Protobuf reports the position after the wrong name; LastWordBefore finds the name itself.
absl::Status FirstError::ToStatus(const TextScan& scan) const {
  const std::vector<std::string> parts = absl::StrSplit(message_, '"');
  std::vector<std::string> names;  // quoted in the message
  for (size_t i = 1; i + 1 < parts.size(); i += 2) names.push_back(parts[i]);
  const size_t offset = scan.Offset(line_, column_);
  const auto at = [&](const std::string& name, const std::string& message) {
    return Error(Exit::kSpec, scan.Where(scan.LastWordBefore(name, offset)), ": ", message);
  };
  const pb::Descriptor* spec = TaskSpec::descriptor();
  if (names.size() == 2 && absl::StrContains(message_, "has no field named")) {
    if (const auto* type = spec->file()->pool()->FindMessageTypeByName(names[0]))
      return at(names[1], UnknownField(type, names[1]));
  }
  if (names.size() == 2 && absl::StartsWith(message_, "Unknown enumeration value")) {
    if (const auto* type = FindEnum(spec, names[1]))
      return at(names[0], UnknownValue(type, names[1], names[0]));
  }
  if (names.size() == 1 && absl::StrContains(message_, "specified multiple times"))
    return at(names[0], absl::StrCat("field \"", Quote(names[0]), "\" is given twice"));
  if (names.size() == 3 && absl::StrContains(message_, "another member of oneof")) {
    return at(names[0], absl::StrCat("\"", Quote(names[0]), "\" and \"", Quote(names[1]),
                            "\" exclude each other: expected one ", Quote(names[2])));
  }
  return Error(Exit::kSpec, scan.Where(offset), ": ", Quote(message_));
}

}  // namespace cloze
