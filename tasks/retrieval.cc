#include "tasks/retrieval.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/hash_map.h"
#include "core/base/json.h"

namespace cloze {
namespace {

constexpr int64_t kGainDepth = 10;  // of ndcg_at_10 and mrr_at_10

using IdIndex = HashMap<std::string, int64_t>;

// Calls f(line) for each line that is not blank; its errors get the file and the line.
absl::Status ForJudgedLines(
    const std::string& path, absl::FunctionRef<absl::Status(const std::string& line)> f) {
  ASSIGN_OR_RETURN(LineReader reader, LineReader::Open(path));
  std::string line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&line));
    if (!more) return absl::OkStatus();
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const absl::Status status =
        reader.continued() ? Error(Exit::kData, "longer than 16 MB") : f(line);
    RETURN_IF_ERROR(Annotate(status, QuotePath(path), ":", reader.line_number()));
  }
}

// Reads objects with "_id" and "text", maybe "title".
absl::Status ReadTexts(const std::string& path, RetrievalTexts* out, IdIndex* index) {
  return ForJudgedLines(path, [&](const std::string& line) -> absl::Status {
    std::vector<JsonValue> values;
    RETURN_IF_ERROR(ParseJsonLine(line, {"_id", "text", "title"}, &values));
    const auto& [id, text, title] = std::tie(values[0], values[1], values[2]);
    if (id.kind != JsonValue::kString && id.kind != JsonValue::kNumber)
      return Error(Exit::kData, "_id: expected a string");
    if (text.kind != JsonValue::kString) return Error(Exit::kData, "text: expected a string");
    if (!index->emplace(id.text, std::ssize(out->ids)).second)
      return Error(Exit::kData, "_id: \"", Quote(id.text), "\" occurs twice");
    out->ids.push_back(id.text);
    out->texts.push_back(title.text.empty() ? text.text : absl::StrCat(title.text, " ", text.text));
    return absl::OkStatus();
  });
}

struct Qrel {
  std::string query, document;
  int64_t grade;
};

// Parses "query TAB document TAB grade", or trec_eval's "query 0 document grade".
absl::StatusOr<Qrel> ParseQrel(const std::string& line) {
  std::vector<std::string> cells = absl::StrSplit(line, '\t');
  if (cells.size() == 1) cells = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (cells.size() == 4) cells.erase(cells.begin() + 1);
  Qrel qrel;
  if (cells.size() != 3 || !absl::SimpleAtoi(cells[2], &qrel.grade) || qrel.grade > kMaxGrade)
    return Error(Exit::kData, "\"", Quote(line),
        "\": expected a query's id, a document's id and a whole number, with tabs between them");
  qrel.query = cells[0], qrel.document = cells[1];
  return qrel;
}

// Reads the judgements of each query in data->queries.
absl::Status ReadQrels(const std::string& path, const IdIndex& documents, const IdIndex& queries,
    RetrievalData* data) {
  data->judged.resize(data->queries.ids.size());
  int64_t lacking = 0, unknown = 0;
  std::string lacked, stranger;
  bool first = true;
  HashSet<std::string> seen;
  RETURN_IF_ERROR(ForJudgedLines(path, [&](const std::string& line) -> absl::Status {
    absl::StatusOr<Qrel> qrel = ParseQrel(line);
    if (std::exchange(first, false) && !qrel.ok() && absl::StrContains(line, "query")) return {};
    RETURN_IF_ERROR(qrel.status());
    if (!seen.insert(absl::StrCat(qrel->query, "\t", qrel->document)).second)
      return Error(Exit::kData, "\"", Quote(line), "\": this pair is judged twice");
    const auto query = queries.find(qrel->query), document = documents.find(qrel->document);
    if (query == queries.end()) return ++unknown, stranger = qrel->query, absl::OkStatus();
    if (document == documents.end()) ++lacking, lacked = qrel->document;
    const int64_t at = document == documents.end() ? -1 : document->second;
    Judgements& judged = data->judged[query->second];
    judged.emplace_back(at, qrel->grade);
    if (judged.size() <= kMaxJudgements) return absl::OkStatus();
    return Error(Exit::kData, "\"", Quote(qrel->query), "\": expected at most ", kMaxJudgements,
        " judgements of a query");
  }));
  if (lacking > 0)
    data->notes.push_back(absl::StrCat(QuotePath(path), ": ", Counted(lacking, "judgement"),
        " of documents that the corpus lacks, such as \"", Quote(lacked),
        "\": they count as not found"));
  if (unknown > 0)
    data->notes.push_back(absl::StrCat(QuotePath(path), ": ", Counted(unknown, "judgement"),
        " of queries that queries.jsonl lacks, such as \"", Quote(stranger), "\": left out"));
  return absl::OkStatus();
}

// Removes the queries without a relevant document.
void KeepAnswerable(RetrievalData* data) {
  RetrievalData kept;
  for (size_t q = 0; q < data->judged.size(); ++q) {
    if (absl::c_none_of(data->judged[q], [](const auto& j) { return j.second > 0; })) continue;
    kept.queries.ids.push_back(std::move(data->queries.ids[q]));
    kept.queries.texts.push_back(std::move(data->queries.texts[q]));
    kept.judged.push_back(std::move(data->judged[q]));
  }
  data->without_relevant = std::ssize(data->judged) - std::ssize(kept.judged);
  data->queries = std::move(kept.queries);
  data->judged = std::move(kept.judged);
}

double Discounted(int64_t grade, int64_t rank) {
  return static_cast<double>(std::max<int64_t>(grade, 0)) / std::log2(rank + 1.0);
}

}  // namespace

bool IsRetrievalFolder(const std::string& path) {
  return PathExists(JoinPath(path, "corpus.jsonl")) && PathExists(JoinPath(path, "queries.jsonl"));
}

std::vector<std::string> RetrievalFiles(const std::string& folder) {
  std::string qrels = JoinPath(folder, "qrels/test.tsv");
  if (!PathExists(qrels)) qrels = JoinPath(folder, "qrels.tsv");
  return {JoinPath(folder, "corpus.jsonl"), JoinPath(folder, "queries.jsonl"), std::move(qrels)};
}

absl::StatusOr<RetrievalData> ReadRetrieval(const std::string& folder) {
  RetrievalData data;
  IdIndex documents, queries;
  const std::vector<std::string> files = RetrievalFiles(folder);
  const std::string &corpus = files[0], &qrels = files[2];
  RETURN_IF_ERROR(ReadTexts(corpus, &data.corpus, &documents));
  if (data.corpus.ids.empty()) return Error(Exit::kData, QuotePath(corpus), ": no documents");
  RETURN_IF_ERROR(ReadTexts(files[1], &data.queries, &queries));
  RETURN_IF_ERROR(ReadQrels(qrels, documents, queries, &data));
  KeepAnswerable(&data);
  if (data.queries.ids.empty())
    return Error(Exit::kData, QuotePath(qrels),
        ": no query of queries.jsonl has a relevant document: expected a grade above 0");
  if (data.without_relevant > 0)
    data.notes.push_back(
        absl::StrCat(QuotePath(qrels), ": no relevant document for ", data.without_relevant, " of ",
            data.without_relevant + std::ssize(data.judged), " queries: left out"));
  return data;
}

RetrievalScores ScoreRanking(absl::Span<const int64_t> ranking, const Judgements& judged) {
  HashMap<int64_t, int64_t> grades;
  std::vector<int64_t> ideal;
  int64_t relevant = 0;
  for (const auto& [document, grade] : judged) {
    if (document >= 0) grades[document] = grade;
    ideal.push_back(grade);
    relevant += grade > 0;
  }
  std::sort(ideal.rbegin(), ideal.rend());
  double best = 0, gain = 0, precisions = 0;
  for (int64_t i = 0; i < std::min(kGainDepth, std::ssize(ideal)); ++i)
    best += Discounted(ideal[i], i + 1);
  RetrievalScores scores;
  int64_t found = 0;
  for (int64_t rank = 1; rank <= std::min(kRetrievalDepth, std::ssize(ranking)); ++rank) {
    const auto grade = grades.find(ranking[rank - 1]);
    if (grade == grades.end() || grade->second <= 0) continue;
    precisions += static_cast<double>(++found) / static_cast<double>(rank);
    if (rank > kGainDepth) continue;
    gain += Discounted(grade->second, rank);
    if (found == 1) scores.mrr_at_10 = 1.0 / static_cast<double>(rank);
  }
  scores.ndcg_at_10 = gain / best;
  scores.recall_at_100 = static_cast<double>(found) / static_cast<double>(relevant);
  scores.map_at_100 = precisions / static_cast<double>(relevant);
  return scores;
}

std::vector<std::vector<int64_t>> RankByProducts(const VectorRows& corpus, ConstMat queries) {
  std::vector<std::vector<int64_t>> rankings;
  for (const std::vector<Hit>& hits : NearestRows(corpus, queries, kRetrievalDepth)) {
    std::vector<int64_t>& ranking = rankings.emplace_back();
    for (const Hit& hit : hits) ranking.push_back(hit.row);
  }
  return rankings;
}

MetricResults ScoreRankings(absl::Span<const Judgements> judged,
    absl::Span<const std::vector<int64_t>> rankings, std::vector<double>* ndcg) {
  CLOZE_CHECK(rankings.size() == judged.size());
  RetrievalScores sum;
  for (size_t q = 0; q < rankings.size(); ++q) {
    const RetrievalScores s = ScoreRanking(rankings[q], judged[q]);
    if (ndcg != nullptr) ndcg->push_back(s.ndcg_at_10);
    sum.ndcg_at_10 += s.ndcg_at_10, sum.mrr_at_10 += s.mrr_at_10;
    sum.recall_at_100 += s.recall_at_100, sum.map_at_100 += s.map_at_100;
  }
  const double n = static_cast<double>(rankings.size());
  return {{{"ndcg_at_10", sum.ndcg_at_10 / n}, {"mrr_at_10", sum.mrr_at_10 / n},
      {"recall_at_100", sum.recall_at_100 / n}, {"map_at_100", sum.map_at_100 / n}}};
}

}  // namespace cloze
