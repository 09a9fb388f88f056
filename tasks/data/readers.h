// Streaming readers of a DataSpec's files: documents, labelled texts, tagged sentences. Memory does
// not grow with the files.
#ifndef CLOZE_TASKS_DATA_READERS_H_
#define CLOZE_TASKS_DATA_READERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

class ConllReader;
class PieceReader;
class RowReader;

// Do the files have to hold a label (training, evaluation), any number of labels for a text, or are
// they not looked at (inference)?
enum class Labels { kRequired, kSeveral, kIgnored };

// Longest piece of a document, and the most that one row, line or sentence may have.
inline constexpr int64_t kPieceBytes = 1 << 20;
inline constexpr int64_t kRowBytes = 16 << 20;

// Layout of `path`: what the spec says or the extension does. kSpec when neither does. `path` "-"
// is standard input.
absl::StatusOr<DataSpec::Format> FormatOf(const DataSpec& spec, const std::string& path);

// The files of a DataSpec one after the other; base of the readers.
class FileCursor {
 public:
  // Names the files that are missing (kNoInput), no files at all and unknown layouts (kSpec) before
  // anything is read.
  static absl::StatusOr<FileCursor> Create(const DataSpec& spec);

  // Moves on to the next file; false when there is none.
  bool Advance();
  const DataSpec& spec() const { return spec_; }
  const std::string& path() const { return spec_.files(index_); }
  DataSpec::Format format() const { return formats_[index_]; }
  // "file:line" of the current file.
  std::string Where(int64_t line) const;
  // Bytes of the files before the current one, and of all files; standard input counts 0.
  int64_t done_bytes() const { return done_; }
  int64_t total_bytes() const { return total_; }

 private:
  DataSpec spec_;
  std::vector<DataSpec::Format> formats_;
  std::vector<int64_t> sizes_;
  int index_ = -1;
  int64_t done_ = 0, total_ = 0;
};

// A part of a document. The texts of its pieces, side by side, are the document; they are cut at
// white space where there is any.
struct DocumentPiece {
  std::string text;  // at most kPieceBytes
  bool first = true, last = true;
};

// Unlabelled text: the documents of TEXT files, the rows' text_field of TSV, CSV and JSONL files.
class DocumentReader {
 public:
  static absl::StatusOr<DocumentReader> Open(const DataSpec& spec);
  DocumentReader(DocumentReader&&) noexcept;
  ~DocumentReader();

  // The next piece; false at the end of the last file. kData for a malformed file, as "file:line:
  // field: ...".
  absl::StatusOr<bool> Next(DocumentPiece* piece);
  int64_t position() const;
  int64_t total_bytes() const { return files_.total_bytes(); }

 private:
  explicit DocumentReader(FileCursor files);
  absl::Status OpenFile();

  FileCursor files_;
  std::unique_ptr<PieceReader> pieces_;
  std::unique_ptr<RowReader> rows_;
  std::vector<std::string> row_;
  int64_t row_at_ = -1;  // begin of the next piece of the row; -1 when there is none
};

// A text, or a pair, with its label; `label` is empty when labels are ignored. Labels::kSeveral:
// `label` is the whole field, or `list` the items of a JSON list (also of a single string).
struct TextExample {
  std::string text, text_pair, label;
  std::vector<std::string> list;
  bool is_list = false;
  int64_t line = 0;
};

// The labels of an example that was read with Labels::kSeveral: its list, or what stands between
// separators, without blanks around it.
std::vector<std::string> LabelsOf(const TextExample& example, const std::string& separator);

// Labelled texts of TSV, CSV and JSONL files; with ignored labels also the documents of TEXT files.
// Honours max_examples.
class TextReader {
 public:
  static absl::StatusOr<TextReader> Open(const DataSpec& spec, Labels labels);
  TextReader(TextReader&&) noexcept;
  ~TextReader();

  absl::StatusOr<bool> Next(TextExample* example);
  // "file:line" of the example that Next returned last.
  std::string Where() const;
  int64_t position() const;
  int64_t total_bytes() const { return files_.total_bytes(); }

 private:
  TextReader(FileCursor files, Labels labels);
  absl::Status OpenFile();

  FileCursor files_;
  Labels labels_;
  std::unique_ptr<RowReader> rows_;
  std::vector<std::string> row_;
  int64_t count_ = 0, line_ = 0;
};

// Words and their tags; `tags` is empty when labels are ignored. `lines` has the line of each word.
struct TaggedSentence {
  std::vector<std::string> words, tags;
  std::vector<int64_t> lines;
};

// All lines of a CoNLL or CoNLL-U sentence as they are in the file, line ends included: blank lines
// and comments before it, skipped rows, the blank line behind it. word_lines[w] indexes `lines`.
struct ConllSentence {
  std::vector<std::string> lines;
  std::vector<int32_t> word_lines;
};

// Sentences of CoNLL, CoNLL-U and JSONL files. Honours max_examples.
class TaggedReader {
 public:
  static absl::StatusOr<TaggedReader> Open(const DataSpec& spec, Labels labels);
  TaggedReader(TaggedReader&&) noexcept;
  ~TaggedReader();

  // The next sentence, which has words. With `raw` (not for JSONL) also its lines; lines that
  // belong to no sentence (the end of a file) then come as a sentence without words, so that the
  // lines of all sentences, side by side, are the files.
  absl::StatusOr<bool> Next(TaggedSentence* sentence, ConllSentence* raw = nullptr);
  // After a first Next with `raw`: would the next one return without waiting for a pipe or
  // terminal? Reads what is there, never waits.
  absl::StatusOr<bool> Ready();
  std::string Where(int64_t line) const;
  // Index from 0 of the column that holds the tags of the sentence returned last; -1 for JSONL.
  int tags_column() const;
  int64_t position() const;
  int64_t total_bytes() const { return files_.total_bytes(); }

 private:
  TaggedReader(FileCursor files, Labels labels);
  absl::Status OpenFile();

  FileCursor files_;
  Labels labels_;
  std::unique_ptr<ConllReader> conll_;
  std::unique_ptr<RowReader> rows_;
  int64_t count_ = 0;
};

// The sentence's lines with column `column` (from 0; the number of columns appends one) of word w
// replaced by values[w]; everything else stays as it is, byte for byte. Control characters (tabs
// and line ends too) inside values become "_", in columns between blanks also blanks.
std::string ReplaceColumn(
    const ConllSentence& sentence, int column, absl::Span<const std::string> values);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_READERS_H_
