// `--set a.b=c`: walks the path by reflection and parses the value with protobuf's text format.
#include <google/protobuf/text_format.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "proto/spec.h"
#include "proto/spec_errors.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

std::string Expected(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL: return "true or false";
    case FieldDescriptor::CPPTYPE_FLOAT: return "a number";
    case FieldDescriptor::CPPTYPE_INT32: return "a whole number of 32 bits";
    case FieldDescriptor::CPPTYPE_UINT64: return "a whole number of 64 bits from 0";
    default: return "a whole number of 64 bits";
  }
}

// Sets a singular field or appends to a repeated one.
absl::Status SetValue(const FieldDescriptor* field, absl::string_view value, pb::Message* message) {
  const bool text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  const bool octal = !text && IsOctal(value);
  if (!octal && parser.ParseFieldValueFromString(
                    text ? absl::StrCat("\"", absl::CEscape(value), "\"") : std::string(value),
                    field, message)) {
    return absl::OkStatus();
  }
  if (field->enum_type() != nullptr)
    return Error(Exit::kSpec, UnknownValue(field->enum_type(), field->name(), value));
  return Error(Exit::kSpec, "expected ", Expected(field), octal ? " without a leading 0" : "",
      ", found \"", Quote(value), "\"");
}

absl::Status SetField(const FieldDescriptor* field, absl::string_view value, pb::Message* message) {
  message->GetReflection()->ClearField(message, field);
  if (field->is_repeated()) {
    if (value.empty()) return absl::OkStatus();
    for (const absl::string_view item : absl::StrSplit(value, ','))
      RETURN_IF_ERROR(SetValue(field, item, message));
    return absl::OkStatus();
  }
  if (field->message_type() == nullptr) return SetValue(field, value, message);
  if (value == "{}") message->GetReflection()->MutableMessage(message, field);
  if (value.empty() || value == "{}") return absl::OkStatus();
  return Error(Exit::kSpec, "expected a field of the message ", field->message_type()->name(), " (",
      field->name(), ".", field->message_type()->field(0)->name(), "=...), {} or nothing");
}

absl::Status Assign(absl::string_view path, absl::string_view value, pb::Message* message) {
  const FieldDescriptor* field = nullptr;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (field != nullptr) {
      if (field->message_type() == nullptr || field->is_repeated())
        return Error(Exit::kSpec, "\"", field->name(), "\" has no fields");
      message = message->GetReflection()->MutableMessage(message, field);
    }
    field = message->GetDescriptor()->FindFieldByName(std::string(name));
    if (field == nullptr) return Error(Exit::kSpec, UnknownField(message->GetDescriptor(), name));
  }
  return SetField(field, value, message);
}

}  // namespace

absl::Status ApplyOverride(LoadedSpec* loaded, absl::string_view assignment) {
  const std::string where = absl::StrCat("--set ", Quote(assignment));
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos) return Error(Exit::kSpec, where, ": expected FIELD=VALUE");
  const std::string key(assignment.substr(0, equals));
  TaskSpec changed = loaded->spec;
  RETURN_IF_ERROR(Annotate(Assign(key, assignment.substr(equals + 1), &changed), where));
  loaded->spec.Swap(&changed);
  std::erase_if(loaded->where, [&](const auto& entry) {
    return entry.first.starts_with(key + ".") || entry.first.starts_with(key + "[");
  });
  loaded->where[key] = where;
  return absl::OkStatus();
}

}  // namespace cloze
