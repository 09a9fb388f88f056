// The rows of a table that make up each word's vector, as in fastText (Bojanowski et al. 2017,
// arXiv:1607.04606): the word's own, and those of its character n-grams.
#ifndef CLOZE_CORE_VECTORS_SUBWORDS_H_
#define CLOZE_CORE_VECTORS_SUBWORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace cloze {

struct SubwordOptions {
  int min_n = 3, max_n = 6;     // characters of n-grams; max_n 0: only words
  int64_t buckets = 2'000'000;  // n-grams with the same hash modulo this share a row
};

// Returns the 32-bit FNV-1a hash; bytes above 127 are sign-extended, as in fastText.
uint32_t FnvHash(absl::string_view bytes);

// Returns the buckets of the n-grams of "<word>", in fastText's order, with repetitions.
std::vector<int64_t> NgramBuckets(absl::string_view word, const SubwordOptions& options);

class SubwordRows {
 public:
  // Word w has row w. Buckets get rows after those of the words in the order of their first use, so
  // that unused ones take no memory.
  SubwordRows(const std::vector<std::string>& words, const SubwordOptions& options);

  int64_t rows() const { return rows_; }
  // Returns the rows of a word, its own first.
  absl::Span<const int32_t> of(int32_t word) const {
    return {list_.data() + starts_[word], static_cast<size_t>(starts_[word + 1] - starts_[word])};
  }

 private:
  int64_t rows_;
  std::vector<int32_t> list_;
  std::vector<int64_t> starts_ = {0};  // [words + 1]
};

}  // namespace cloze

#endif  // CLOZE_CORE_VECTORS_SUBWORDS_H_
