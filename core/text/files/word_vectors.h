// Files of word vectors in the text format of word2vec and fastText: a line "words dimensions",
// then for each word a line with the word and its numbers.
#ifndef CLOZE_CORE_TEXT_FILES_WORD_VECTORS_H_
#define CLOZE_CORE_TEXT_FILES_WORD_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/hash_map.h"
#include "core/base/status.h"

namespace cloze {

struct WordVectors {
  int64_t dim = 0;
  std::vector<std::string> words;       // distinct
  std::vector<float> values;            // [words, dim], finite
  HashMap<std::string, int32_t> index;  // of words

  absl::Span<const float> row(int64_t word) const {
    return {values.data() + word * dim, static_cast<size_t>(dim)};
  }
};

// True if a path names a file of word vectors: FILE.vec, or FILE.vec.gz, .xz or .zst.
bool IsWordVectors(const std::string& path);

// Reads a file, unpacked. Of repeated words the first counts. kData for other content and numbers
// that are not finite; kLimit beyond 65536 dimensions.
absl::StatusOr<WordVectors> ReadWordVectors(const std::string& path);

// Returns the line of a word, with its end. Numbers have six significant digits.
std::string WordVectorLine(absl::string_view word, absl::Span<const float> values);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_FILES_WORD_VECTORS_H_
