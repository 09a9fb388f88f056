#include "tasks/inference/session.h"

#include <cmath>

#include "encoder/families/families.h"
#include "encoder/folder/model_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

// A classifier of ids with fresh weights.
class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    ModelConfig config;
    config.family = FindFamily("bert");
    config.vocab = 300, config.hidden = 32, config.layers = 2, config.heads = 2,
    config.intermediate = 64, config.positions.count = 96;
    config.head = HeadKind::kSequenceClassification;
    config.pooler = true;
    config.labels = {"a", "b", "c"};
    Model model(config, false);
    model.Initialize(5);
    table_.assign(model.params().value(0).f32(),
        model.params().value(0).f32() + config.vocab * config.hidden);
    ASSERT_TRUE(SaveWeights(folder_, config, model.params()).ok());
    for (int i = 0; i < 200; ++i) {
      Query query;
      query.second = 1 + i * 37 % 90;
      for (int t = 0; t < query.second; ++t) query.ids.push_back(5 + (i * 31 + t * 7) % 295);
      for (int t = 0; t <= i % 3; ++t) query.rows.push_back(std::min<int32_t>(t, query.second - 1));
      queries_.push_back(std::move(query));
    }
  }
  std::unique_ptr<Session> Open(DType compute = DType::kF32) {
    auto session = Session::Open(folder_, compute);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  // Of each query all numbers that one pass gives; `hidden`: of the last layer instead of logits.
  static std::vector<std::vector<float>> Results(
      Session& session, absl::Span<const Query> queries, bool hidden) {
    std::vector<std::vector<float>> results;
    const auto put = [&](int64_t i, ConstMat m) {
      EXPECT_EQ(i, results.size()) << "not in order";
      EXPECT_EQ(m.rows, hidden ? queries[i].ids.size() : queries[i].rows.size());
      results.emplace_back();
      for (int64_t r = 0; r < m.rows; ++r)
        results.back().insert(results.back().end(), m.f32(r), m.f32(r) + m.cols);
    };
    const absl::Status status =
        hidden ? session.Hidden(queries, true, [&](int64_t i, int, ConstMat m) { put(i, m); })
               : session.Logits(queries, put);
    EXPECT_TRUE(status.ok()) << status;
    return results;
  }

  const TestFolder own_;
  const std::string folder_ = own_.path();
  std::vector<float> table_;
  std::vector<Query> queries_;
};

TEST_F(SessionTest, GivesEachQueryItsOwnResultsInOrder) {
  const auto session = Open();
  for (const bool hidden : {false, true}) {
    const auto together = Results(*session, queries_, hidden);
    ASSERT_EQ(together.size(), queries_.size());
    for (size_t i = 0; i < queries_.size(); i += 9) {
      const auto alone = Results(*session, absl::MakeSpan(queries_).subspan(i, 1), hidden);
      ASSERT_EQ(alone[0].size(), together[i].size());
      for (size_t n = 0; n < alone[0].size(); ++n)
        ASSERT_NEAR(alone[0][n], together[i][n], 1e-5) << i;
    }
    EXPECT_EQ(Results(*session, queries_, hidden), together);
  }
}

// Whether the layers are packed as they are read, or from their f32 values by the first pass.
TEST_F(SessionTest, PacksInt8LayersOfAllFamiliesWithTheSameBits) {
  for (const char* name : {"masked_lm", "masked_lm_pre_norm", "distilbert_masked_lm",
           "modernbert_masked_lm", "nomic_bert_masked_lm", "albert_masked_lm", "mpnet_masked_lm",
           "deberta_v3_masked_lm", "deberta_v2_conv", "electra_discriminator", "gpt2_causal_lm"}) {
    const std::string folder = absl::StrCat(CLOZE_SOURCE_DIR "/tests/golden/", name);
    auto packed = Session::Open(folder, DType::kF32, {}, true),
         lazy = Session::Open(folder, DType::kF32), f32 = Session::Open(folder, DType::kF32);
    ASSERT_TRUE(packed.ok() && lazy.ok() && f32.ok()) << packed.status();
    (*lazy)->UseInt8();
    Query query;
    query.ids = {3, 7, 1, 5, 9}, query.second = 5;
    const auto expected = Results(**lazy, {query, query}, true);
    EXPECT_EQ(Results(**packed, {query, query}, true), expected) << name;
    EXPECT_NE(Results(**f32, {query, query}, true), expected) << name;
    const ParamStore& params = (*packed)->model().params();
    for (ParamId id = 0; id < params.size(); ++id) {
      const Param& param = params.param(id);
      if (!IsInt8Layer(param, (*packed)->config()) || param.transposed) continue;
      EXPECT_THAT(params.values().subspan(param.offset, param.size()), testing::Each(0))
          << param.name;
    }
  }
}

TEST_F(SessionTest, RefusesIdsThatAreNotInTheVocabulary) {
  const auto session = Open();
  for (const int32_t id : {300, 301, -1}) {
    Query query;
    query.ids = {7, id, 9}, query.second = 3, query.rows = {0};
    const absl::Status status = session->Logits({query}, [](int64_t, ConstMat) {});
    EXPECT_EQ(ExitOf(status), Exit::kData) << id;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(absl::StrCat("token id ", id)));
  }
}

TEST_F(SessionTest, RefusesRowsAndTypesThatDoNotFit) {
  const auto session = Open();
  const auto exit = [&](int32_t second, std::vector<int32_t> rows) {
    Query query;
    query.ids = {7, 8, 9}, query.second = second, query.rows = std::move(rows);
    return ExitOf(session->Logits({query}, [](int64_t, ConstMat) {}));
  };
  EXPECT_EQ(exit(3, {0, 2}), Exit::kOk);
  EXPECT_EQ(exit(1, {0}), Exit::kOk);
  for (const auto& rows : std::vector<std::vector<int32_t>>{{}, {3}, {-1}, {1, 0}})
    EXPECT_EQ(exit(3, rows), Exit::kData);
  for (const int32_t second : {-1, 0, 4}) EXPECT_EQ(exit(second, {0}), Exit::kData);
}

TEST_F(SessionTest, GivesAllLayersWhenAsked) {
  const auto session = Open();
  std::vector<int> layers(queries_.size());
  EXPECT_TRUE(session
                  ->Hidden(queries_, false,
                      [&](int64_t i, int layer, ConstMat) { EXPECT_EQ(layer, layers[i]++); })
                  .ok());
  EXPECT_THAT(layers, testing::Each(3));
  const auto last = Results(*session, queries_, true);
  EXPECT_TRUE(session
                  ->Hidden(queries_, false,
                      [&](int64_t i, int layer, ConstMat m) {
                        if (layer < 2) return;
                        ASSERT_EQ(last[i].size(), m.rows * m.cols);
                        EXPECT_NEAR(last[i][0], m.f32(0)[0], 1e-5) << i;
                      })
                  .ok());
}

TEST_F(SessionTest, ReadsEmbeddingsAsTheyAreNeeded) {
  const auto session = Open();
  const auto row = [&](int id) {
    return session->model().params().value(session->model().backbone().word_embeddings()).f32(id);
  };
  const auto same = [&](int id) {
    return std::equal(row(id), row(id) + 32, table_.data() + id * 32);
  };
  EXPECT_FALSE(same(7));
  Query query;
  query.ids = {7, 9}, query.second = 2, query.rows = {0};
  EXPECT_TRUE(session->Logits({query}, [](int64_t, ConstMat) {}).ok());
  EXPECT_TRUE(same(7) && same(9));
  EXPECT_FALSE(same(8));
  const auto all = session->model().WordEmbeddings();
  ASSERT_TRUE(all.ok());
  EXPECT_TRUE(std::equal(table_.begin(), table_.end(), all->f32()));
}

}  // namespace
}  // namespace cloze
