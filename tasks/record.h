// One thing to run a model on, and its tokens.
#ifndef CLOZE_TASKS_RECORD_H_
#define CLOZE_TASKS_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tasks/data/example_store.h"

namespace cloze {

// A text, a pair of texts, words, or token ids.
struct Record {
  enum class Kind { kText, kPair, kWords, kIds };
  Kind kind = Kind::kText;
  std::string text, text_pair;
  std::vector<std::string> words;
  std::vector<int32_t> ids;  // also given together with a text when the input has both
  std::string adapter;       // name of an adapter; "" when none is named
  std::string id;            // the user's id as JSON text, passed on to the answer; may be ""
  int64_t line = 0;          // line of the input, from 1; 0: not from a file
};

// The tokenizer and the limit of a model.
struct ModelInput {
  absl::StatusOr<const Tokenizer*> tokenizer;  // an error if the model folder has none
  int64_t longest = 0;                         // tokens of a sequence, special tokens included
};

// Counts of texts that did not fit.
struct CutCounts {
  int64_t texts = 0, tokens = 0;  // texts that were cut, and the tokens they lost
  int64_t windows = 0;            // texts that were read in several windows
  int64_t words = 0;              // words that lost pieces
  int64_t max_tokens = 0;         // the limit of the last of these texts
};

// Returns the tokens of a record, cut to the model's limit, or its ids as they are. kData for ids
// that are too many or none; the tokenizer's error for a text without a tokenizer.
absl::StatusOr<Example> EncodeRecord(const Record& record, const ModelInput& input, CutCounts* cut);

// Returns the sequence of an encoding, cut to max_tokens; *dropped receives the tokens cut off.
Example ExampleOf(Encoding encoding, int64_t max_tokens, int64_t* dropped);

}  // namespace cloze

#endif  // CLOZE_TASKS_RECORD_H_
