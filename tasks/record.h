// The input of a model, the sequences of its texts, and its words.
#ifndef CLOZE_TASKS_RECORD_H_
#define CLOZE_TASKS_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/data/example_store.h"
#include "tasks/data/record.h"

namespace cloze {

// The tokenizer and the limit of a model.
struct ModelInput {
  absl::StatusOr<const Tokenizer*> tokenizer;  // an error if the model folder has none
  int64_t longest = 0;                         // tokens of a sequence, special tokens included
  int32_t token_types = 2;                     // that the model knows
};

// Counts of texts that did not fit.
struct CutCounts {
  int64_t texts = 0, tokens = 0;  // texts that were cut, and the tokens they lost
  int64_t windows = 0;            // texts that were read in several windows
  int64_t words = 0;              // words that lost pieces
  int64_t questions = 0;          // questions longer than longest_question
  int64_t max_tokens = 0;         // the limit of the last of these texts

  // Adds a text that lost `cut` tokens and became `sequences` windows.
  void Add(int64_t cut, size_t sequences, int64_t limit);
  // Returns "longer than the model's 128 tokens: 2 texts, 5 tokens cut off".
  std::string DescribeCut() const;
};

// Returns the tokens of a record, cut to the model's limit, or its ids as they are. kData for ids
// that are too many or none; the tokenizer's error for a text without a tokenizer.
absl::StatusOr<Example> EncodeRecord(const Record& record, const ModelInput& input, CutCounts* cut);

// Returns the tokens of a record that is not of ids, special ones included; not cut.
Encoding EncodeWhole(const Tokenizer& tokenizer, const Record& record);

// Returns the number of `ids` that stand for text: unknown tokens and those that are not special.
int64_t CountTextTokens(const Tokenizer& tokenizer, absl::Span<const int32_t> ids);

// Returns the members of an answer that repeat the input.
OrderedJson InputMembers(const Record& record);

// Returns the sequence of an encoding, cut to max_tokens; *dropped receives the tokens cut off.
Example ExampleOf(Encoding encoding, int64_t max_tokens, int64_t* dropped, Keep keep = Keep::kHead);

// Sets the rows of a sequence to all its tokens, so that the model returns the logits of each.
void SetAllRows(Example* example);

// The sequences of one text and its part of a store's statistics: text_tokens, unknown_tokens,
// truncated and cut_tokens. All sequences but the first have `continues`.
struct EncodedText {
  std::vector<Example> windows;
  DataStats stats;
};

// Returns <class> text <sep> [pair <sep>] with row 0, of at most max_tokens (at least 3; 4 for a
// pair): one sequence, or with WINDOWS and a single text as many full ones as cover it, overlapping
// evenly.
EncodedText SequencesOfText(const Tokenizer& tokenizer, absl::string_view text,
    const std::string* pair, int64_t max_tokens, SequenceClassificationSpec::LongTexts long_texts);

// kNone: every word is in exactly one window, for training. kHalf: each window begins half a window
// before the end of the previous one and owns the words with the most context in it, for
// prediction.
enum class Overlap { kNone, kHalf };

// Returns windows of at most max_tokens (at least 3), <class> pieces <sep>, split between words.
// Each word that a window owns has a row, its first piece; `further` counts its other pieces, and
// its label is that of the word (no labels if `labels` is empty). Only words longer than a window
// are cut; words without pieces become <unk>. Also counts words and empty_words; `truncated` counts
// words. The tokenizer must have <class>, <sep> and <unk>.
EncodedText CutIntoWindows(const Tokenizer& tokenizer, absl::Span<const std::string> words,
    absl::Span<const int32_t> labels, int32_t max_tokens, Overlap overlap);

struct TextWord {
  Span bytes, chars;  // of the original text; chars in code points, as Encoding has them
};

// Returns the words as the tokenizer splits them. A run between white space in which the tokenizer
// sees no word (control characters, marks without a letter) is one word. Words are in order and do
// not overlap.
std::vector<TextWord> WordsOfText(const Tokenizer& tokenizer, absl::string_view text);

// Returns the part of `text` at `bytes`.
std::string Slice(absl::string_view text, Span bytes);
// Returns the parts of `text` that are these words.
std::vector<std::string> Slices(absl::string_view text, const std::vector<TextWord>& words);
// Returns the place of an answer: "start" and "end" in code points, "byte_start" and "byte_end".
OrderedJson OffsetsJson(Span bytes, Span chars);

}  // namespace cloze

#endif  // CLOZE_TASKS_RECORD_H_
