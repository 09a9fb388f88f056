// Learns byte-pair merges from word counts: repeatedly joins the most frequent pair of neighbouring
// pieces to a new piece.
#ifndef CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
#define CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/text/learning/vocab_trainer.h"

namespace cloze {

// Terminates the process when an allocation fails; `cloze` then exits with 77. flat_hash_map must
// not see std::bad_alloc: its destructor frees a wrong address if the map was growing.
template <typename T>
struct TerminatingAllocator : std::allocator<T> {
  TerminatingAllocator() = default;
  template <typename U>
  TerminatingAllocator(const TerminatingAllocator<U>&) {}
  T* allocate(size_t count) noexcept { return std::allocator<T>::allocate(count); }
};

// Only for maps that are dropped when the process runs out of memory; others, such as those of a
// tokenizer that is loaded, are std::unordered_map.
template <typename Key, typename Value>
using HashMap = absl::flat_hash_map<Key, Value, typename absl::flat_hash_map<Key, Value>::hasher,
    typename absl::flat_hash_map<Key, Value>::key_equal,
    TerminatingAllocator<std::pair<const Key, Value>>>;

// Distinct words with their counts, all above 0.
using CountedWords = std::vector<std::pair<std::string, int64_t>>;

// Appends to data->tokens, which holds the special tokens: the characters of `words` (byte-level:
// those that spell bytes) by code point; the characters inside words, with "##" (WordPiece), by
// falling frequency (Hugging Face's order is random, but similar); the merged pieces in the order
// of their merges. Appends to data->merges. Of pairs with equal counts, merges the one with the
// lower ids first.
void LearnMerges(const CountedWords& words, const VocabOptions& options, TokenizerData* data);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_MERGE_LEARNER_H_
