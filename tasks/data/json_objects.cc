#include "tasks/data/json_objects.h"

#include "absl/strings/match.h"
#include "tasks/data/format.h"

namespace cloze {

absl::StatusOr<bool> JsonObjects::Next(
    const LineReader& lines, NextLine next_line, std::string* text) {
  while (!in_array_) {
    ASSIGN_OR_RETURN(const bool more, next_line(text));
    if (!more) return false;
    line_ = lines.line_number();
    if (IsBlank(*text)) continue;
    const size_t first = text->find_first_not_of(" \t");
    in_array_ = !had_text_ && (*text)[first] == '[';
    had_text_ = true;
    if (!in_array_) return true;
    rest_ = text->substr(first + 1);
  }
  return NextElement(lines, next_line, text);
}

absl::StatusOr<bool> JsonObjects::NextElement(
    const LineReader& lines, NextLine next_line, std::string* text) {
  const auto wrong = [&](const auto&... what) {
    return Error(Exit::kData, QuoteInput(lines.path()), ":", line_, ": ", what...);
  };
  text->clear();
  bool quoted = false, escaped = false;  // inside a string; behind a backslash
  for (int64_t depth = 0;; ++at_) {
    while (at_ >= rest_.size()) {
      ASSIGN_OR_RETURN(const bool more, next_line(&rest_));
      at_ = 0;
      if (!more && *next_ == '\0') return false;
      if (!more) return wrong("the array that begins the file is not closed: expected ]");
      if (depth > 0) *text += ' ';
    }
    const char c = rest_[at_];
    if (depth == 0) {
      if (c == ' ' || c == '\t' || c == '\r') continue;
      line_ = lines.line_number();
      if (!absl::StrContains(next_, c))
        return wrong("expected an array of objects with commas between them");
      next_ = c == '{' ? ",]" : c == ',' ? "{" : "";
      if (c != '{') continue;
    }
    *text += c;
    if (static_cast<int64_t>(text->size()) > kRowBytes)
      return wrong("the object is longer than ", kRowBytes, " bytes");
    depth += quoted ? 0 : (c == '{' || c == '[') - (c == '}' || c == ']');
    quoted = quoted != (c == '"' && !escaped);
    escaped = quoted && c == '\\' && !escaped;
    if (depth > 0) continue;
    ++at_;
    return true;
  }
}

}  // namespace cloze
