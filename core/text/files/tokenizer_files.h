// Loads and saves the tokenizer files of Hugging Face model folders.
#ifndef CLOZE_CORE_TEXT_FILES_TOKENIZER_FILES_H_
#define CLOZE_CORE_TEXT_FILES_TOKENIZER_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {

// Loads a tokenizer from a model folder (tokenizer.json, else vocab.txt, else vocab.json with
// merges.txt; tokenizer_config.json), a tokenizer.json or a lone vocab.txt. `lowercase` applies if
// no file says whether to lower-case texts and strip accents. Returns kNoInput if there is no such
// file; kData, naming file and line, for duplicate or empty tokens, tokens over 1 KiB and missing
// special tokens or merges, and naming the component of a tokenizer.json that is not supported;
// kMismatch if merges.txt and tokenizer.json differ, or a file differs from MANIFEST; kLimit for
// more than 10 million tokens or 128 MB of them.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& path, bool lowercase);

// Returns the tokenizer of the first of `folders` that has one; kNoInput if none has. Other errors
// of LoadTokenizer and CheckVocab.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFirstTokenizer(
    absl::Span<const std::string> folders, bool lowercase, int64_t vocab);

// Returns kMismatch if the tokenizer of `folder` has more tokens than a model's vocabulary.
absl::Status CheckVocab(const std::string& folder, const Tokenizer& tokenizer, int64_t vocab);

// Returns a Unigram tokenizer like XLM-R's: <s> <pad> </s> <unk> <mask>, then `pieces` with their
// scores, rounded to six decimals. Normalizes texts by NFKC, drops accents and lower-cases as
// `options` say, and cuts words at white space.
absl::StatusOr<TokenizerData> NewUnigram(
    const std::vector<std::pair<std::string, double>>& pieces, const NormalizerOptions& options);

// Writes tokenizer.json (unchanged if it has components that only it can describe),
// tokenizer_config.json, special_tokens_map.json and the vocabulary files of BERT and RoBERTa
// (vocab.txt; vocab.json and merges.txt) into an existing folder, each file atomically.
// `max_length` becomes model_max_length.
absl::Status SaveTokenizer(
    const Tokenizer& tokenizer, const std::string& directory, int64_t max_length);

// Returns the names of vocabulary files that SaveTokenizer does not write, and that contradict what
// it writes.
std::vector<const char*> OtherVocabFiles(const Tokenizer& tokenizer);

// Saves LoadFirstTokenizer(folders); does nothing if no folder has a tokenizer.
absl::Status CopyTokenizer(absl::Span<const std::string> folders, const std::string& directory,
    int64_t vocab, int64_t max_length);

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_FILES_TOKENIZER_FILES_H_
