// Streaming readers of a DataSpec's files: documents, labelled texts, tagged sentences. Memory does
// not grow with the files.
#ifndef CLOZE_TASKS_DATA_READERS_H_
#define CLOZE_TASKS_DATA_READERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

class PieceReader;
class RowReader;
class SentenceReader;

// Whether files must have a label (training, evaluation), may have
// several labels per text, or are read without labels (inference).
enum class Labels { kRequired, kSeveral, kIgnored };

// The longest piece of a document, and the longest row or line.
inline constexpr int64_t kPieceBytes = 1 << 20;
inline constexpr int64_t kRowBytes = 16 << 20;

// Returns the format of `path` from the spec, else from its extension; kSpec when neither tells.
// `path` "-" is standard input.
absl::StatusOr<DataSpec::Format> FormatOf(const DataSpec& spec, const std::string& path);

// The files of a DataSpec, one after the other.
class FileCursor {
 public:
  // Checks that there are files (kSpec), of known formats (kSpec), which exist (kNoInput).
  static absl::StatusOr<FileCursor> Create(const DataSpec& spec);

  // Moves to the next file; false when there is none.
  bool Advance();
  const DataSpec& spec() const { return spec_; }
  const std::string& path() const { return spec_.files(index_); }
  DataSpec::Format format() const { return formats_[index_]; }
  // Returns "file:line" of the current file.
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

// Reads the files of a FileCursor one after the other, each with a Reader of its own.
template <typename Reader>
class FileSequence : public FileCursor {
 public:
  explicit FileSequence(FileCursor files) : FileCursor(std::move(files)) {}

  // Calls next(reader) on the current file; where that returns false, opens the next file with
  // open() -> StatusOr<unique_ptr<Reader>>. Returns false after the last file.
  template <typename Open, typename Next>
  absl::StatusOr<bool> Read(Open open, Next next) {
    while (true) {
      if (reader_ != nullptr) {
        ASSIGN_OR_RETURN(const bool more, next(*reader_));
        if (more) return true;
        reader_ = nullptr;
      }
      if (!Advance()) return false;
      ASSIGN_OR_RETURN(reader_, open());
    }
  }
  Reader* reader() const { return reader_.get(); }  // of the current file; null between files
  int64_t position() const { return done_bytes() + (reader_ != nullptr ? reader_->position() : 0); }

 private:
  std::unique_ptr<Reader> reader_;
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

  // Reads the next piece; false at the end of the last file. kData for a malformed file, as
  // "file:line: field: ...".
  absl::StatusOr<bool> Next(DocumentPiece* piece);
  int64_t position() const;
  int64_t total_bytes() const { return files_.total_bytes(); }

 private:
  explicit DocumentReader(FileCursor files);

  FileSequence<PieceReader> files_;
};

// A text, or a pair, with its label; `label` is empty when labels are ignored. Labels::kSeveral:
// `label` is the whole field, or `list` the items of a JSON list (also of a single string).
struct TextExample {
  std::string text, text_pair, label;
  std::vector<std::string> list;
  bool is_list = false;
  int64_t line = 0;
};

// Returns the labels of an example that was read with Labels::kSeveral: its list, or the parts
// between separators without blanks around them.
std::vector<std::string> LabelsOf(const TextExample& example, const std::string& separator);

// Labelled texts of TSV, CSV and JSONL files; with ignored labels also the documents of TEXT files.
// Reads at most max_examples.
class TextReader {
 public:
  static absl::StatusOr<TextReader> Open(const DataSpec& spec, Labels labels);
  TextReader(TextReader&&) noexcept;
  ~TextReader();

  absl::StatusOr<bool> Next(TextExample* example);
  // Returns "file:line" of the example read last.
  std::string Where() const;
  int64_t position() const;
  int64_t total_bytes() const { return files_.total_bytes(); }

 private:
  TextReader(FileCursor files, Labels labels);

  FileSequence<RowReader> files_;
  Labels labels_;
  std::vector<std::string> row_;
  int64_t count_ = 0, line_ = 0;
};

// Words and their tags; `tags` is empty when labels are ignored. `lines` has the line of each word.
struct TaggedSentence {
  std::vector<std::string> words, tags;
  std::vector<int64_t> lines;
};

// All lines of a CoNLL or CoNLL-U sentence as they are in the file, line ends included: blank lines
// and comments before it, skipped rows, the blank line after it. word_lines[w] indexes `lines`.
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

  // Reads the next sentence, which has words. With `raw` (not for JSONL) also reads its lines;
  // lines that belong to no sentence (the end of a file) then come as a sentence without words, so
  // that the lines of all sentences together are the files.
  absl::StatusOr<bool> Next(TaggedSentence* sentence, ConllSentence* raw = nullptr);
  // True if the next Next with `raw` would return without waiting for a pipe or terminal. Never
  // waits. Requires an earlier Next with `raw`.
  absl::StatusOr<bool> Ready();
  std::string Where(int64_t line) const;
  // Returns the index from 0 of the column with the tags of the sentence read last; -1 for JSONL.
  int tags_column() const;
  int64_t position() const;
  int64_t total_bytes() const { return files_.total_bytes(); }

 private:
  TaggedReader(FileCursor files, Labels labels);

  FileSequence<SentenceReader> files_;
  Labels labels_;
  int64_t count_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_READERS_H_
