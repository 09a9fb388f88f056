// `--set a.b=c`: one assignment, by reflection.
#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/suggest.h"
#include "proto/spec.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

absl::Status Expected(absl::string_view what, absl::string_view value) {
  return Error(Exit::kSpec, absl::StrCat(what, " expected, found \"", Quote(value), "\""));
}

bool LooksOctal(absl::string_view value) {
  if (!value.empty() && value[0] == '-') value.remove_prefix(1);
  return value.size() > 1 && value[0] == '0' && absl::ascii_isdigit(value[1]);
}

template <typename T>
absl::StatusOr<T> Integer(absl::string_view value) {
  T number = 0;
  if (LooksOctal(value)) return Expected("a number without a leading 0", value);
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc::result_out_of_range)
    return Expected(absl::StrCat("a whole number of ", sizeof(T) * 8, " bits"), value);
  if (error != std::errc() || end != value.data() + value.size())
    return Expected("a whole number", value);
  return number;
}

absl::StatusOr<float> Real(absl::string_view value) {
  float number = 0;
  if (LooksOctal(value)) return Expected("a number without a leading 0", value);
  if (!absl::SimpleAtof(value, &number) || !std::isfinite(number))
    return Expected("a finite number", value);
  return number;
}

absl::StatusOr<bool> Truth(absl::string_view value) {
  if (value == "true" || value == "1") return true;
  if (value == "false" || value == "0") return false;
  return Expected("true or false", value);
}

absl::StatusOr<const pb::EnumValueDescriptor*> EnumValue(
    const pb::EnumDescriptor* type, absl::string_view value) {
  if (const pb::EnumValueDescriptor* found = type->FindValueByName(std::string(value)))
    return found;
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  return Error(Exit::kSpec, absl::StrCat("unknown value \"", Quote(value), "\"",
                                DidYouMean(value, names), "; one of ", absl::StrJoin(names, ", ")));
}

absl::Status SetMessage(
    const FieldDescriptor* field, absl::string_view value, pb::Message* message) {
  const pb::Reflection* reflection = message->GetReflection();
  if (!value.empty() && value != "{}") {
    return Error(Exit::kSpec, absl::StrCat("is a message (", field->message_type()->name(),
                                  "), not a value; set one of its fields (", field->name(), ".",
                                  field->message_type()->field(0)->name(), "=...), {} or nothing"));
  }
  reflection->ClearField(message, field);
  if (value == "{}") reflection->MutableMessage(message, field);
  return absl::OkStatus();
}

absl::Status SetRepeated(
    const FieldDescriptor* field, absl::string_view value, pb::Message* message) {
  const pb::Reflection* reflection = message->GetReflection();
  reflection->ClearField(message, field);
  if (value.empty()) return absl::OkStatus();
  for (const absl::string_view item : absl::StrSplit(value, ',')) {
    if (field->enum_type() != nullptr) {
      ASSIGN_OR_RETURN(
          const pb::EnumValueDescriptor* const chosen, EnumValue(field->enum_type(), item));
      reflection->AddEnum(message, field, chosen);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
      ASSIGN_OR_RETURN(const float number, Real(item));
      reflection->AddFloat(message, field, number);
    } else {
      CLOZE_CHECK(field->cpp_type() == FieldDescriptor::CPPTYPE_STRING);
      reflection->AddString(message, field, std::string(item));
    }
  }
  return absl::OkStatus();
}

absl::Status SetField(const FieldDescriptor* field, absl::string_view value, pb::Message* message) {
  const pb::Reflection* reflection = message->GetReflection();
  if (field->is_repeated()) return SetRepeated(field, value, message);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: return SetMessage(field, value, message);
    case FieldDescriptor::CPPTYPE_STRING:
      reflection->SetString(message, field, std::string(value));
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_INT32: {
      ASSIGN_OR_RETURN(const int32_t number, Integer<int32_t>(value));
      reflection->SetInt32(message, field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      ASSIGN_OR_RETURN(const int64_t number, Integer<int64_t>(value));
      reflection->SetInt64(message, field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      ASSIGN_OR_RETURN(const uint64_t number, Integer<uint64_t>(value));
      reflection->SetUInt64(message, field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_FLOAT: {
      ASSIGN_OR_RETURN(const float number, Real(value));
      reflection->SetFloat(message, field, number);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const bool truth, Truth(value));
      reflection->SetBool(message, field, truth);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      ASSIGN_OR_RETURN(
          const pb::EnumValueDescriptor* const chosen, EnumValue(field->enum_type(), value));
      reflection->SetEnum(message, field, chosen);
      return absl::OkStatus();
    }
    default: CLOZE_CHECK(false);
  }
  return absl::OkStatus();
}

absl::Status Assign(absl::string_view path, absl::string_view value, pb::Message* message) {
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  for (size_t i = 0; i < parts.size(); ++i) {
    const pb::Descriptor* type = message->GetDescriptor();
    const FieldDescriptor* field = type->FindFieldByName(parts[i]);
    if (field == nullptr) {
      std::vector<std::string> names;
      for (int j = 0; j < type->field_count(); ++j) names.push_back(type->field(j)->name());
      return Error(Exit::kSpec,
          absl::StrCat("unknown field \"", Quote(parts[i]), "\" in ", type->name(),
              DidYouMean(parts[i], names), "; its fields are ", absl::StrJoin(names, ", ")));
    }
    if (i + 1 == parts.size()) return SetField(field, value, message);
    if (field->message_type() == nullptr)
      return Error(Exit::kSpec, absl::StrCat("\"", parts[i], "\" is a value and has no fields"));
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplyOverride(LoadedSpec* loaded, absl::string_view assignment) {
  const std::string where = absl::StrCat("--set ", Quote(assignment));
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos)
    return Error(Exit::kSpec, absl::StrCat(where, ": a field, \"=\" and a value expected"));
  const absl::string_view path = assignment.substr(0, equals);
  TaskSpec changed = loaded->spec;
  RETURN_IF_ERROR(Annotate(Assign(path, assignment.substr(equals + 1), &changed), where));
  loaded->spec.Swap(&changed);
  const std::string key(path);
  const auto inside = [&](const std::string& name) {
    return name.size() > key.size() && name.starts_with(key) &&
           (name[key.size()] == '.' || name[key.size()] == '[');
  };
  std::erase_if(loaded->where, [&](const auto& entry) { return inside(entry.first); });
  loaded->where[key] = where;
  return absl::OkStatus();
}

}  // namespace cloze
