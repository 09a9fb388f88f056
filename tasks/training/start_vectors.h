// Word vectors from a file, from which the token embeddings of a new encoder start.
#ifndef CLOZE_TASKS_TRAINING_START_VECTORS_H_
#define CLOZE_TASKS_TRAINING_START_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "encoder/families/model_config.h"
#include "proto/spec.h"

namespace cloze {

struct StartVectors {
  std::vector<int32_t> ids;   // tokens that are whole words of the file
  std::vector<float> values;  // [ids, cols]; their root mean square is the initializer_range

  // Copies the vectors into rows `ids` of table [vocab, cols].
  void CopyTo(Mat table) const;
  // Returns a line for the user.
  std::string Describe(int64_t vocab) const;
};

// Reads model.encoder.word_vectors; empty without it. Errors name the field: those of
// ReadWordVectors, kMismatch if the dimension is not that of the embeddings or no token is a word
// of the file.
absl::StatusOr<StartVectors> ReadStartVectors(
    const LoadedSpec& loaded, const ModelConfig& config, const Tokenizer& tokenizer);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_START_VECTORS_H_
