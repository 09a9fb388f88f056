// Question answering reads and answers as its model folder says.
#include <gtest/gtest.h>

#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "tasks/inference/predictor.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

class PredictQuestionsTest : public FilesTest {
 protected:
  PredictQuestionsTest() {
    record_.kind = Record::Kind::kPair;
    record_.text = "the cat";
    record_.text_pair = "a b cat";
    config_.family = FindFamily("bert");
    config_.hidden = 8, config_.heads = 2, config_.layers = 1, config_.intermediate = 16;
    config_.vocab = 70, config_.positions.count = 32;
    config_.head = HeadKind::kQuestionAnswering;
    EXPECT_TRUE(SaveTokenizer(*SmallTokenizer(), folder_, config_.positions.count).ok());
  }
  std::unique_ptr<Session> Open(const Model& model) {
    EXPECT_TRUE(SaveWeights(folder_, config_, model.params()).ok());
    auto session = Session::Open(folder_, DType::kF32);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  OrderedJson Answer(const Model& model) {
    const auto session = Open(model);
    const auto predictor =
        Predictor::Create(*session, {.command = "predict", .source = {.name = "test"}});
    EXPECT_TRUE(predictor.ok()) << predictor.status();
    OrderedJson answer;
    EXPECT_TRUE((*predictor)
                    ->Answer({&record_, 1},
                        [&](const Record&, const OrderedJson& json) {
                          answer = json;
                          return absl::OkStatus();
                        })
                    .ok());
    return answer;
  }
  // A model that gives <class> the largest logits: its row of hidden states is the output layer's,
  // and the final norm gives all rows the same length.
  std::unique_ptr<Model> ClassModel() {
    auto model = std::make_unique<Model>(config_, false);
    model->Initialize(1);
    const auto session = Open(*model);
    CutCounts cut;
    Query query{*EncodeRecord(record_, session->input(), &cut)};
    ParamStore& params = model->params();
    const Mat weight = params.value(params.Find("qa_outputs.weight"));
    EXPECT_TRUE(session
                    ->Hidden({&query, 1}, true,
                        [&](int64_t, int, ConstMat hidden) {
                          std::copy_n(hidden.f32(0), 8, weight.f32(0));
                          std::copy_n(hidden.f32(0), 8, weight.f32(1));
                        })
                    .ok());
    params.Changed();
    return model;
  }

  Record record_;
  ModelConfig config_;
};

TEST_F(PredictQuestionsTest, OnlyModelsOfUnanswerableQuestionsAnswerNone) {
  const auto model = ClassModel();
  EXPECT_TRUE(Answer(*model)["answer"].is_string());  // as folders from elsewhere
  config_.task_fields = {{"unanswerable", false}};
  EXPECT_TRUE(Answer(*model)["answer"].is_string());
  config_.task_fields = {{"unanswerable", true}};
  EXPECT_TRUE(Answer(*model)["answer"].is_null());
}

TEST_F(PredictQuestionsTest, WrongMembersOfTheFolderAreRefused) {
  Model model(config_, false);
  model.Initialize(1);
  config_.task_fields = {{"overlap", "half"}};
  const auto session = Open(model);
  ExpectError(
      Predictor::Create(*session, {.command = "predict", .source = {.name = "test"}}).status(),
      Exit::kData, "config.json: overlap: expected");
}

}  // namespace
}  // namespace cloze
