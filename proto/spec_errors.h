// Messages for unknown names in specs.
#ifndef CLOZE_PROTO_SPEC_ERRORS_H_
#define CLOZE_PROTO_SPEC_ERRORS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "proto/text_scan.h"

namespace cloze {

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
  // Returns the error as kSpec, with file, line and column from `scan` and suggestions for names.
  absl::Status ToStatus(const TextScan& scan) const;

 private:
  int line_ = -1, column_ = 0;
  std::string message_;
};

// "unknown field "stepz" in ScheduleSpec; did you mean "steps"? (fields: shape, steps, ...)".
std::string UnknownField(const google::protobuf::Descriptor* message, absl::string_view name);

// "unknown value "SMAL" of preset; did you mean "SMALL"? (values: CUSTOM, TINY, ...)".
std::string UnknownValue(
    const google::protobuf::EnumDescriptor* type, absl::string_view field, absl::string_view value);

}  // namespace cloze

#endif  // CLOZE_PROTO_SPEC_ERRORS_H_
