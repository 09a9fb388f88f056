// CoNLL-U and CoNLL-2003 files: reading, and writing back with other tags.
#include <algorithm>

#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

constexpr int64_t kMaxWords = 1000000, kMaxSentenceBytes = 64 << 20, kMaxLooseLines = 100000;
constexpr const char* kConlluColumns[] = {
    "ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};

// Returns the columns of a row: separated by tabs if it has any, else by runs of spaces.
std::vector<absl::string_view> SplitColumns(absl::string_view row) {
  if (row.find('\t') != absl::string_view::npos) return absl::StrSplit(row, '\t');
  return absl::StrSplit(row, ' ', absl::SkipEmpty());
}

bool AllDigits(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

class ConllReader : public FileReader {
 public:
  using FileReader::FileReader;

  absl::StatusOr<bool> NextSentence(TaggedSentence* sentence) override {
    while (!whole_) RETURN_IF_ERROR(ReadRow());
    const bool any = !end_ || !next_.words.empty() || !next_.file_lines.empty();
    *sentence = std::move(next_);
    sentence->tags_column = tags_column_;
    next_ = {};
    bytes_ = rows_ = first_line_ = 0;
    whole_ = false;
    return any;
  }

  absl::StatusOr<bool> Ready() override {
    while (!whole_) {
      ASSIGN_OR_RETURN(const bool ready, lines_.Ready());
      if (!ready) return false;
      RETURN_IF_ERROR(ReadRow());
    }
    return true;
  }

 private:
  // Reads the next line into next_.
  absl::Status ReadRow() {
    if (conllu_ && columns_ == 0) RETURN_IF_ERROR(FindColumns(std::size(kConlluColumns)));
    const bool raw = request_.keep_lines, first = lines_.line_number() == 0;
    ASSIGN_OR_RETURN(const bool more, NextLine(&line_));
    const std::string mark = raw && first && lines_.has_bom() ? "\xEF\xBB\xBF" : "";
    whole_ = end_ = !more;
    if (raw && (more || !mark.empty()))
      next_.file_lines.push_back(more ? absl::StrCat(mark, line_, lines_.line_end()) : mark);
    if (!more) return absl::OkStatus();
    bytes_ += line_.size(), ++rows_;
    const std::vector<std::string>& words = next_.words;
    const bool border = IsBlank(line_) || (!conllu_ && SplitColumns(line_)[0] == "-DOCSTART-");
    whole_ = border && !words.empty();
    if (whole_) return absl::OkStatus();
    if (!border) RETURN_IF_ERROR(TakeRow());
    if (first_line_ == 0 && !words.empty()) first_line_ = lines_.line_number();
    if (words.empty() && (bytes_ > kRowBytes || rows_ > kMaxLooseLines)) {
      whole_ = raw;
      bytes_ = rows_ = 0;
    }
    if (bytes_ <= kMaxSentenceBytes && words.size() <= kMaxWords) return absl::OkStatus();
    return Fail(first_line_, "no blank line within ", kMaxWords, " words or ", kMaxSentenceBytes,
        " bytes; a sentence ends with a blank line");
  }

  // Parses a line that is not blank.
  absl::Status TakeRow() {
    if (conllu_ && line_[0] == '#') return absl::OkStatus();
    const std::vector<absl::string_view> columns =
        conllu_ ? absl::StrSplit(line_, '\t') : SplitColumns(line_);
    if (columns_ == 0) RETURN_IF_ERROR(FindColumns(columns.size()));
    const int64_t line = lines_.line_number();
    if (columns.size() != columns_) {
      return Fail(line, Counted(columns.size(), "column"), ": expected ", columns_,
          conllu_ ? " (CoNLL-U, tab-separated)" : " as in the file's first row");
    }
    if (conllu_ && !AllDigits(columns[0])) {
      const std::vector<absl::string_view> ends =
          absl::StrSplit(columns[0], absl::MaxSplits(absl::ByAnyChar("-."), 1));
      if (ends.size() == 2 && AllDigits(ends[0]) && AllDigits(ends[1])) return absl::OkStatus();
      return Fail(line, "ID: is \"", Quote(columns[0]), "\": expected a number, 3-4 or 8.1");
    }
    const absl::string_view word = columns[words_column_];
    if (word.empty()) return Fail(line, "words_field: an empty word");
    next_.words.emplace_back(word);
    next_.lines.push_back(line);
    if (request_.keep_lines)
      next_.word_lines.push_back(static_cast<int32_t>(next_.file_lines.size()) - 1);
    if (request_.labels == Labels::kIgnored) return absl::OkStatus();
    if (columns[tags_column_].empty()) return Fail(line, "tags_field: an empty tag");
    next_.tags.emplace_back(columns[tags_column_]);
    return absl::OkStatus();
  }

  // Finds the columns of words and tags in a file with `columns` columns.
  absl::Status FindColumns(int columns) {
    columns_ = columns;
    const bool required = request_.labels == Labels::kRequired;
    ASSIGN_OR_RETURN(words_column_,
        ColumnOf("words_field", request_.spec.words_field(), conllu_ ? 1 : 0, columns));
    const bool only_words = !required && columns - 1 == words_column_;  // tags are appended
    const int last = only_words ? columns : columns - 1;
    ASSIGN_OR_RETURN(
        tags_column_, ColumnOf("tags_field", request_.spec.tags_field(), conllu_ ? 3 : last,
                          required || conllu_ ? columns : columns + 1));
    const bool numbers = conllu_ && tags_column_ == 0;
    if (tags_column_ != words_column_ && !numbers) return absl::OkStatus();
    return Fail(lines_.line_number(), "tags_field: column ", tags_column_ + 1, " holds the ",
        numbers ? "numbers of the words" : "words", "; there are ", columns, " columns");
  }

  absl::StatusOr<int> ColumnOf(
      absl::string_view spec_field, const std::string& name, int usual, int columns) const {
    if (name.empty()) return usual;
    const auto known = std::find(std::begin(kConlluColumns), std::end(kConlluColumns), name);
    const int number = conllu_ && known != std::end(kConlluColumns)
                           ? static_cast<int>(known - kConlluColumns)
                           : ColumnNumber(name);
    if (number >= 0 && number < columns) return number;
    return Fail(lines_.line_number(), spec_field, ": no column \"", Quote(name), "\": expected ",
        conllu_ ? "ID, FORM, LEMMA, UPOS, XPOS, ... or " : "", "a number from 1 to ", columns);
  }

  const bool conllu_ = request_.spec.format() == DataSpec::CONLLU;
  int columns_ = 0, words_column_ = -1, tags_column_ = -1;
  std::string line_;
  // The sentence that is read now; whether its last line, or the file's, was read.
  TaggedSentence next_;
  int64_t bytes_ = 0, rows_ = 0, first_line_ = 0;
  bool whole_ = false, end_ = false;
};

// Whole sentences end with a blank line.
size_t WholeSentences(const std::string& text, const DataSpec& /*spec*/) {
  const size_t blank = std::max(text.rfind("\n\n") + 2, text.rfind("\n\r\n") + 3);
  return blank <= 2 ? 0 : blank;  // npos + 2 is 1, npos + 3 is 2
}

// Returns a value that stays one column, as ReplaceTags says; invalid UTF-8 becomes "_", too.
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
    const bool spaces = !tabs && columns.size() > 1;
    absl::StrAppend(
        out, row, spaces ? " " : "\t", Sanitized(value, !spaces), line.substr(row.size()));
  }
}

}  // namespace

std::string ReplaceTags(const TaggedSentence& sentence, absl::Span<const std::string> values) {
  CLOZE_CHECK(values.size() == sentence.word_lines.size());
  std::string out;
  size_t word = 0;
  for (size_t i = 0; i < sentence.file_lines.size(); ++i) {
    if (word < values.size() && sentence.word_lines[word] == i) {
      AppendReplaced(sentence.file_lines[i], sentence.tags_column, values[word++], &out);
    } else {
      out += sentence.file_lines[i];
    }
  }
  return out;
}

extern const Format kConlluFormat = {
    DataSpec::CONLLU, ".conllu", Format::kSentences, WholeSentences, OpenAs<ConllReader>};
extern const Format kConllFormat = {
    DataSpec::CONLL, ".conll", Format::kSentences, WholeSentences, OpenAs<ConllReader>};

}  // namespace cloze
