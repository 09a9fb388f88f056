// Input texts from a file or a pipe. The first line is returned at once, later ones in batches.
#ifndef CLOZE_TOOLS_INPUT_H_
#define CLOZE_TOOLS_INPUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "tasks/data/file_form.h"
#include "tasks/data/format.h"
#include "tasks/data/record.h"

namespace cloze {

// `ids` is not used: the format says it.
struct InputOptions : RecordOptions {
  std::string path = "-";               // "-": standard input
  std::vector<std::string> texts = {};  // arguments of the command, in place of the file
  // text: the line is the text; with `pairs`, text TAB second text
  // jsonl: an object with "text" (or "text_a"), maybe "text_pair" (or "text_b"); else "words" (or
  //   "tokens"), else "ids"; maybe "id", "adapter". Or the whole file is an array of them
  // ids: token ids between spaces, or an object with "ids"
  // csv, tsv: rows of a table; fasttext: labels, which are left out, and a text
  // Empty: by the extension of the path; text for standard input and other names.
  std::string format = {};
  int64_t records = 256;  // most records of a batch
  // The form of the file where it does not tell: as the model's training data were, except for
  // `reading` and the names of RecordOptions.
  DataSpec data = {};
  std::vector<std::string> reading = {};  // of --set, see OverrideFileOptions
  bool skip_bad = false;                  // return wrong lines as records with `wrong` set

  // Returns the name of the input in messages.
  std::string name() const { return texts.empty() ? QuoteInput(path) : "arguments"; }
};

// Returns the format of `options`, never empty. kUsage for CoNLL files, which `cloze tag` reads.
absl::StatusOr<std::string> InputFormat(const InputOptions& options);
// Returns the format that the extension of `path` names: "csv", "tsv", "jsonl", "conll", "conllu",
// "fasttext" (.ft), "text" (.txt); "" for standard input and other names.
std::string FormatByExtension(const std::string& path);

class InputReader {
 public:
  static absl::StatusOr<InputReader> Open(const InputOptions& options);

  // Reads into *records the next record, waiting for it if necessary, and as many more, up to
  // options.records, as are available without waiting. None at the end. kData, "file:line: ...",
  // for a malformed line; the records before it are returned first. Prompts if the input and
  // standard error are terminals.
  absl::Status Next(std::vector<Record>* records);

  const std::string& format() const { return options_.format; }
  // Returns the form of the table of the input, after its first row; nullopt for other formats. The
  // first call reads the file up to its first line beyond ASCII. kIo if that fails.
  absl::StatusOr<std::optional<FileForm>> form();
  // Names of the columns of a table, after its first row; empty for other formats.
  const std::vector<std::string>& columns() const {
    return file_ != nullptr ? file_->columns() : no_columns_;
  }

 private:
  explicit InputReader(InputOptions options) : options_(std::move(options)) {}
  // Returns false at the end, or without `wait` when none is available yet.
  absl::StatusOr<bool> NextRecord(bool wait, Record* record);
  // Prints a note about the first text that is not UTF-8.
  void WarnUnlessUtf8(const Record& record);
  // Refuses a file of unknown format if its first line is not plain text.
  absl::Status CheckPlainText(const Record& record) const;

  std::unique_ptr<FileReader> file_;  // null: options_.texts are read
  size_t next_text_ = 0;
  std::vector<std::string> no_columns_;
  InputOptions options_;             // with the format
  std::optional<Charset> encoding_;  // of a table; not set before form() is called
  bool warned_ = false;
  bool guessed_ = false;  // the format is text, no option named it, and no line was read
  absl::Status late_;     // an error after good records
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_INPUT_H_
