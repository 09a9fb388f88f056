// CoNLL-U and CoNLL-2003 files, and writing them back with one column replaced.
#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/base/utf8.h"
#include "tasks/data/rows.h"

namespace cloze {
namespace {

constexpr int64_t kMaxWords = 1000000, kMaxSentenceBytes = 64 << 20, kMaxLooseLines = 100000;
constexpr std::array<const char*, 10> kConlluColumns = {
    "ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};

// The columns of a row: between tabs when there is one, else between runs of blanks.
std::vector<absl::string_view> SplitColumns(absl::string_view row) {
  if (row.find('\t') != absl::string_view::npos) return absl::StrSplit(row, '\t');
  return absl::StrSplit(row, ' ', absl::SkipEmpty());
}

bool AllDigits(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

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
  const std::vector<absl::string_view> columns = SplitColumns(row);
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

absl::StatusOr<std::unique_ptr<ConllReader>> ConllReader::Open(
    const std::string& path, const DataSpec& spec, bool conllu, Labels labels) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path, kRowBytes));
  std::unique_ptr<ConllReader> conll(new ConllReader(std::move(reader), spec, conllu, labels));
  if (conllu) RETURN_IF_ERROR(conll->ResolveColumns(kConlluColumns.size()));
  return conll;
}

ConllReader::ConllReader(LineReader reader, const DataSpec& spec, bool conllu, Labels labels)
    : reader_(std::move(reader)), words_field_(spec.words_field()), tags_field_(spec.tags_field()),
      conllu_(conllu), labels_(labels) {}

absl::StatusOr<int> ConllReader::Resolve(
    absl::string_view spec_field, const std::string& name, int fallback, int columns) const {
  if (name.empty()) return fallback;
  for (int i = 0; conllu_ && i < kConlluColumns.size(); ++i) {
    if (name == kConlluColumns[i]) return i;
  }
  const int number = ColumnNumber(name);
  if (number >= 0 && number < columns) return number;
  return DataError(reader_.path(), reader_.line_number(),
      absl::StrCat(spec_field, ": no column \"", Quote(name), "\"; ",
          conllu_ ? "ID, FORM, LEMMA, UPOS, XPOS, ... or " : "", "a number from 1 to ", columns,
          " expected"));
}

absl::Status ConllReader::ResolveColumns(int columns) {
  columns_ = columns;
  ASSIGN_OR_RETURN(words_column_, Resolve("words_field", words_field_, conllu_ ? 1 : 0, columns));
  const bool required = labels_ == Labels::kRequired;
  const int last = columns - 1 == words_column_ && !required
                       ? columns
                       : columns - 1;  // only words: tags are appended
  ASSIGN_OR_RETURN(tags_column_,
      Resolve("tags_field", tags_field_, conllu_ ? 3 : last, required ? columns : columns + 1));
  if (!required || tags_column_ != words_column_) return absl::OkStatus();
  return DataError(reader_.path(), reader_.line_number(),
      absl::StrCat("tags_field: column ", tags_column_ + 1, " holds the words; there are ", columns,
          " columns"));
}

absl::Status ConllReader::ReadRow(bool raw) {
  Pending& p = pending_;
  const std::vector<std::string>& words = p.sentence.words;
  ASSIGN_OR_RETURN(const bool more, NextLine(&reader_, &line_));
  const std::string mark = raw && !started_ && reader_.has_bom() ? "\xEF\xBB\xBF" : "";
  started_ = true;
  p.whole = p.end = !more;
  if (raw && (more || !mark.empty()))
    p.raw.lines.push_back(more ? absl::StrCat(mark, line_, reader_.line_end()) : mark);
  if (!more) return absl::OkStatus();
  p.bytes += line_.size(), ++p.lines;
  const bool border = IsBlank(line_) || (!conllu_ && SplitColumns(line_)[0] == "-DOCSTART-");
  p.whole = border && !words.empty();
  if (p.whole) return absl::OkStatus();
  if (!border) RETURN_IF_ERROR(Take());
  if (p.first_line == 0 && !words.empty()) p.first_line = reader_.line_number();
  if (words.empty() && (p.bytes > kRowBytes || p.lines > kMaxLooseLines)) {
    p.whole = raw;
    p.bytes = p.lines = 0;
  }
  if (p.bytes <= kMaxSentenceBytes && words.size() <= kMaxWords) return absl::OkStatus();
  return DataError(reader_.path(), p.first_line,
      absl::StrCat("no blank line within ", kMaxWords, " words or ", kMaxSentenceBytes,
          " bytes; a sentence ends with a blank line"));
}

absl::StatusOr<bool> ConllReader::Next(TaggedSentence* sentence, ConllSentence* raw) {
  while (!pending_.whole) RETURN_IF_ERROR(ReadRow(raw != nullptr));
  const bool any = !pending_.end || !pending_.sentence.words.empty() || !pending_.raw.lines.empty();
  *sentence = std::move(pending_.sentence);
  if (raw != nullptr) *raw = std::move(pending_.raw);
  pending_ = {};
  return any;
}

absl::StatusOr<bool> ConllReader::Ready() {
  while (!pending_.whole) {
    ASSIGN_OR_RETURN(const bool ready, reader_.Ready());
    if (!ready) return false;
    RETURN_IF_ERROR(ReadRow(true));
  }
  return true;
}

absl::StatusOr<bool> ConllReader::SkipsRow(absl::string_view id) const {
  if (AllDigits(id)) return false;
  const size_t mark = id.find_first_of("-.");
  if (mark != absl::string_view::npos && AllDigits(id.substr(0, mark)) &&
      AllDigits(id.substr(mark + 1)))
    return true;
  return DataError(reader_.path(), reader_.line_number(),
      absl::StrCat("ID: is \"", Quote(id), "\"; a number, 3-4 or 8.1 expected"));
}

absl::Status ConllReader::Take() {
  TaggedSentence& sentence = pending_.sentence;
  if (conllu_ && line_[0] == '#') return absl::OkStatus();
  const std::vector<absl::string_view> columns =
      conllu_ ? std::vector<absl::string_view>(absl::StrSplit(line_, '\t')) : SplitColumns(line_);
  if (columns_ == 0) RETURN_IF_ERROR(ResolveColumns(columns.size()));
  const int64_t line = reader_.line_number();
  if (columns.size() != columns_) {
    return DataError(reader_.path(), line,
        absl::StrCat(columns.size(), " columns, ", columns_, " expected ",
            conllu_ ? "(CoNLL-U, tab-separated)" : "as in the file's first row"));
  }
  if (conllu_) {
    ASSIGN_OR_RETURN(const bool skip, SkipsRow(columns[0]));
    if (skip) return absl::OkStatus();
  }
  const absl::string_view word = columns[words_column_];
  if (word.empty()) return DataError(reader_.path(), line, "words_field: an empty word");
  sentence.words.emplace_back(word);
  sentence.lines.push_back(line);
  pending_.raw.word_lines.push_back(static_cast<int32_t>(pending_.raw.lines.size()) - 1);
  if (labels_ == Labels::kIgnored) return absl::OkStatus();
  if (columns[tags_column_].empty())
    return DataError(reader_.path(), line, "tags_field: an empty tag");
  sentence.tags.emplace_back(columns[tags_column_]);
  return absl::OkStatus();
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
