// Retrieval: a collection in BEIR's layout, the metrics of trec_eval, and BM25.
#ifndef CLOZE_TASKS_RETRIEVAL_H_
#define CLOZE_TASKS_RETRIEVAL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/ops/nearest.h"
#include "tasks/metrics.h"

namespace cloze {

struct RetrievalTexts {
  std::vector<std::string> ids, texts;
};

// The judgements of one query: documents and their grades, above 0 if relevant. Document -1: the
// corpus lacks it; it counts as not found.
using Judgements = std::vector<std::pair<int64_t, int64_t>>;
inline constexpr int64_t kMaxGrade = 1'000'000;
inline constexpr size_t kMaxJudgements = 100'000;

struct RetrievalData {
  RetrievalTexts corpus;           // a document is its title, a space and its text
  RetrievalTexts queries;          // those with a relevant document
  std::vector<Judgements> judged;  // of each query
  int64_t without_relevant = 0;    // queries left out because they have no relevant document
  std::vector<std::string> notes;  // for the user
};

// True if `path` is a folder with corpus.jsonl and queries.jsonl.
bool IsRetrievalFolder(const std::string& path);
// Returns the three files of such a folder: corpus, queries, judgements.
std::vector<std::string> RetrievalFiles(const std::string& folder);

// Reads corpus.jsonl ({"_id", "title", "text"}), queries.jsonl ({"_id", "text"}) and qrels.tsv or
// qrels/test.tsv (query, document and grade after tabs; or the four columns of trec_eval). kNoInput
// for missing files; kData, with file and line, for what is not so, for an id given twice, a corpus
// without documents, and judgements none of whose queries has a relevant document.
absl::StatusOr<RetrievalData> ReadRetrieval(const std::string& folder);

// The metrics of rankings, each the mean over queries, as trec_eval defines them:
//   ndcg_at_10     gains are the grades; the ideal ranks all judged documents
//   mrr_at_10      1 / rank of the first relevant document among the first 10, else 0
//   recall_at_100  share of the relevant documents that are among the first 100
//   map_at_100     mean over the relevant documents of the precision at their ranks, 0 beyond 100
struct RetrievalScores {
  double ndcg_at_10 = 0, mrr_at_10 = 0, recall_at_100 = 0, map_at_100 = 0;
};
inline constexpr int64_t kRetrievalDepth = 100;  // documents of a ranking that count

// Returns the scores of one ranking, best document first. Requires a relevant document in `judged`.
RetrievalScores ScoreRanking(absl::Span<const int64_t> ranking, const Judgements& judged);
// Returns the means over queries, in the order above. Appends ndcg_at_10 of each query to *ndcg,
// unless it is null.
MetricResults ScoreRankings(absl::Span<const Judgements> judged,
    absl::Span<const std::vector<int64_t>> rankings, std::vector<double>* ndcg = nullptr);

// Returns the best kRetrievalDepth documents of each query, by the products of their vectors
// `corpus` with `queries` [n, cols] f32.
std::vector<std::vector<int64_t>> RankByProducts(const VectorRows& corpus, ConstMat queries);

// Returns the best kRetrievalDepth documents of each query by BM25 (Robertson; Lucene's form): sum
// over words of ln(1 + (N - n + 0.5) / (n + 0.5)) tf / (tf + k1 (1 - b + b length / mean length)).
// Words are runs of letters, digits and marks in lower case. Documents without a word of the query
// are not ranked; equal scores are in the order of the corpus.
std::vector<std::vector<int64_t>> RankByBm25(
    const RetrievalData& data, double k1 = 0.9, double b = 0.4);

}  // namespace cloze

#endif  // CLOZE_TASKS_RETRIEVAL_H_
