// Text as indices of words, from which word vectors are learned.
#ifndef CLOZE_CORE_VECTORS_CORPUS_H_
#define CLOZE_CORE_VECTORS_CORPUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace cloze {

struct CorpusOptions {
  bool splits_at_space = false;  // split only at white space, as fastText does; else BERT's words
  bool lowercase = true;         // BERT's words in lower case without accents; else unchanged
  int64_t min_count = 5;         // rarer words are left out
};

struct Corpus {
  // Words by falling count, then in the order of bytes; and their counts.
  std::vector<std::string> words;
  std::vector<int64_t> counts;
  // The text, as indices of `words`: 4 bytes per word.
  std::vector<int32_t> text;
  // End offsets of the sentences in `text`; longer texts are split after 1000 words.
  std::vector<int64_t> ends;
  std::string not_utf8;  // about the first line that is not UTF-8; or empty
};

// Reads the texts of `files`, as `open` opens them. Calls `progress` now and then with the bytes
// read so far and in all. kData if fewer than two words are frequent enough, kInterrupted when
// `stop()` is true.
absl::StatusOr<Corpus> ReadCorpus(const std::vector<std::string>& files,
    const CorpusOptions& options, absl::FunctionRef<void(int64_t done, int64_t total)> progress,
    absl::FunctionRef<bool()> stop, const OpenTexts& open = OpenLines);

}  // namespace cloze

#endif  // CLOZE_CORE_VECTORS_CORPUS_H_
