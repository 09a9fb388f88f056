// Prints specs with all defaults, and the documentation of their fields from the .proto files.
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>

#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "proto/options.pb.h"
#include "proto/spec.h"

namespace cloze {

extern const unsigned char kDescriptors[];
extern const size_t kDescriptorsSize;

namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

constexpr size_t kColumns = 100;

// True if the default is in the field's range. Otherwise it comes from the preset.
bool DefaultIsValid(const FieldDescriptor* field) {
  const Limits& limits = field->options().GetExtension(cloze::limits);
  return field->has_default_value() || !limits.has_min() || limits.min() <= 0;
}

// Returns the value of a singular field in text format, or its default if it is not set.
std::string ValueText(const pb::Message& message, const FieldDescriptor* field) {
  std::string text;
  pb::TextFormat::PrintFieldValueToString(message, field, -1, &text);
  return text;
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
      CLOZE_CHECK(
          pb::TextFormat::ParseFieldValueFromString(ValueText(*message, field), field, message));
    }
  }
}

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

// Returns the words of `text` with single blanks between them.
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

// Clears the fields that are not set and whose defaults are not for the encoder's architecture.
void ClearOthers(const ModelSpec& given, ModelSpec* effective) {
  const auto clear = [](const pb::Message& given, const char* name, pb::Message* effective) {
    const FieldDescriptor* field = given.GetDescriptor()->FindFieldByName(name);
    if (!given.GetReflection()->HasField(given, field))
      effective->GetReflection()->ClearField(effective, field);
  };
  const EncoderSpec::Architecture architecture = given.encoder().architecture();
  const auto clear_in_encoder = [&](const char* name) {
    clear(given.encoder(), name, effective->mutable_encoder());
  };
  for (const char* name : FieldsNotOf(architecture)) clear_in_encoder(name);
  const bool gpt2 = architecture == EncoderSpec::GPT2;
  if (architecture == EncoderSpec::ALBERT || gpt2) clear_in_encoder("activation");
  if (architecture == EncoderSpec::MODERN || architecture == EncoderSpec::DEBERTA || gpt2)
    clear_in_encoder("norm_epsilon");
  if (architecture != EncoderSpec::MODERN) return;
  for (const char* name : {"dropout", "attention_dropout"}) clear(given, name, effective);
}

}  // namespace

absl::Span<const char* const> FieldsNotOf(EncoderSpec::Architecture architecture) {
  static constexpr const char* kFields[] = {
      "query_key_start", "token_types", "positions", "sinusoid_base", "norm", "embedding"};
  const auto all = absl::MakeConstSpan(kFields);
  switch (architecture) {
    case EncoderSpec::BERT: return all.last(1);
    case EncoderSpec::MODERN:
    case EncoderSpec::GPT2: return all;
    case EncoderSpec::ELECTRA:
    case EncoderSpec::ALBERT: return all.subspan(4, 1);
    case EncoderSpec::DEBERTA: return all.subspan(1);
  }
  CLOZE_CHECK(false);
}

EncoderSpec FillSizes(EncoderSpec encoder) {
  static constexpr struct {
    int layers, hidden;
  } kSizes[] = {{0, 0}, {2, 128}, {4, 256}, {4, 512}, {8, 512}, {12, 768}};  // by Preset
  static_assert(std::size(kSizes) == EncoderSpec::Preset_ARRAYSIZE);
  if (encoder.preset() == EncoderSpec::CUSTOM) return encoder;
  const auto& sizes = kSizes[encoder.preset()];
  if (!encoder.has_layers()) encoder.set_layers(sizes.layers);
  if (!encoder.has_hidden()) encoder.set_hidden(sizes.hidden);
  if (!encoder.has_heads() && encoder.hidden() % 64 == 0) encoder.set_heads(encoder.hidden() / 64);
  if (!encoder.has_intermediate()) {
    const int64_t four = int64_t{4} * encoder.hidden();
    const bool gated = encoder.architecture() == EncoderSpec::MODERN;
    encoder.set_intermediate(gated ? (four * 2 / 3 + 63) / 64 * 64 : four);
  }
  return encoder;
}

TaskSpec EffectiveSpec(const TaskSpec& spec) {
  TaskSpec effective = spec;
  FillDefaults(&effective);
  if (!spec.batch().has_micro_tokens()) effective.mutable_batch()->clear_micro_tokens();
  if (spec.has_masked_lm() && !spec.masked_lm().has_replaced_tokens())
    effective.mutable_masked_lm()->clear_replaced_tokens();
  if (!spec.model().start_from().empty()) {
    if (!spec.model().has_encoder()) effective.mutable_model()->clear_encoder();
    if (!spec.model().has_dropout()) effective.mutable_model()->clear_dropout();
    if (!spec.model().has_attention_dropout()) effective.mutable_model()->clear_attention_dropout();
  } else {
    ClearOthers(spec.model(), effective.mutable_model());
  }
  return effective;
}

std::string PrintEffective(const TaskSpec& spec) {
  pb::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  CLOZE_CHECK(printer.PrintToString(EffectiveSpec(spec), &text));
  return absl::StrCat(kSpecHeader, "# proto-message: cloze.TaskSpec\n\n", text);
}

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
