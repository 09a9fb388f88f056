// Files of texts without a spec: how they are written, and the texts that `cloze vocab` and `cloze
// vectors` learn from.
#ifndef CLOZE_TOOLS_TEXTS_H_
#define CLOZE_TOOLS_TEXTS_H_

#include <string>
#include <vector>

#include "core/base/file.h"
#include "proto/training.pb.h"
#include "tools/command.h"

namespace cloze {

// Adds `--set FIELD=VALUE`; `default_text` describes the default in the help.
void AddFileOptions(
    Command& command, std::vector<std::string>* overrides, const std::string& default_text);

inline constexpr char kReadAsTrained[] = "as in the spec of the model's run";

// Applies the values of `--set` to the fields delimiter, encoding and header of *data. kUsage for
// other fields, kSpec for wrong values.
absl::Status OverrideFileOptions(const std::vector<std::string>& overrides, DataSpec* data);

struct TextOptions {
  std::vector<std::string> text_fields;  // empty: "text"
  std::vector<std::string> reading;      // of --set, see OverrideFileOptions
};

// Adds --text-field and --set.
void AddTextOptions(Command& command, TextOptions* options);

// Returns the files that `paths` stand for: files, "-", patterns, folders of data files, and
// folders of folders with a text per file. kNoInput if one does not exist or has no files.
absl::StatusOr<std::vector<std::string>> FilesOfTexts(const std::vector<std::string>& paths);

// Returns a function that opens a file by its extension: of a TSV, CSV or JSONL file the columns or
// members `text_fields`, one after the other, of a CoNLL file the words of each sentence, of a
// fastText file the texts without their labels, of others the lines. Errors of OverrideFileOptions.
absl::StatusOr<OpenTexts> TextsOfFiles(const TextOptions& options);

}  // namespace cloze

#endif  // CLOZE_TOOLS_TEXTS_H_
