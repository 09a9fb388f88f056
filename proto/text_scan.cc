#include "proto/text_scan.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace cloze {
namespace {

bool IsWord(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; }

// True if `c` is the sign of the exponent in a number such as 5e-05 that begins with `number`.
bool IsExponentSign(absl::string_view number, char c) {
  return (c == '-' || c == '+') && (absl::ascii_isdigit(number[0]) || number[0] == '.') &&
         (number.back() == 'e' || number.back() == 'E');
}

}  // namespace

bool IsOctal(absl::string_view number) {
  if (absl::StartsWith(number, "-")) number.remove_prefix(1);
  return number.size() > 1 && number[0] == '0' && absl::ascii_isdigit(number[1]);
}

TextScan::TextScan(absl::string_view text, std::string path)
    : text_(text), path_(std::move(path)), lines_{0} {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') lines_.push_back(i + 1);
  }
}

// Returns the first byte after the string that starts at `at`. Protobuf ends strings at line ends.
size_t TextScan::SkipString(size_t at) const {
  const char quote = text_[at++];
  while (at < text_.size() && text_[at] != quote && text_[at] != '\n')
    at += text_[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text_.size());
}

absl::Status TextScan::Check(int max_depth) {
  words_.clear();
  int depth = 0;
  for (size_t i = 0; i < text_.size();) {
    const char c = text_[i];
    if (c == '#') {
      i = std::min(text_.find('\n', i), text_.size());
    } else if (c == '"' || c == '\'') {
      i = SkipString(i);
    } else if (IsWord(c)) {
      const size_t begin = i;
      while (i < text_.size() &&
             (IsWord(text_[i]) || IsExponentSign(text_.substr(begin, i - begin), text_[i])))
        ++i;
      words_.emplace_back(begin, i);
      if (const absl::string_view word = text_.substr(begin, i - begin); IsOctal(word)) {
        return Error(Exit::kSpec, Where(begin), ": number ", Quote(word),
            " starts with 0 and would be octal (drop the leading 0)");
      }
    } else {
      if (c == '{' || c == '<') ++depth;
      if (c == '}' || c == '>') depth = std::max(depth - 1, 0);
      if (depth > max_depth) {
        return Error(Exit::kSpec, Where(i), ": messages nest deeper than ", max_depth);
      }
      ++i;
    }
  }
  return absl::OkStatus();
}

std::string TextScan::Where(size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto line = std::upper_bound(lines_.begin(), lines_.end(), offset) - 1;
  const absl::string_view before = text_.substr(*line, offset - *line);
  const auto characters =
      std::count_if(before.begin(), before.end(), [](char c) { return (c & 0xC0) != 0x80; });
  return absl::StrCat(QuotePath(path_), ":", line - lines_.begin() + 1, ":", characters + 1);
}

size_t TextScan::Offset(int line, int column) const {
  if (line < 0) return 0;
  if (line >= lines_.size()) return text_.size();
  size_t offset = lines_[line];
  for (int at = 0; at < column && offset < text_.size() && text_[offset] != '\n'; ++offset)
    at += text_[offset] == '\t' ? 8 - at % 8 : 1;
  return offset;
}

size_t TextScan::LastWordBefore(absl::string_view name, size_t offset) const {
  for (auto word = words_.rbegin(); word != words_.rend(); ++word) {
    if (word->first < offset && text_.substr(word->first, word->second - word->first) == name)
      return word->first;
  }
  return offset;
}

}  // namespace cloze
