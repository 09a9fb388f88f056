// A retrieval collection as examples of sentence_embedding, for evaluation.
#ifndef CLOZE_TASKS_RETRIEVAL_STORE_H_
#define CLOZE_TASKS_RETRIEVAL_STORE_H_

#include <string>

#include "core/text/tokenizer/tokenizer.h"
#include "tasks/data/cache.h"
#include "tasks/embedding_loss.h"
#include "tasks/retrieval.h"

namespace cloze {

// Builds or opens the store of the collection in `folder`: an example for each document, in the
// order of the corpus, then one for each query. Their labels are LabelOf(kDocument), or
// LabelOf(kQuery) and those of its judgements. Errors of ReadRetrieval.
absl::StatusOr<BuiltStore> BuildRetrievalStore(const std::string& folder, StoreKind kind,
    const EmbeddingSpec& spec, const Tokenizer& tokenizer, const BuildOptions& options);

// Returns the judgements in the labels of a query.
Judgements JudgementsOf(absl::Span<const int32_t> labels);

}  // namespace cloze

#endif  // CLOZE_TASKS_RETRIEVAL_STORE_H_
