// The examples of sentence_embedding: groups of texts, in files and in stores.
#ifndef CLOZE_TASKS_EMBEDDING_GROUPS_H_
#define CLOZE_TASKS_EMBEDDING_GROUPS_H_

#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/data/cache.h"
#include "tasks/record.h"
#include "tasks/retrieval.h"

namespace cloze {

// The kind of the rows of a DataSpec. kPairs: an anchor, its positives and its negatives; each
// positive of a list is an example. kScored: pairs with numbers. kLabelled: texts with labels; each
// is paired with the previous text of the same label. kTexts: single texts. kRetrieval: a folder of
// IsRetrievalFolder, for evaluation.
enum class GroupKind { kPairs, kScored, kLabelled, kTexts, kRetrieval };

// Returns the kind that the fields of `data` and the loss of `training` mean. Other data of pairs
// are scored if their first rows have a number in label_field.
GroupKind GroupKindOf(const DataSpec& data, bool training, SentenceEmbeddingSpec::Loss loss);

// Reads the first row of each file, or a retrieval collection. Errors of TextReader and
// ReadRetrieval.
absl::Status CheckGroups(const DataSpec& data, GroupKind kind);

// Builds or opens the store of `data`. kData, with the line, for a pair with an empty side and for
// a score that is no number; kData if no label has two texts. Of a retrieval collection, the store
// has an example for each document, with the label LabelOf(kDocument), in the order of the corpus,
// then one for each query, with LabelOf(kQuery) and its judgements. Errors of ReadRetrieval.
absl::StatusOr<BuiltStore> BuildGroups(const DataSpec& data, GroupKind kind,
    const SentenceEmbeddingSpec& spec, const Tokenizer& tokenizer, const BuildOptions& options);

// Returns the judgements in the labels of a query of a retrieval collection.
Judgements JudgementsOf(absl::Span<const int32_t> labels);

// Returns the texts of an example of a store: the anchor, its positive and its negatives, each with
// a label of LabelOf and, of a scored pair, its score as value. The rows are those that
// spec.pooling() reads. A single text is its own positive; one of a retrieval collection keeps the
// labels of its example.
std::vector<Example> SequencesOfGroup(const Example& example, const SentenceEmbeddingSpec& spec);

}  // namespace cloze

#endif  // CLOZE_TASKS_EMBEDDING_GROUPS_H_
