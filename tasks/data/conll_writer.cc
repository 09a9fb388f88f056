#include "tasks/data/conll_writer.h"

#include "absl/strings/str_split.h"
#include "core/base/utf8.h"

namespace cloze {
namespace {

// Returns a value that stays one column: blanks, line ends, control characters and bytes that are
// not UTF-8 become "_".
std::string Sanitized(absl::string_view value, bool tabs) {
  std::string out;
  for (size_t at = 0; at < value.size();) {
    const CodePoint c = CodePointAt(value, at);
    if (!c.valid) {
      out.append(c.size, '_');
    } else if (MustEscape(c.value) || (c.value == ' ' && !tabs)) {
      out.push_back('_');
    } else {
      out.append(value.data() + at, c.size);
    }
    at += c.size;
  }
  return out;
}

// Appends `line` with its column replaced, or appended when it has just too few.
void AppendReplaced(absl::string_view line, int column, absl::string_view value, std::string* out) {
  const absl::string_view row = line.substr(0, line.find_last_not_of("\r\n") + 1);
  const bool tabs = row.find('\t') != absl::string_view::npos;
  const std::vector<absl::string_view> columns = SplitConllColumns(row);
  if (column < columns.size()) {
    const size_t begin = columns[column].data() - line.data(), end = begin + columns[column].size();
    absl::StrAppend(out, line.substr(0, begin), Sanitized(value, tabs), line.substr(end));
  } else {
    const bool blanks = !tabs && columns.size() > 1;
    absl::StrAppend(
        out, row, blanks ? " " : "\t", Sanitized(value, !blanks), line.substr(row.size()));
  }
}

}  // namespace

std::vector<absl::string_view> SplitConllColumns(absl::string_view row) {
  if (row.find('\t') != absl::string_view::npos) return absl::StrSplit(row, '\t');
  return absl::StrSplit(row, ' ', absl::SkipEmpty());
}

std::string ReplaceColumn(
    const ConllSentence& sentence, int column, absl::Span<const std::string> values) {
  CLOZE_CHECK(values.size() == sentence.word_lines.size());
  std::string out;
  size_t word = 0;
  for (size_t i = 0; i < sentence.lines.size(); ++i) {
    const bool replace = word < values.size() && sentence.word_lines[word] == i;
    if (replace) {
      AppendReplaced(sentence.lines[i], column, values[word++], &out);
    } else {
      out += sentence.lines[i];
    }
  }
  return out;
}

}  // namespace cloze
