// Prints the documentation of a spec's fields, from the .proto files.
#include <google/protobuf/descriptor.pb.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "proto/options.pb.h"
#include "proto/spec.h"
#include "proto/spec_text.h"

namespace cloze {

extern const unsigned char kDescriptors[];
extern const size_t kDescriptorsSize;

namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

constexpr size_t kColumns = 100;

// Returns the .proto files with their comments, which the generated code does not contain.
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

// Appends the comment of `found` after `line`, wrapped, with later lines indented by `indent`.
template <typename Descriptor>
std::string WithComment(std::string line, size_t indent, const Descriptor* found) {
  pb::SourceLocation location;
  CLOZE_CHECK(found != nullptr);
  if (!found->GetSourceLocation(&location)) return line + "\n";
  std::string text;
  for (const absl::string_view word :
      absl::StrSplit(absl::StrCat(location.leading_comments, " ", location.trailing_comments),
          absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&text, line, "\n");
      line.assign(indent - 1, ' ');
    }
    absl::StrAppend(&line, " ", word);
  }
  return absl::StrCat(text, line, "\n");
}

std::string TypeName(const FieldDescriptor* field) {
  const std::string name = field->message_type() != nullptr ? field->message_type()->name()
                           : field->enum_type() != nullptr  ? field->enum_type()->name()
                                                            : std::string(field->type_name());
  return field->is_repeated() ? "list of " + name : name;
}

std::string DefaultText(const FieldDescriptor* field) {
  if (field->is_repeated() || field->message_type() != nullptr || !DefaultIsValid(field)) return "";
  const pb::Message* message =
      pb::MessageFactory::generated_factory()->GetPrototype(field->containing_type());
  return absl::StrCat(", default ", ValueText(*message, field));
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
  std::string text = absl::StrCat(path, "  (", TypeName(field), DefaultText(field),
      LimitsText(field), oneof == nullptr ? "" : absl::StrCat(", member of oneof ", oneof->name()),
      ")\n", WithComment("   ", 4, Comments().FindFieldByName(field->full_name())));
  const pb::EnumDescriptor* type = field->enum_type();
  for (int i = 0; type != nullptr && i < type->value_count(); ++i) {
    const pb::EnumValueDescriptor* value = type->value(i);
    absl::StrAppend(&text, WithComment(absl::StrCat("      ", value->name(), " "), 10,
                               Comments().FindEnumValueByName(value->full_name())));
  }
  return text;
}

// Returns the words of `text` with single spaces between them.
std::string Spaced(absl::string_view text) {
  return absl::StrJoin(absl::StrSplit(text, absl::ByAnyChar(" \n_-"), absl::SkipEmpty()), " ");
}

// Appends the fields of `type` that `filter` selects to `text`: all of them if `all`, or with
// `search` those whose description contains it. Appends all names to `names`, for suggestions.
void ExplainMessage(const pb::Descriptor* type, const std::string& prefix,
    const std::string& filter, bool all, bool search, std::string* text,
    std::vector<std::string>* names) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string path = prefix + field->name();
    names->push_back(path);
    names->push_back(field->name());
    const bool selected =
        all || path == filter || field->name() == filter || TypeName(field) == filter ||
        (search && field->message_type() == nullptr &&
            absl::StrContains(absl::AsciiStrToLower(Spaced(ExplainField(field, path))),
                absl::AsciiStrToLower(Spaced(filter))));
    if (selected) text->append(ExplainField(field, path));
    if (field->message_type() != nullptr)
      ExplainMessage(
          field->message_type(), path + ".", filter, selected && !search, search, text, names);
  }
}

}  // namespace

absl::StatusOr<std::string> ExplainSpec(const std::string& filter) {
  std::string text;
  std::vector<std::string> names = {"TaskSpec"};
  ExplainMessage(TaskSpec::descriptor(), "", filter, filter.empty() || filter == "TaskSpec", false,
      &text, &names);
  if (text.empty() && filter.size() > 2) {
    ExplainMessage(TaskSpec::descriptor(), "", filter, false, true, &text, &names);
    if (!text.empty()) return absl::StrCat("Fields that mention \"", filter, "\":\n\n", text);
  }
  if (text.empty())
    return Error(Exit::kUsage, "unknown field \"", Quote(filter), "\"", DidYouMean(filter, names));
  return text;
}

}  // namespace cloze
