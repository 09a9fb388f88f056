// How the vocabulary of a subword model is learned. Private to this folder.
#ifndef CLOZE_CORE_TEXT_LEARNING_RECIPE_H_
#define CLOZE_CORE_TEXT_LEARNING_RECIPE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/learning/vocab_trainer.h"
#include "core/text/tokenizer/pipeline.h"

namespace cloze {

// Distinct words with their counts, all above 0.
using CountedWords = std::vector<std::pair<std::string, int64_t>>;

struct Recipe {
  TokenizerData data;  // with the special tokens, without the learned ones
  size_t bytes = 0;    // tokens that are learned from every text
  Pipeline text;       // only the stages before the subword model
  // Sets *word to the normal form of a raw word, spelled like tokens; false drops the word.
  std::function<bool(absl::string_view raw, std::string* word)> normalize;
  // True for the marks that strip_accents drops. Null: texts are not changed.
  bool (*is_mark)(char32_t c) = nullptr;
  // Learns from the normalized words, sorted.
  absl::StatusOr<TokenizerData> (*learn)(const CountedWords& words, const VocabOptions& options,
      TokenizerData start, VocabProgress progress) = nullptr;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_RECIPE_H_
