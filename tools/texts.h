// The texts that `cloze vocab` and `cloze vectors` learn from.
#ifndef CLOZE_TOOLS_TEXTS_H_
#define CLOZE_TOOLS_TEXTS_H_

#include <string>
#include <vector>

#include "core/base/text_source.h"
#include "tools/command.h"

namespace cloze {

struct TextOptions {
  std::string text_field = "text";
  std::vector<std::string> reading;  // of --set, see OverrideFileOptions
};

// Adds --text-field and --set.
void AddTextOptions(Command& command, TextOptions* options);

// Returns a function that opens a file by its extension: of a TSV, CSV or JSONL file the column or
// member `text_field`, of a CoNLL file the words of each sentence, of a fastText file the texts
// without their labels, of others the lines. Errors of OverrideFileOptions.
absl::StatusOr<OpenTexts> TextsOfFiles(const TextOptions& options);

}  // namespace cloze

#endif  // CLOZE_TOOLS_TEXTS_H_
