// CoNLL-U and CoNLL-2003 files.
#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "tasks/data/conll_writer.h"
#include "tasks/data/rows.h"

namespace cloze {
namespace {

constexpr int64_t kMaxWords = 1000000, kMaxSentenceBytes = 64 << 20, kMaxLooseLines = 100000;
constexpr std::array<const char*, 10> kConlluColumns = {
    "ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"};

bool AllDigits(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Sentences of one CoNLL or CoNLL-U file.
class ConllReader : public SentenceReader {
 public:
  static absl::StatusOr<std::unique_ptr<SentenceReader>> Open(
      const std::string& path, const DataSpec& spec, bool conllu, Labels labels);
  absl::StatusOr<bool> Next(TaggedSentence* sentence, ConllSentence* raw) override;
  absl::StatusOr<bool> Ready() override;
  int tags_column() const override { return tags_column_; }
  int64_t position() const override { return reader_.position(); }

 private:
  // The sentence that is read now.
  struct Pending {
    TaggedSentence sentence;
    ConllSentence raw;
    int64_t bytes = 0, lines = 0, first_line = 0;
    bool whole = false, end = false;  // its last line, or the file's, was read
  };

  ConllReader(LineReader reader, const DataSpec& spec, bool conllu, Labels labels);
  absl::Status ResolveColumns(int columns);
  absl::StatusOr<int> Resolve(
      absl::string_view spec_field, const std::string& name, int fallback, int columns) const;
  // Reads the next line into the sentence, and into its raw lines if `raw`.
  absl::Status ReadRow(bool raw);
  // Parses a line that is not blank.
  absl::Status Take();
  absl::StatusOr<bool> SkipsRow(absl::string_view id) const;

  LineReader reader_;
  std::string words_field_, tags_field_, line_;
  bool conllu_, started_ = false;
  Labels labels_;
  int columns_ = 0, words_column_ = -1, tags_column_ = -1;
  Pending pending_;
};

absl::StatusOr<std::unique_ptr<SentenceReader>> ConllReader::Open(
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
  const bool border = IsBlank(line_) || (!conllu_ && SplitConllColumns(line_)[0] == "-DOCSTART-");
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
      absl::StrCat("ID: is \"", Quote(id), "\": expected a number, 3-4 or 8.1"));
}

absl::Status ConllReader::Take() {
  TaggedSentence& sentence = pending_.sentence;
  if (conllu_ && line_[0] == '#') return absl::OkStatus();
  const std::vector<absl::string_view> columns =
      conllu_ ? std::vector<absl::string_view>(absl::StrSplit(line_, '\t'))
              : SplitConllColumns(line_);
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

// Whole sentences end with a blank line.
size_t WholeSentences(const std::string& text) {
  const size_t blank = std::max(text.rfind("\n\n") + 2, text.rfind("\n\r\n") + 3);
  return blank <= 2 ? 0 : blank;  // npos + 2 is 1, npos + 3 is 2
}

template <bool conllu>
absl::StatusOr<std::unique_ptr<SentenceReader>> Open(
    const std::string& path, const DataSpec& spec, Labels labels) {
  return ConllReader::Open(path, spec, conllu, labels);
}

}  // namespace

Format ConlluFormat() {
  return {.format = DataSpec::CONLLU,
      .extension = ".conllu",
      .whole = WholeSentences,
      .sentences = Open<true>};
}
Format ConllFormat() {
  return {.format = DataSpec::CONLL,
      .extension = ".conll",
      .whole = WholeSentences,
      .sentences = Open<false>};
}

}  // namespace cloze
