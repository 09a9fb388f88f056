// The words of a raw text, as positions in the original bytes.
#ifndef CLOZE_TASKS_TEXT_WORDS_H_
#define CLOZE_TASKS_TEXT_WORDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/json.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

struct TextWord {
  Span bytes, chars;  // chars in code points, as Encoding has them
};

// Words as the tokenizer splits them, and of each run between white space in which it sees none
// (control characters, marks without a letter) the whole run. So no run is without a word; words
// are in order and do not overlap.
std::vector<TextWord> WordsOfText(const Tokenizer& tokenizer, absl::string_view text);

// Returns the part of `text` at `bytes`.
std::string Slice(absl::string_view text, Span bytes);
// Returns the place of an answer: "start" and "end" in code points, "byte_start" and "byte_end".
OrderedJson PlaceOf(Span bytes, Span chars);
// Returns the parts of `text` that are these words.
std::vector<std::string> Slices(absl::string_view text, const std::vector<TextWord>& words);

}  // namespace cloze

#endif  // CLOZE_TASKS_TEXT_WORDS_H_
