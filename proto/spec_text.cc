#include "proto/spec_text.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "proto/task.pb.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;

constexpr char kUnknownValue[] = "Unknown enumeration value";

bool IsWord(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

// True if `c` is the sign of the exponent in a number such as 5e-05 that begins with `number`.
bool IsExponentSign(absl::string_view number, char c) {
  return (c == '-' || c == '+') && (absl::ascii_isdigit(number[0]) || number[0] == '.') &&
         (number.back() == 'e' || number.back() == 'E');
}

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

// Returns "; did you mean "steps"? (fields: shape, steps, ...)".
std::string Choices(
    absl::string_view wrong, absl::string_view kind, const std::vector<std::string>& names) {
  return absl::StrCat(DidYouMean(wrong, names), " (", kind, ": ", absl::StrJoin(names, ", "), ")");
}

// Returns our name of a field that other programs call `name`, such as lr and --num-train-epochs.
std::string OurName(absl::string_view name) {
  static constexpr std::pair<const char*, const char*> kAliases[] = {{"adam_beta1", "beta1"},
      {"adam_beta2", "beta2"}, {"adam_epsilon", "epsilon"}, {"base_model", "start_from"},
      {"batch", "examples"}, {"batch_size", "examples"}, {"bf16", "compute"},
      {"early_stopping", "patience"}, {"early_stopping_patience", "patience"}, {"epoch", "epochs"},
      {"eps", "epsilon"}, {"eval_steps", "every_steps"}, {"fp16", "compute"},
      {"gradient_checkpointing", "recompute"}, {"input", "files"}, {"label_column", "label_field"},
      {"label_column_name", "label_field"}, {"label_smoothing_factor", "label_smoothing"},
      {"logging_steps", "log_every_steps"}, {"lr", "learning_rate"}, {"lr_scheduler_type", "shape"},
      {"max_epochs", "epochs"}, {"max_grad_norm", "clip_norm"}, {"max_len", "max_tokens"},
      {"max_length", "max_tokens"}, {"max_seq_len", "max_tokens"}, {"max_seq_length", "max_tokens"},
      {"max_steps", "steps"}, {"metric_for_best_model", "metric"}, {"model", "start_from"},
      {"model_name", "start_from"}, {"model_name_or_path", "start_from"}, {"n_epochs", "epochs"},
      {"num_epochs", "epochs"}, {"num_steps", "steps"}, {"num_train_epochs", "epochs"},
      {"output", "directory"}, {"output_dir", "directory"}, {"path", "files"},
      {"per_device_train_batch_size", "examples"}, {"pretrained_model", "start_from"},
      {"random_state", "seed"}, {"save_steps", "checkpoint_every_steps"}, {"sep", "delimiter"},
      {"separator", "delimiter"}, {"text_column", "text_field"}, {"text_column_name", "text_field"},
      {"tokenizer_name", "tokenizer"}, {"train", "files"}, {"train_batch_size", "examples"},
      {"train_file", "files"}, {"validation_file", "files"}, {"warmup_ratio", "warmup_share"},
      {"wd", "weight_decay"}};
  std::string plain = absl::StrReplaceAll(name, {{"-", "_"}});
  plain.erase(0, plain.find_first_not_of('_'));
  for (const auto& [alias, field] : kAliases) {
    if (plain == alias) return field;
  }
  return plain;
}

// Adds the paths of the fields called `name` in `message` and below it. The specs of validation
// and of the parts of rarer settings repeat names, and are left out.
void CollectFields(const pb::Descriptor* message, const std::string& prefix,
    const std::string& name, std::vector<std::string>* paths) {
  for (int i = 0; i < message->field_count(); ++i) {
    const pb::FieldDescriptor* field = message->field(i);
    const std::string path = prefix + field->name();
    if (field->name() == name) paths->push_back(path);
    const bool enters = field->message_type() != nullptr && path != "validation" &&
                        path != "distributed" && absl::c_count(path, '.') < 2;
    if (enters) CollectFields(field->message_type(), path + ".", name, paths);
  }
}

}  // namespace

bool IsOctal(absl::string_view number) {
  if (absl::StartsWith(number, "-")) number.remove_prefix(1);
  return number.size() > 1 && number[0] == '0' && absl::ascii_isdigit(number[1]);
}

SpecText::SpecText(absl::string_view text, std::string path)
    : text_(text), path_(std::move(path)), lines_{0} {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') lines_.push_back(i + 1);
  }
}

// Returns the first byte after the string that starts at `at`. Protobuf ends strings at line ends.
size_t SpecText::EndOfString(size_t at) const {
  const char quote = text_[at++];
  while (at < text_.size() && text_[at] != quote && text_[at] != '\n')
    at += text_[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text_.size());
}

size_t SpecText::EndOfWord(size_t at) const {
  const size_t begin = at;
  while (at < text_.size() &&
         (IsWord(text_[at]) || IsExponentSign(text_.substr(begin, at - begin), text_[at])))
    ++at;
  return at;
}

absl::Status SpecText::Check(int max_depth) const {
  int depth = 0;
  for (size_t i = 0; i < text_.size();) {
    const char c = text_[i];
    if (c == '#') {
      i = std::min(text_.find('\n', i), text_.size());
    } else if (c == '"' || c == '\'') {
      i = EndOfString(i);
    } else if (IsWord(c)) {
      const absl::string_view word = text_.substr(i, EndOfWord(i) - i);
      if (IsOctal(word)) {
        return Error(Exit::kSpec, Where(i), ": number ", Quote(word),
            " starts with 0 and would be octal (drop the leading 0)");
      }
      i += word.size();
    } else {
      if (c == '{' || c == '<') ++depth;
      if (c == '}' || c == '>') depth = std::max(depth - 1, 0);
      if (depth > max_depth)
        return Error(Exit::kSpec, Where(i), ": messages nest deeper than ", max_depth);
      ++i;
    }
  }
  return absl::OkStatus();
}

std::string SpecText::Where(size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - 1;
  const absl::string_view before = text_.substr(*line, offset - *line);
  const auto characters =
      std::count_if(before.begin(), before.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return absl::StrCat(QuotePath(path_), ":", line - lines_.begin() + 1, ":", characters + 1);
}

size_t SpecText::Offset(int line, int column) const {
  if (line < 0) return 0;
  if (line >= lines_.size()) return text_.size();
  size_t offset = lines_[line];
  for (int at = 0; at < column && offset < text_.size() && text_[offset] != '\n'; ++offset)
    at += text_[offset] == '\t' ? 8 - at % 8 : 1;
  return offset;
}

size_t SpecText::LastBefore(absl::string_view name, size_t offset) const {
  const size_t found = text_.substr(0, offset).rfind(name);
  return found == absl::string_view::npos ? offset : found;
}

std::vector<std::string> FieldsNamed(absl::string_view name) {
  const std::string field = OurName(name);
  std::vector<std::string> paths;
  CollectFields(TaskSpec::descriptor(), "", field, &paths);
  if (paths.size() > 3) return {"TASK." + field};  // such as max_tokens
  return paths;
}

std::string UnknownField(const pb::Descriptor* message, absl::string_view name) {
  const std::string unknown =
      absl::StrCat("unknown field \"", Quote(name), "\" in ", message->name());
  if (const std::string field = OurName(name); message->FindFieldByName(field) != nullptr)
    return absl::StrCat(unknown, "; did you mean \"", field, "\"?");
  if (message == TaskSpec::descriptor()) {
    if (const std::vector<std::string> paths = FieldsNamed(name); !paths.empty())
      return absl::StrCat(unknown, "; did you mean ", ListNames(paths), "?");
  } else if (TaskSpec::descriptor()->FindFieldByName(std::string(name)) != nullptr) {
    return absl::StrCat(unknown, ", but a part of the spec (is a } missing before it?)");
  }
  std::vector<std::string> names;
  for (int i = 0; i < message->field_count(); ++i) names.push_back(message->field(i)->name());
  return absl::StrCat(unknown, Choices(name, "fields", names));
}

std::string UnknownValue(
    const pb::EnumDescriptor* type, absl::string_view field, absl::string_view value) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  return absl::StrCat(
      "unknown value \"", Quote(value), "\" of ", field, Choices(value, "values", names));
}

std::vector<std::string> FirstError::Names() const {
  const std::vector<std::string> parts = absl::StrSplit(message_, '"');
  std::vector<std::string> names;
  for (size_t i = 1; i + 1 < parts.size(); i += 2) names.push_back(parts[i]);
  return names;
}

std::optional<std::pair<size_t, std::string>> FirstError::WrongCase(const SpecText& text) const {
  const std::vector<std::string> names = Names();
  if (names.size() != 2 || !absl::StartsWith(message_, kUnknownValue)) return std::nullopt;
  const pb::EnumDescriptor* type = FindEnum(TaskSpec::descriptor(), names[1]);
  const std::string upper = absl::AsciiStrToUpper(names[0]);
  if (type == nullptr || upper == names[0] || type->FindValueByName(upper) == nullptr)
    return std::nullopt;
  const size_t offset = text.Offset(line_, column_);
  return std::pair(text.LastBefore(names[0], offset), upper);
}

// Protobuf reports the position after the wrong name; LastBefore finds the name itself.
absl::Status FirstError::ToStatus(const SpecText& text) const {
  const std::vector<std::string> names = Names();
  const size_t offset = text.Offset(line_, column_);
  const auto at = [&](const std::string& name, const auto&... message) {
    return Error(Exit::kSpec, text.Where(text.LastBefore(name, offset)), ": ", message...);
  };
  const pb::Descriptor* spec = TaskSpec::descriptor();
  if (names.size() == 2 && absl::StrContains(message_, "has no field named")) {
    if (const auto* type = spec->file()->pool()->FindMessageTypeByName(names[0]))
      return at(names[1], UnknownField(type, names[1]));
  }
  if (names.size() == 2 && absl::StartsWith(message_, kUnknownValue)) {
    if (const auto* type = FindEnum(spec, names[1]))
      return at(names[0], UnknownValue(type, names[1], names[0]));
  }
  if (names.size() == 1 && absl::StrContains(message_, "specified multiple times"))
    return at(names[0], "field \"", Quote(names[0]), "\" is given twice");
  if (names.size() == 3 && absl::StrContains(message_, "another member of oneof")) {
    return at(names[0], "\"", Quote(names[0]), "\" and \"", Quote(names[1]),
        "\" exclude each other: expected one ", Quote(names[2]));
  }
  if (absl::StrContains(message_, "non ascii codepoint"))
    return Error(Exit::kSpec, text.Where(offset),
        ": a character that is not ASCII (typographic quotes? expected \"straight\" ones)");
  return Error(Exit::kSpec, text.Where(offset), ": ", Quote(message_));
}

}  // namespace cloze
