// Records as vectors: what a folder of sentence-transformers says, and hidden states record by
// record.
#ifndef CLOZE_TASKS_INFERENCE_RECORD_VECTORS_H_
#define CLOZE_TASKS_INFERENCE_RECORD_VECTORS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "encoder/folder/sentence_vectors.h"
#include "tasks/inference/record_loop.h"

namespace cloze {

// Returns how sentence-transformers makes vectors of texts with the model or adapter in `folder`;
// nullopt if its files do not say. Errors of ReadSentenceVectors, and `hint`.
absl::StatusOr<std::optional<SentenceVectors>> VectorsOf(
    const std::string& folder, absl::string_view hint = "remove modules.json to go on without it");
// Returns the longest text in tokens, special ones included, of a model with these vectors.
int64_t LongestText(const ModelConfig& config, const std::optional<SentenceVectors>& vectors);

// Texts that are compared: folders may have a prompt for each.
enum class TextRole : uint8_t { kQuery, kDocument };
// Sets the prompt that is put before texts of the role; the default prompt stays if there is none.
// kMismatch if vectors are made without the tokens of prompts, which is not supported.
absl::Status UsePrompt(TextRole role, SentenceVectors* vectors);

// The rules by which a text becomes one vector.
struct TextPooling {
  std::string pool;                        // see Pooled; "none": a vector for each token
  bool normalize = false;                  // to length 1
  std::optional<SentenceVectors> vectors;  // the other rules of the folder, if they are followed
};
// Returns the pooling of a folder with these rules; the mean without rules. `prompt`: "query",
// "document" or ""; errors of UsePrompt.
absl::StatusOr<TextPooling> FolderPooling(
    std::optional<SentenceVectors> vectors, absl::string_view prompt);
TextPooling FolderPooling(std::optional<SentenceVectors> vectors);

// Returns the vector of a text with these hidden states [tokens, hidden]. Requires a pool of
// Pooled. `columns` > 0: only the first ones, at most those that there are.
std::vector<float> TextVector(ConstMat hidden, const TextPooling& how, int64_t columns = 0);
// Returns the columns of these vectors, without that limit.
int64_t ColumnsOf(const TextPooling& how, int64_t hidden);

// Calls f(i, wrong, layer, hidden [tokens, hidden]) for the last layer of each record, or for all
// layers if not `only_last`, see Session::Hidden. A wrong record that does not end the input has
// its error in `wrong`; its `hidden`, and that of a record without tokens, is one row of zeros.
// Errors of ForEachRecord.
absl::Status ForEachHidden(Session& session, absl::Span<const Record> records,
    const RecordSource& source, const std::optional<SentenceVectors>& vectors, bool only_last,
    CutCounts* cut,
    absl::FunctionRef<absl::Status(size_t i, const absl::Status& wrong, int layer, ConstMat hidden)>
        f);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_RECORD_VECTORS_H_
