// Evaluation of a model on a retrieval collection.
#ifndef CLOZE_TOOLS_RETRIEVAL_H_
#define CLOZE_TOOLS_RETRIEVAL_H_

#include <string>

#include "tools/infer.h"

namespace cloze {

// Ranks the corpus of `folder` (IsRetrievalFolder) for each query by the products of vectors, and
// prints the metrics with those of BM25 and, unless it is empty, of the model `against` beside, and
// by how much nDCG@10 differs (CompareMeans): tables on a terminal, else JSON.
absl::Status EvaluateRetrieval(
    InferOptions options, const std::string& against, const std::string& folder, bool json);

}  // namespace cloze

#endif  // CLOZE_TOOLS_RETRIEVAL_H_
