// Writing CoNLL sentences back with one column replaced.
#ifndef CLOZE_TASKS_DATA_CONLL_WRITER_H_
#define CLOZE_TASKS_DATA_CONLL_WRITER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tasks/data/readers.h"

namespace cloze {

// Returns the columns of a row: separated by tabs if it has any, else by runs of blanks.
std::vector<absl::string_view> SplitConllColumns(absl::string_view row);

// Returns the sentence's lines with column `column` (from 0; the number of columns appends one) of
// word w replaced by values[w]. All other bytes stay. Control characters, tabs and line ends in
// values become "_", and so do blanks where columns are separated by blanks.
std::string ReplaceColumn(
    const ConllSentence& sentence, int column, absl::Span<const std::string> values);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_CONLL_WRITER_H_
