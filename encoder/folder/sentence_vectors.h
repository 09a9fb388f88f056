// How a folder of sentence-transformers makes one vector of a text.
#ifndef CLOZE_ENCODER_FOLDER_SENTENCE_VECTORS_H_
#define CLOZE_ENCODER_FOLDER_SENTENCE_VECTORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/status.h"
#include "encoder/folder/dense_layer.h"

namespace cloze {

// The tokenizer reads texts without white space at their ends.
struct SentenceVectors {
  std::string pool;               // "cls", "mean" or "max"
  std::vector<DenseLayer> dense;  // after the pooling
  bool normalize = false;         // to length 1, at the end
  int64_t max_tokens = 0;  // of a text, special tokens included; 0: as many as the model takes
  bool lowercase = false;  // texts are lower-cased before the tokenizer reads them
  // Texts before each text: that of default_prompt_name; those named "query" and "document" (or
  // "passage"), which the user asks for.
  std::string prompt, query_prompt, document_prompt;
  bool includes_prompt = true;        // in the pooling
  std::string similarity = "cosine";  // of vectors: or "dot", "euclidean", "manhattan"
  std::string folder;                 // that was read
  std::vector<std::string> files;     // that say so, with paths in the folder

  // Returns the numbers of a vector of a model with hidden states of `hidden` numbers.
  int64_t Columns(int64_t hidden) const { return dense.empty() ? hidden : dense.back().outputs; }
};

// Reads modules.json and the files that it names or, in a folder of Cloze without it, such as a
// checkpoint, VectorsMember of config.json; nullopt for a folder without either. max_tokens is
// max_seq_length of sentence_bert_config.json, or of the file of another family that older versions
// wrote, else model_max_length of tokenizer_config.json.
// kData for invalid files; kMismatch for modules, poolings and other settings that Cloze does not
// have, and in a folder with a MANIFEST for files that differ from VectorsMember.
absl::StatusOr<std::optional<SentenceVectors>> ReadSentenceVectors(const std::string& folder);

// Checks the files that WriteSentenceVectors has written into a folder whose config.json has
// VectorsMember: MANIFEST does not list them. kMismatch if one is missing or says something else;
// errors of ReadSentenceVectors.
absl::Status CheckSentenceVectors(const std::string& folder);

// Writes, or replaces, these files in `folder`, for vectors of `hidden` numbers. Requires that
// there is no dense layer.
absl::Status WriteSentenceVectors(
    const SentenceVectors& vectors, int64_t hidden, const std::string& folder);

// Name and value of the member of the object "cloze" of config.json that says the same.
inline constexpr char kVectorsMember[] = "vectors";
Json VectorsMember(const SentenceVectors& vectors);

// Copies the files of `vectors`, if there are any, to the model folder `to`; replaces those there.
absl::Status CopySentenceVectors(
    const std::optional<SentenceVectors>& vectors, const std::string& to);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FOLDER_SENTENCE_VECTORS_H_
