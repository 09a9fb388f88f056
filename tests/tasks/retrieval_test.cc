#include "tasks/retrieval.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tasks/embedding_groups.h"
#include "tasks/embedding_loss.h"
#include "tasks/embedding_metrics.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ScoreRanking, HasTheGainsOfTrecEval) {
  // Grades 3, 2, 1, an irrelevant one, and a relevant document that the corpus lacks.
  const Judgements judged = {{4, 3}, {7, 2}, {9, 1}, {1, 0}, {-1, 2}};
  const std::vector<int64_t> ranking = {1, 7, 5, 4};
  const RetrievalScores s = ScoreRanking(ranking, judged);
  const double gain = 2 / std::log2(3.0) + 3 / std::log2(5.0),
               ideal = 3 + 2 / std::log2(3.0) + 2 / std::log2(4.0) + 1 / std::log2(5.0);
  EXPECT_DOUBLE_EQ(s.ndcg_at_10, gain / ideal);
  EXPECT_DOUBLE_EQ(s.mrr_at_10, 0.5);
  EXPECT_DOUBLE_EQ(s.recall_at_100, 0.5);
  EXPECT_DOUBLE_EQ(s.map_at_100, (1.0 / 2 + 2.0 / 4) / 4);
}

TEST(ScoreRanking, CutsAtTenAndAtAHundred) {
  std::vector<int64_t> ranking(120);
  for (int64_t i = 0; i < 120; ++i) ranking[i] = i;
  const RetrievalScores eleventh = ScoreRanking(ranking, {{10, 1}});
  EXPECT_EQ(eleventh.ndcg_at_10, 0);
  EXPECT_EQ(eleventh.mrr_at_10, 0);
  EXPECT_EQ(eleventh.recall_at_100, 1);
  EXPECT_DOUBLE_EQ(eleventh.map_at_100, 1.0 / 11);
  EXPECT_EQ(ScoreRanking(ranking, {{99, 1}}).recall_at_100, 1);
  EXPECT_EQ(ScoreRanking(ranking, {{100, 1}}).recall_at_100, 0);
  EXPECT_EQ(ScoreRanking({}, {{0, 1}}).map_at_100, 0);
  Judgements many;
  for (int64_t i = 0; i < 20; ++i) many.emplace_back(i, 1);
  EXPECT_DOUBLE_EQ(ScoreRanking(ranking, many).ndcg_at_10, 1);  // the ideal ends at 10, too
}

class RetrievalFolderTest : public testing::Test {
 protected:
  RetrievalFolderTest() {
    Write("corpus.jsonl",
        "{\"_id\": \"a\", \"title\": \"Red\", \"text\": \"apple apple\"}\n"
        "{\"_id\": 2, \"text\": \"A Pear\"}\n\n{\"_id\": \"c\", \"title\": \"\", \"text\": "
        "\"fig\"}\n");
    Write("queries.jsonl",
        "{\"_id\": \"q1\", \"text\": \"APPLE\"}\n{\"_id\": \"q2\", \"text\": \"pear fig\"}\n"
        "{\"_id\": \"q3\", \"text\": \"nothing\"}\n");
    Write("qrels.tsv", "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tgone\t1\nq2\t2\t1\nq9\ta\t1\n");
  }
  ~RetrievalFolderTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + name).parent_path());
    std::ofstream(folder_ + name) << text;
  }
  std::string ErrorOf() { return std::string(ReadRetrieval(folder_).status().message()); }
  const std::string folder_ = testing::TempDir() + "retrieval_" +
                              testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
};

TEST_F(RetrievalFolderTest, IsRead) {
  EXPECT_TRUE(IsRetrievalFolder(folder_));
  const auto data = ReadRetrieval(folder_);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->corpus.ids, ElementsAre("a", "2", "c"));
  EXPECT_THAT(data->corpus.texts, ElementsAre("Red apple apple", "A Pear", "fig"));
  EXPECT_THAT(data->queries.ids, ElementsAre("q1", "q2"));
  EXPECT_THAT(data->judged[0], ElementsAre(std::pair(0, 2), std::pair(-1, 1)));
  EXPECT_EQ(data->without_relevant, 1);
  ASSERT_EQ(data->notes.size(), 3);
  EXPECT_THAT(data->notes[0], HasSubstr("1 judgement of documents that the corpus lacks"));
  EXPECT_THAT(data->notes[1], HasSubstr("such as \"q9\""));
  EXPECT_THAT(data->notes[2], HasSubstr("1 of 3 queries"));
}

TEST_F(RetrievalFolderTest, Bm25RanksDocumentsWithWordsOfTheQuery) {
  const auto data = ReadRetrieval(folder_);
  ASSERT_TRUE(data.ok());
  const auto rankings = RankByBm25(*data);
  EXPECT_THAT(rankings[0], ElementsAre(0));
  EXPECT_THAT(rankings[1], ElementsAre(2, 1));  // the shorter one first
  const MetricResults results = ScoreRankings(data->judged, rankings);
  EXPECT_EQ(results.values[0].first, "ndcg_at_10");
  EXPECT_DOUBLE_EQ(results.values[1].second, 0.75);
}

// Two documents and a query as examples of a store, with the judgements of a third document.
TEST(VectorMetrics, RanksDocumentsByTheirCosines) {
  VectorMetrics metrics;
  const auto add = [&](std::vector<int32_t> labels, std::vector<float> vector) {
    Example text;
    text.labels = std::move(labels);
    metrics.Add(text, absl::MakeSpan(vector));
  };
  const Judgements judged = {{1, 2}, {-1, 1}};
  add({LabelOf(GroupRole::kDocument)}, {9, 3});
  add({LabelOf(GroupRole::kDocument)}, {1, 1});
  add({LabelOf(GroupRole::kQuery), 2, 2, 0, 1}, {0, 5});
  const RetrievalScores expected = ScoreRanking({1, 0}, judged);
  EXPECT_THAT(metrics.Results().values,
      ElementsAre(std::pair("ndcg_at_10", expected.ndcg_at_10), std::pair("mrr_at_10", 1.0),
          std::pair("recall_at_100", 0.5), std::pair("map_at_100", expected.map_at_100)));
}

TEST_F(RetrievalFolderTest, TakesTheFilesOfBeirAndTrecEval) {
  Write("qrels/test.tsv", "q3 0 c 1\n");
  const auto data = ReadRetrieval(folder_);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->queries.ids, ElementsAre("q3"));
}

TEST_F(RetrievalFolderTest, RefusesWhatIsWrong) {
  Write("qrels.tsv", "q1\ta\t0\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("no query of queries.jsonl has a relevant document"));
  Write("qrels.tsv", "q1\ta\tmuch\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("qrels.tsv:1: \"q1\\u{9}a\\u{9}much\": expected a query's id"));
  Write("qrels.tsv", "q1\ta\t1\nq1\ta\t2\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("qrels.tsv:2: "));
  EXPECT_THAT(ErrorOf(), HasSubstr("judged twice"));
  Write("qrels.tsv", "q1\ta\t99999999999999999999\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("whole number"));
  std::filesystem::remove(folder_ + "qrels.tsv");
  EXPECT_THAT(ErrorOf(), HasSubstr("qrels.tsv"));
  Write("queries.jsonl", "{\"_id\": \"q\"}\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("queries.jsonl:1: text: expected a string"));
  Write("corpus.jsonl", "{\"_id\": \"a\", \"text\": \"x\"}\n{\"_id\": \"a\", \"text\": \"y\"}\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("corpus.jsonl:2: _id: \"a\" occurs twice"));
  Write("corpus.jsonl", "{\"id\": \"a\", \"text\": \"x\"}\n");
  EXPECT_THAT(ErrorOf(), HasSubstr("corpus.jsonl:1: _id: expected a string"));
  Write("corpus.jsonl", "");
  EXPECT_THAT(ErrorOf(), HasSubstr("no documents"));
}

}  // namespace
}  // namespace cloze
