#include "tools/retrieval.h"

#include <unistd.h>

#include <cstdio>

#include "core/ops/nearest.h"
#include "tasks/retrieval.h"
#include "tools/text_table.h"
#include "tools/text_vectors.h"

namespace cloze {
namespace {

// Returns the documents of each query by the products of vectors.
absl::StatusOr<std::vector<std::vector<int64_t>>> RankByVectors(
    const RetrievalData& data, TextEncoder& encoder) {
  ASSIGN_OR_RETURN(const std::vector<float> corpus,
      encoder.Encode(TextRole::kDocument, data.corpus.texts, "documents"));
  ASSIGN_OR_RETURN(const std::vector<float> queries,
      encoder.Encode(TextRole::kQuery, data.queries.texts, "queries"));
  const int64_t dim = encoder.dimensions();
  const auto hits =
      NearestRows({.data = corpus.data(), .rows = std::ssize(data.corpus.texts), .cols = dim},
          View(queries.data(), std::ssize(data.queries.texts), dim), kRetrievalDepth);
  std::vector<std::vector<int64_t>> rankings(hits.size());
  for (size_t q = 0; q < hits.size(); ++q)
    for (const Hit& hit : hits[q]) rankings[q].push_back(hit.row);
  return rankings;
}

std::string ScoreTable(const MetricResults& model, const MetricResults& bm25) {
  std::vector<std::vector<std::string>> rows = {{"metric", "model", "bm25"}};
  for (size_t i = 0; i < model.values.size(); ++i)
    rows.push_back({model.values[i].first, MetricText(model.values[i].second),
        MetricText(bm25.values[i].second)});
  return AlignedTable(rows, StyleOf(1));
}

}  // namespace

absl::Status EvaluateRetrieval(InferOptions options, const std::string& folder, bool json) {
  ASSIGN_OR_RETURN(const RetrievalData data, ReadRetrieval(folder));
  for (const std::string& note : data.notes) std::fprintf(stderr, "cloze: %s\n", note.c_str());
  ASSIGN_OR_RETURN(TextEncoder encoder, TextEncoder::Open(&options));
  StopOnSignals();
  ASSIGN_OR_RETURN(const auto rankings, RankByVectors(data, encoder));
  ReportCut(encoder.cut());
  MetricResults model = ScoreRankings(data.judged, rankings);
  const MetricResults bm25 = ScoreRankings(data.judged, RankByBm25(data));
  if (!json && ::isatty(1) == 1) return WriteTables(ScoreTable(model, bm25));
  model.tables = {{"bm25", bm25.ToJson()}, {"documents", absl::StrCat(data.corpus.ids.size())},
      {"queries", absl::StrCat(data.queries.ids.size())},
      {"queries_without_relevant", absl::StrCat(data.without_relevant)}};
  return WriteStdout(model.ToJson() + "\n");
}

}  // namespace cloze
