// Streaming readers of a DataSpec's files: documents, labelled texts, tagged sentences. Memory does
// not grow with the files, except for the hashes of a stratified split.
#ifndef CLOZE_TASKS_DATA_READERS_H_
#define CLOZE_TASKS_DATA_READERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/charset.h"
#include "core/base/status.h"
#include "proto/task.pb.h"
#include "tasks/data/label_rule.h"
#include "tasks/data/split.h"

namespace cloze {

class FileReader;
struct Format;

// The longest piece of a document, and the longest row or line.
inline constexpr int64_t kPieceBytes = 1 << 20;
inline constexpr int64_t kRowBytes = 16 << 20;

// A file of a DataSpec; streams (see IsStream) have size 0.
struct DataFile {
  std::string path;
  const Format* format = nullptr;
  int64_t size = 0;
};

// Returns the format that the extension of `path` names, before that of packing; nullopt if none.
std::optional<DataSpec::Format> FormatOfName(absl::string_view path);
// Returns the encoding of the files of `spec` where they do not tell (see TextDecoder). JSON is
// UTF-8.
Charset CharsetOf(const DataSpec& spec);

// Returns the files of `spec`, with patterns and folders expanded; their formats follow from the
// spec or their extensions. kSpec if there are none or a format is unknown; kNoInput if one does
// not exist or nothing matches.
absl::StatusOr<std::vector<DataFile>> FilesOf(const DataSpec& spec);

// True if `data` names a stream (see IsStream).
bool HasStream(const DataSpec& data);
// kSpec if `data` has a stream, which can be read only once; `why` says what needs two passes, and
// `hint` what helps besides a file.
absl::Status RequireFiles(
    const DataSpec& data, absl::string_view why, absl::string_view hint = "save it as a file");

struct DataSample {
  DataSpec data;  // with the files of the sample, or the same files if they are short
  std::vector<std::string> originals;  // the files that were sampled; empty: data is unchanged
  int64_t bytes = 0, read = 0;         // of all files; of the parts in the sample
  double scale() const { return read > 0 ? double(bytes) / read : 1; }
};

// Copies the beginnings of the files of `data`, cut at the ends of records, to the existing
// `folder`: about `most` bytes in total, more if the first record of a file is longer.
absl::StatusOr<DataSample> SampleData(
    const DataSpec& data, const std::string& folder, int64_t most);

// Returns `data` without share, leave_out and max_examples.
DataSpec AllExamples(DataSpec data);

// A part of a document. A document is the concatenation of its pieces, which are cut at white space
// where there is any.
struct DocumentPiece {
  std::string text;  // at most kPieceBytes
  bool first = true, last = true;
};

// A text, or a pair, with its label; `label` is empty when labels are ignored. Labels::kSeveral:
// `label` is the whole field, or `list` the items of a JSON list (also of a single string).
struct TextExample {
  std::string text, text_pair, label;
  std::vector<std::string> pairs, negatives;  // Labels::kGroups: texts like and unlike `text`
  std::optional<std::vector<std::string>> list;
  // With keep_lines: all columns of a TSV or CSV row, or the line of a JSONL or FASTTEXT file.
  std::vector<std::string> cells;
  int64_t line = 0;
};

// Returns the labels of an example that was read with Labels::kSeveral: its list, or the parts
// between separators without spaces around them.
std::vector<std::string> LabelsOf(const TextExample& example, const std::string& separator);

// Words and their tags; `tags` is empty when labels are ignored. `lines` has the line of each word.
struct TaggedSentence {
  std::vector<std::string> words, tags;
  std::vector<int64_t> lines;
  // Only in CoNLL and CoNLL-U files that are read with keep_lines. file_lines: all lines with their
  // ends, including blank lines and comments before the sentence, skipped rows, and the blank line
  // after it. word_lines: index in file_lines of each word. tags_column counts from 0.
  std::vector<std::string> file_lines;
  std::vector<int32_t> word_lines;
  int tags_column = -1;
};

// Returns file_lines with the tag of word w replaced by values[w], or values[w] appended to rows in
// which the column of tags would be the next. Keeps all other bytes. Control characters, tabs and
// line ends in values become "_", and so do spaces where columns are separated by spaces.
std::string ReplaceTags(const TaggedSentence& sentence, absl::Span<const std::string> values);

// kRequired: each text has one label (training, evaluation). kSeveral: the label field holds any
// number of labels. kIgnored: labels are not read. kNumber: as kRequired, but the labels are
// numbers and not classes. kGroups: labels are not read, but negatives are, and in JSON lists of
// them and of second texts.
enum class Labels { kRequired, kSeveral, kIgnored, kNumber, kGroups };
inline bool HasLabels(Labels labels) {
  return labels != Labels::kIgnored && labels != Labels::kGroups;
}

// Reads the files of a DataSpec one after the other.
class DataReader {
 public:
  DataReader(DataReader&&) noexcept;
  ~DataReader();

  // Returns "file:line" of the current file.
  std::string Where(int64_t line) const;
  // Returns the stored bytes read so far, and those of all files; streams count 0.
  int64_t position() const;
  int64_t total_bytes() const;
  // Returns the names of the columns of the current TSV or CSV file, or of the last one at the end;
  // their numbers if it has no header. Empty before its first row, and for other files.
  std::vector<std::string> columns() const;
  // Returns what is odd about the files read so far, each time once; "" if nothing. Known after
  // some rows or the end of a file.
  std::string TakeNote();
  // True if Next would return without waiting for a pipe or terminal. Never waits.
  absl::StatusOr<bool> Ready();

 protected:
  DataReader(
      DataSpec spec, std::vector<DataFile> files, Labels labels, bool keep_lines, LabelRule rule);
  // Reads the next item; false at the end of the last file. kSpec for a file whose format has no
  // such items; kData for a malformed file, as "file:line: field: ...".
  absl::StatusOr<bool> Read(DocumentPiece* piece);
  absl::StatusOr<bool> Read(TextExample* example);
  absl::StatusOr<bool> Read(TaggedSentence* sentence);

 private:
  enum class Content { kDocuments, kTexts, kSentences };
  absl::StatusOr<std::unique_ptr<FileReader>> OpenFile(Content content) const;
  // Calls next(reader) on the current file; when that returns false, on the following file.
  absl::StatusOr<bool> FromFiles(
      Content content, absl::FunctionRef<absl::StatusOr<bool>(FileReader&)> next);
  // Reads all texts, if the choice of those that are held out depends on their labels.
  absl::Status LearnSplit();
  absl::StatusOr<bool> ReadRow(TextExample* example);
  // Applies rule_ and decimal_comma.
  absl::Status CleanLabels(TextExample* example) const;
  bool HasMost() const { return spec_.max_examples() > 0 && count_ >= spec_.max_examples(); }

  DataSpec spec_;
  std::vector<DataFile> files_;
  Labels labels_;
  LabelRule rule_;
  Split split_;
  bool split_known_ = false, reads_ = true;  // reads_: the current document is read
  bool keep_lines_;
  std::unique_ptr<FileReader> reader_;  // of the current file; null between files
  std::vector<std::string> columns_;    // of the last file
  std::string note_;                    // of earlier files
  size_t index_ = 0;
  int64_t done_ = 0, count_ = 0;  // bytes of the files before the current one; examples read
};

template <typename Item>
class ReaderOf : public DataReader {
 public:
  // `rule`: how labels are read.
  static absl::StatusOr<ReaderOf> Open(const DataSpec& spec, Labels labels = Labels::kIgnored,
      bool keep_lines = false, const LabelRule& rule = {}) {
    ASSIGN_OR_RETURN(std::vector<DataFile> files, FilesOf(spec));
    return ReaderOf(spec, std::move(files), labels, keep_lines, rule);
  }
  absl::StatusOr<bool> Next(Item* item) { return Read(item); }

 private:
  ReaderOf(DataSpec spec, std::vector<DataFile> files, Labels labels, bool keep_lines,
      const LabelRule& rule)
      : DataReader(std::move(spec), std::move(files), labels, keep_lines, rule) {}
};

// Documents of TEXT files, and the text_field of TSV, CSV, JSONL and FASTTEXT files.
using DocumentReader = ReaderOf<DocumentPiece>;
// At most max_examples texts of TSV, CSV, JSONL and FASTTEXT files. TEXT files are read as FASTTEXT
// with labels, and as a text per line without.
using TextReader = ReaderOf<TextExample>;
// At most max_examples sentences, which have words, of CoNLL, CoNLL-U and JSONL files. With
// keep_lines, lines outside sentences are returned as sentences without words, so that all
// file_lines together are the files.
using TaggedReader = ReaderOf<TaggedSentence>;

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_READERS_H_
