// The texts that `cloze vocab` and `cloze vectors` learn from.
#ifndef CLOZE_TOOLS_TEXTS_H_
#define CLOZE_TOOLS_TEXTS_H_

#include <string>

#include "core/base/text_source.h"
#include "tools/command.h"

namespace cloze {

// Adds --text-field.
void AddTextField(Command& command, std::string* text_field);

// Returns a function that opens a file by its extension: of a TSV, CSV or JSONL file the column or
// member `text_field`, of a CoNLL file the words of each sentence, of a fastText file the texts
// without their labels, of others the lines.
OpenTexts TextsOfFiles(const std::string& text_field);

}  // namespace cloze

#endif  // CLOZE_TOOLS_TEXTS_H_
