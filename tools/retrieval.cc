#include "tools/retrieval.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_format.h"
#include "tasks/paired_bootstrap.h"
#include "tasks/retrieval.h"
#include "tools/text_table.h"
#include "tools/text_vectors.h"

namespace cloze {
namespace {

// The scores of a model or of BM25.
struct Ranked {
  std::string name;
  MetricResults means;
  std::vector<double> ndcg;  // of each query
};

Ranked ScoresOf(
    std::string name, const RetrievalData& data, absl::Span<const std::vector<int64_t>> rankings) {
  Ranked ranked = {std::move(name), {}, {}};
  ranked.means = ScoreRankings(data.judged, rankings, &ranked.ndcg);
  return ranked;
}

absl::StatusOr<Ranked> RankByModel(
    const RetrievalData& data, InferOptions options, std::string name) {
  ASSIGN_OR_RETURN(TextEncoder encoder, TextEncoder::Open(&options));
  ASSIGN_OR_RETURN(const std::vector<float> corpus,
      encoder.Encode(TextRole::kDocument, data.corpus.texts, "documents"));
  ASSIGN_OR_RETURN(const std::vector<float> queries,
      encoder.Encode(TextRole::kQuery, data.queries.texts, "queries"));
  ReportCut(encoder.cut());
  const int64_t dim = encoder.dimensions();
  const VectorRows table = {
      .data = corpus.data(), .rows = std::ssize(data.corpus.texts), .cols = dim};
  return ScoresOf(std::move(name), data,
      RankByProducts(table, View(queries.data(), std::ssize(data.queries.texts), dim)));
}

// The first of `all` is compared with each of the others.
std::string ScoreTables(absl::Span<const Ranked> all) {
  std::vector<std::vector<std::string>> scores = {{"metric"}},
                                        differences = {
                                            {"ndcg_at_10", "difference", "95 % interval", "p"}};
  for (const auto& [metric, value] : all[0].means.values) scores.push_back({metric});
  for (const Ranked& ranked : all) {
    scores[0].push_back(ranked.name);
    for (size_t i = 0; i < ranked.means.values.size(); ++i)
      scores[i + 1].push_back(MetricText(ranked.means.values[i].second));
    if (&ranked == &all[0]) continue;
    const MetricDifference d = CompareMeans(ranked.ndcg, all[0].ndcg);
    differences.push_back({"model - " + ranked.name, absl::StrFormat("%+.4f", d.value),
        absl::StrFormat("%+.4f to %+.4f", d.low, d.high), absl::StrFormat("%.4f", d.p)});
  }
  return absl::StrCat(
      AlignedTable(scores, StyleOf(1)), "\n", AlignedTable(differences, StyleOf(1)));
}

std::string ScoreJson(const RetrievalData& data, absl::Span<const Ranked> all) {
  MetricResults results = all[0].means;
  OrderedJson differences = OrderedJson::object();
  for (const Ranked& ranked : all.subspan(1)) {
    results.tables.emplace_back(ranked.name, ranked.means.ToJson());
    const MetricDifference d = CompareMeans(ranked.ndcg, all[0].ndcg);
    differences[ranked.name] = {
        {"ndcg_at_10", d.value}, {"low", d.low}, {"high", d.high}, {"p", d.p}};
  }
  results.tables.emplace_back("better_than", differences.dump());
  results.tables.emplace_back("documents", absl::StrCat(data.corpus.ids.size()));
  results.tables.emplace_back("queries", absl::StrCat(data.queries.ids.size()));
  results.tables.emplace_back("queries_without_relevant", absl::StrCat(data.without_relevant));
  return results.ToJson() + "\n";
}

}  // namespace

absl::Status EvaluateRetrieval(
    InferOptions options, const std::string& against, const std::string& folder, bool json) {
  ASSIGN_OR_RETURN(const RetrievalData data, ReadRetrieval(folder));
  for (const std::string& note : data.notes) std::fprintf(stderr, "cloze: %s\n", note.c_str());
  StopOnSignals();
  std::vector<Ranked> all;
  ASSIGN_OR_RETURN(all.emplace_back(), RankByModel(data, options, "model"));
  if (!against.empty()) {
    options.model = against;
    options.adapters.clear();
    ASSIGN_OR_RETURN(all.emplace_back(), RankByModel(data, options, "against"));
  }
  all.push_back(ScoresOf("bm25", data, RankByBm25(data)));
  return !json && ::isatty(1) == 1 ? WriteTables(ScoreTables(all))
                                   : WriteStdout(ScoreJson(data, all));
}

}  // namespace cloze
