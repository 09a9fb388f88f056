// The text of a spec: checks before protobuf parses it, places in it, and messages for its errors.
#ifndef CLOZE_PROTO_SPEC_TEXT_H_
#define CLOZE_PROTO_SPEC_TEXT_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace cloze {

// True if the default is in the field's range. Otherwise it comes from the preset.
bool DefaultIsValid(const google::protobuf::FieldDescriptor* field);

// Returns the value of a singular field in text format, or its default if it is not set.
std::string ValueText(
    const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field);

// True for a number that protobuf would read as octal: digits after a leading zero.
bool IsOctal(absl::string_view number);

// Checks the bytes of a spec, and maps positions to lines and columns.
class SpecText {
 public:
  // `text` must outlive the object.
  SpecText(absl::string_view text, std::string path);

  // kSpec if messages nest deeper than `max_depth` or a number is octal.
  absl::Status Check(int max_depth) const;
  // Returns "path:line:column" of a byte, both counted from 1, columns in characters.
  std::string Where(size_t offset) const;
  // Returns the byte at protobuf's line and column, which count from 0 and expand tabs to 8.
  size_t Offset(int line, int column) const;
  // Returns the last place of `name` before `offset`, or `offset` if there is none.
  size_t LastBefore(absl::string_view name, size_t offset) const;

 private:
  size_t EndOfWord(size_t at) const;
  size_t EndOfString(size_t at) const;

  absl::string_view text_;
  std::string path_;
  std::vector<size_t> lines_;  // offset of each line
};

// Keeps the first error of a protobuf parser.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(
      int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (message_.empty()) line_ = line, column_ = column, message_ = message;
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

  // Returns "line:column: message", counted from 1.
  std::string text() const { return absl::StrCat(line_ + 1, ":", column_ + 1, ": ", message_); }
  // If the error is a name of an enum value in another case, returns its place in `text` and the
  // right name, which has the same length.
  std::optional<std::pair<size_t, std::string>> WrongCase(const SpecText& text) const;
  // Returns the error as kSpec, with its place in `text` and suggestions for names.
  absl::Status ToStatus(const SpecText& text) const;

 private:
  // The names that are quoted in the message.
  std::vector<std::string> Names() const;

  int line_ = -1, column_ = 0;
  std::string message_;
};

// "unknown field "stepz" in ScheduleSpec; did you mean "steps"? (fields: shape, steps, ...)".
std::string UnknownField(const google::protobuf::Descriptor* message, absl::string_view name);
// Returns the paths of the spec's fields that `name` means: their last part is this name, or the
// one that other programs have for it, such as lr or num_train_epochs.
std::vector<std::string> FieldsNamed(absl::string_view name);

// "unknown value "SMAL" of preset; did you mean "SMALL"? (values: CUSTOM, TINY, ...)".
std::string UnknownValue(
    const google::protobuf::EnumDescriptor* type, absl::string_view field, absl::string_view value);

}  // namespace cloze

#endif  // CLOZE_PROTO_SPEC_TEXT_H_
