// Specs for readers: with every default filled in, and with the comments of the .proto files.
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/number.h"
#include "core/base/suggest.h"
#include "proto/options.pb.h"
#include "proto/spec.h"

namespace cloze {

extern const unsigned char kDescriptors[];
extern const size_t kDescriptorsSize;

namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

// May the default stand in a printed spec? Not where it is out of range: such a size comes from the
// preset.
bool DefaultIsValid(const FieldDescriptor* field) {
  const Limits& limits = field->options().GetExtension(cloze::limits);
  return field->has_default_value() || !limits.has_min() || limits.min() <= 0;
}

void SetDefault(const FieldDescriptor* field, pb::Message* message) {
  const pb::Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      reflection->SetInt32(message, field, field->default_value_int32());
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection->SetInt64(message, field, field->default_value_int64());
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      reflection->SetUInt64(message, field, field->default_value_uint64());
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      reflection->SetFloat(message, field, field->default_value_float());
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection->SetBool(message, field, field->default_value_bool());
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      reflection->SetString(message, field, field->default_value_string());
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection->SetEnum(message, field, field->default_value_enum());
      break;
    default: CLOZE_CHECK(false);
  }
}

void FillDefaults(pb::Message* message) {
  const pb::Reflection* reflection = message->GetReflection();
  const pb::Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_repeated()) continue;
    const bool present = reflection->HasField(*message, field);
    if (field->containing_oneof() != nullptr && !present) continue;
    if (field->message_type() != nullptr) {
      FillDefaults(reflection->MutableMessage(message, field));
    } else if (!present && DefaultIsValid(field)) {
      SetDefault(field, message);
    }
  }
}

// The .proto files with their comments, which the generated code does not carry.
const pb::DescriptorPool& Comments() {
  static const pb::DescriptorPool* const pool = [] {
    auto* built = new pb::DescriptorPool;
    pb::FileDescriptorSet files;
    CLOZE_CHECK(files.ParseFromArray(kDescriptors, kDescriptorsSize));
    for (const pb::FileDescriptorProto& file : files.file())
      CLOZE_CHECK(built->BuildFile(file) != nullptr);
    return built;
  }();
  return *pool;
}

// Comment before or beside a declaration as one line; `found` is null for unknown names.
template <typename Descriptor>
std::string CommentOf(const Descriptor* found) {
  pb::SourceLocation location;
  if (found == nullptr || !found->GetSourceLocation(&location)) return "";
  std::vector<std::string> words =
      absl::StrSplit(absl::StrCat(location.leading_comments, " ", location.trailing_comments),
          absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

std::string TypeName(const FieldDescriptor* field) {
  const std::string name = field->message_type() != nullptr ? field->message_type()->name()
                           : field->enum_type() != nullptr  ? field->enum_type()->name()
                                                            : std::string(field->type_name());
  return field->is_repeated() ? "list of " + name : name;
}

std::string DefaultText(const FieldDescriptor* field) {
  if (field->is_repeated() || field->message_type() != nullptr || !DefaultIsValid(field)) return "";
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_FLOAT:
      return absl::StrCat(", default ", Shortest(field->default_value_float()));
    case FieldDescriptor::CPPTYPE_STRING:
      return absl::StrCat(", default \"", field->default_value_string(), "\"");
    case FieldDescriptor::CPPTYPE_BOOL:
      return field->default_value_bool() ? ", default true" : ", default false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat(", default ", field->default_value_enum()->name());
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(", default ", field->default_value_int32());
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(", default ", field->default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(", default ", field->default_value_uint64());
    default: return "";
  }
}

std::string LimitsText(const FieldDescriptor* field) {
  const Limits& limits = field->options().GetExtension(cloze::limits);
  std::string text;
  if (limits.has_min() && limits.has_max())
    text = absl::StrCat(", ", Shortest(limits.min()), " to ", Shortest(limits.max()));
  if (limits.has_unit()) absl::StrAppend(&text, text.empty() ? ", " : " ", limits.unit());
  return text;
}

std::string ExplainField(const FieldDescriptor* field, const std::string& path) {
  const pb::OneofDescriptor* oneof = field->containing_oneof();
  std::string text =
      absl::StrCat(path, "  (", TypeName(field), DefaultText(field), LimitsText(field),
          oneof == nullptr ? "" : absl::StrCat(", one ", oneof->name(), " of several"), ")\n");
  absl::StrAppend(&text, "    ", CommentOf(Comments().FindFieldByName(field->full_name())), "\n");
  if (field->enum_type() == nullptr) return text;
  for (int i = 0; i < field->enum_type()->value_count(); ++i) {
    const pb::EnumValueDescriptor* value = field->enum_type()->value(i);
    const std::string comment = CommentOf(Comments().FindEnumValueByName(value->full_name()));
    absl::StrAppend(
        &text, "      ", value->name(), comment.empty() ? "" : absl::StrCat("  ", comment), "\n");
  }
  return text;
}

// Appends the fields of `type` that `filter` selects; `all` when something above them was selected.
// Gathers all names for suggestions.
void ExplainMessage(const pb::Descriptor* type, const std::string& prefix,
    const std::string& filter, bool all, std::string* text, std::vector<std::string>* names) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string path = prefix + field->name();
    names->push_back(path);
    names->push_back(field->name());
    const bool selected =
        all || path == filter || field->name() == filter || TypeName(field) == filter;
    if (selected) text->append(ExplainField(field, path));
    if (field->message_type() != nullptr)
      ExplainMessage(field->message_type(), path + ".", filter, selected, text, names);
  }
}

}  // namespace

TaskSpec EffectiveSpec(const TaskSpec& spec) {
  TaskSpec effective = spec;
  FillDefaults(&effective);
  if (!spec.batch().has_micro_tokens()) effective.mutable_batch()->clear_micro_tokens();
  if (!spec.model().start_from().empty()) {
    if (!spec.model().has_encoder()) effective.mutable_model()->clear_encoder();
    if (!spec.model().has_dropout()) effective.mutable_model()->clear_dropout();
    if (!spec.model().has_attention_dropout()) effective.mutable_model()->clear_attention_dropout();
  }
  return effective;
}

std::string PrintEffective(const TaskSpec& spec) {
  pb::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  CLOZE_CHECK(printer.PrintToString(EffectiveSpec(spec), &text));
  return absl::StrCat("# proto-file: proto/task.proto\n# proto-message: cloze.TaskSpec\n\n", text);
}

absl::StatusOr<std::string> ExplainSpec(const std::string& filter) {
  std::string text;
  std::vector<std::string> names = {"TaskSpec"};
  ExplainMessage(
      TaskSpec::descriptor(), "", filter, filter.empty() || filter == "TaskSpec", &text, &names);
  if (text.empty())
    return Error(Exit::kUsage,
        absl::StrCat("no field is named \"", Quote(filter), "\"", DidYouMean(filter, names)));
  return text;
}

}  // namespace cloze
