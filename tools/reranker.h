// A cross-encoder: a model that scores pairs of texts, behind a search.
#ifndef CLOZE_TOOLS_RERANKER_H_
#define CLOZE_TOOLS_RERANKER_H_

#include <memory>
#include <string>
#include <vector>

#include "tools/infer.h"

namespace cloze {

class Reranker {
 public:
  // Opens a sequence classifier with one output or two labels, computing as `options` say.
  // kMismatch for other models.
  static absl::StatusOr<Reranker> Open(const InferOptions& options, const std::string& folder);

  // Returns the score of each pair (query, text): the output or, with two labels, the probability
  // of the second. Pairs that are too long are cut and counted.
  absl::StatusOr<std::vector<float>> Score(
      const std::string& query, absl::Span<const std::string> texts);
  const CutCounts& cut() const { return cut_; }

 private:
  std::unique_ptr<Session> session_;
  CutCounts cut_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_RERANKER_H_
