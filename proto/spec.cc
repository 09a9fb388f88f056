// Reading specs, and messages that point at the right place.
#include "proto/spec.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/suggest.h"
#include "core/base/utf8.h"
#include "proto/text_scan.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;

constexpr int64_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 32;

// Keeps the parser's first error. The one place that knows how protobuf reports.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (message_.empty()) line_ = line, column_ = column, message_ = message;
  }
  void AddWarning(int, pb::io::ColumnNumber, const std::string&) override {}

  int line() const { return line_; }
  int column() const { return column_; }
  const std::string& message() const { return message_; }

 private:
  int line_ = -1, column_ = 0;
  std::string message_;
};

// What protobuf complained about, with its quoted names picked out.
struct Complaint {
  std::string text;
  std::vector<std::string> names;
};

Complaint Dissect(const std::string& message) {
  Complaint complaint{message, {}};
  const std::vector<std::string> parts = absl::StrSplit(message, '"');
  for (size_t i = 1; i + 1 < parts.size(); i += 2) complaint.names.push_back(parts[i]);
  return complaint;
}

std::vector<std::string> FieldNames(const pb::Descriptor* message) {
  std::vector<std::string> names;
  for (int i = 0; i < message->field_count(); ++i) names.push_back(message->field(i)->name());
  return names;
}

// Finds the enum field named `field` anywhere in the spec; protobuf's message does not say in which
// message it stands.
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

std::vector<std::string> ValueNames(const pb::EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  return names;
}

std::string UnknownField(const std::string& type, const std::string& name) {
  const pb::Descriptor* message =
      TaskSpec::descriptor()->file()->pool()->FindMessageTypeByName(type);
  if (message == nullptr) return absl::StrCat("unknown field \"", Quote(name), "\"");
  const std::vector<std::string> names = FieldNames(message);
  return absl::StrCat("unknown field \"", Quote(name), "\" in ", message->name(),
      DidYouMean(name, names), "; its fields are ", absl::StrJoin(names, ", "));
}

std::string UnknownValue(const std::string& value, const std::string& field) {
  const pb::EnumDescriptor* type = FindEnum(TaskSpec::descriptor(), field);
  if (type == nullptr) return absl::StrCat("unknown value \"", Quote(value), "\" of ", field);
  const std::vector<std::string> names = ValueNames(type);
  return absl::StrCat("unknown value \"", Quote(value), "\" of ", field, DidYouMean(value, names),
      "; one of ", absl::StrJoin(names, ", "));
}

// Protobuf points at the token after the one it means, and knows no names but the wrong one: both
// are put right here.
absl::Status ParseError(const FirstError& error, const TextScan& scan) {
  const Complaint complaint = Dissect(error.message());
  const std::vector<std::string>& names = complaint.names;
  const size_t offset = scan.Offset(error.line(), error.column());
  const auto at = [&](const std::string& name, const std::string& message) {
    return Error(
        Exit::kSpec, absl::StrCat(scan.Where(scan.LastWordBefore(name, offset)), ": ", message));
  };
  if (names.size() == 2 && absl::StrContains(complaint.text, "has no field named"))
    return at(names[1], UnknownField(names[0], names[1]));
  if (names.size() == 2 && absl::StartsWith(complaint.text, "Unknown enumeration value")) {
    return at(names[0], UnknownValue(names[0], names[1]));
  }
  if (names.size() == 1 && absl::StrContains(complaint.text, "specified multiple times")) {
    return at(names[0], absl::StrCat("field \"", Quote(names[0]), "\" is given twice"));
  }
  if (names.size() == 3 && absl::StrContains(complaint.text, "another member of oneof")) {
    return at(names[0], absl::StrCat("\"", Quote(names[0]), "\" and \"", Quote(names[1]),
                            "\" exclude each other; give one ", Quote(names[2])));
  }
  return Error(Exit::kSpec, absl::StrCat(scan.Where(offset), ": ", Quote(complaint.text)));
}

// Notes where each field of `message` was said.
void Locate(const pb::Message& message, const pb::TextFormat::ParseInfoTree& tree,
    const TextScan& scan, const std::string& prefix, std::map<std::string, std::string>* where) {
  std::vector<const pb::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const std::string name = prefix + field->name();
    const auto note = [&](const std::string& key, int index) {
      const pb::TextFormat::ParseLocation location = tree.GetLocation(field, index);
      if (location.line >= 0)
        (*where)[key] = scan.Where(scan.Offset(location.line, location.column));
    };
    if (field->is_repeated()) {
      note(name, 0);
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i)
        note(absl::StrCat(name, "[", i, "]"), i);
      continue;
    }
    note(name, -1);
    if (field->message_type() == nullptr) continue;
    const pb::TextFormat::ParseInfoTree* nested = tree.GetTreeForNested(field, -1);
    if (nested != nullptr)
      Locate(message.GetReflection()->GetMessage(message, field), *nested, scan, name + ".", where);
  }
}

}  // namespace

absl::StatusOr<LoadedSpec> ParseSpec(absl::string_view text, const std::string& path) {
  if (text.size() > kMaxBytes) {
    return Error(Exit::kSpec,
        absl::StrCat(QuotePath(path), ": ", text.size(), " bytes, a spec has at most ", kMaxBytes));
  }
  if (const absl::string_view other = OtherFormat(text); !other.empty()) {
    return Error(Exit::kSpec, absl::StrCat(QuotePath(path), ": is ", other,
                                  ", a text file expected; convert or unpack it first"));
  }
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  TextScan scan(text, path);
  RETURN_IF_ERROR(scan.Check(kMaxDepth));
  LoadedSpec loaded;
  loaded.path = path;
  FirstError error;
  pb::TextFormat::ParseInfoTree tree;
  pb::TextFormat::Parser parser;
  parser.SetRecursionLimit(kMaxDepth);
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&tree);
  pb::io::ArrayInputStream input(text.data(), text.size());
  // Half-made messages are dropped with the arena: where memory ran out for a part of a oneof, a
  // destructor would take it for there.
  pb::Arena arena;
  auto* spec = pb::Arena::CreateMessage<TaskSpec>(&arena);
  if (!parser.Parse(&input, spec)) return ParseError(error, scan);
  TaskSpec whole(*spec);
  loaded.spec.Swap(&whole);
  Locate(loaded.spec, tree, scan, "", &loaded.where);
  return loaded;
}

absl::StatusOr<LoadedSpec> LoadSpec(const std::string& path) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  if (size > kMaxBytes)
    return Error(Exit::kSpec,
        absl::StrCat(QuotePath(path), ": ", size, " bytes, a spec has at most ", kMaxBytes));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  return ParseSpec(text, path);
}

absl::StatusOr<LoadedSpec> LoadVerifiedSpec(
    const std::string& path, const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(LoadedSpec loaded, LoadSpec(path));
  for (const std::string& assignment : overrides)
    RETURN_IF_ERROR(ApplyOverride(&loaded, assignment));
  RETURN_IF_ERROR(VerifySpec(loaded));
  return loaded;
}

absl::Status SpecError(
    const LoadedSpec& loaded, const std::string& field, absl::string_view message) {
  return AtField(loaded, field, Error(Exit::kSpec, message));
}

absl::Status AtField(
    const LoadedSpec& loaded, const std::string& field, const absl::Status& status) {
  std::string where = QuotePath(loaded.path);
  for (std::string path = field; !path.empty();
       path.resize(path.find_last_of(".[") == std::string::npos ? 0 : path.find_last_of(".["))) {
    if (const auto found = loaded.where.find(path); found != loaded.where.end()) {
      where = found->second;
      break;
    }
  }
  return Annotate(status, absl::StrCat(where, ": ", field));
}

}  // namespace cloze
