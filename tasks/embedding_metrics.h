// Metrics of vectors of sentences.
#ifndef CLOZE_TASKS_EMBEDDING_METRICS_H_
#define CLOZE_TASKS_EMBEDDING_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "tasks/data/example_store.h"
#include "tasks/metrics.h"
#include "tasks/retrieval.h"

namespace cloze {

// Metrics of the vectors of texts. Retrieval collections have the means of RetrievalScores, with
// cosines. Scored pairs have spearman_cosine and pearson_cosine: the correlation of their scores
// with the cosines of their vectors. Other examples have accuracy and mrr_at_10: how often the
// positive is the nearest to the anchor among all positives and negatives, of another class, of up
// to 4,096 consecutive examples, and the mean of 1 / its rank up to rank 10.
class VectorMetrics {
 public:
  static std::vector<Metric> All();
  // Adds a text of SequencesOfGroup and its vector, which becomes of length 1; text after text.
  void Add(const Example& text, absl::Span<float> vector);
  MetricResults Results();

 private:
  // Ranks the positives of the examples that are kept, and drops them.
  void Rank();

  int64_t hidden_ = 0;
  std::vector<float> anchor_;  // of scored pairs: the last
  RegressionMetric scored_;
  int64_t pairs_ = 0;
  std::vector<float> anchors_, candidates_;  // vectors of the kept examples
  std::vector<int32_t> targets_, anchor_classes_, candidate_classes_;
  std::vector<float> documents_, queries_;  // of a retrieval collection
  std::vector<Judgements> judged_;          // of each query
  int64_t ranked_ = 0, first_ = 0;
  double reciprocal_ranks_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_EMBEDDING_METRICS_H_
