// Requests, routes and batches, without a network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "absl/strings/str_join.h"
#include "tests/tools/library/models.h"
#include "tools/serve/routes.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ServeTest : public ModelsTest {
 protected:
  // Opens the models with these names.
  void Open(const std::vector<std::string>& names, const std::vector<std::string>& adapters = {}) {
    std::vector<std::string> models;
    for (const std::string& name : names) models.push_back(Path(name));
    auto opened = ServedModels::Open(models, adapters, "f32", limits_, &metrics_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    models_ = *std::move(opened);
  }
  absl::StatusOr<Work> Read(const std::string& path, const std::string& body) {
    const auto route = FindRoute("POST", path);
    if (!route.ok()) return route.status();
    return ReadRequest(**route, {models_.get(), &metrics_, limits_, "1.2.3", "commit"}, body);
  }
  // Returns the body of the answer, or that of the refusal.
  std::string Answer(const std::string& path, const std::string& body) {
    absl::StatusOr<Work> work = Read(path, body);
    if (!work.ok()) return ReplyOf(work.status(), false).body;
    if (work->records.empty()) return *work->format({});
    std::promise<Outcomes> outcomes;
    Job job = {work->model.engine, work->operation, work->records,
        [&](Outcomes all) { outcomes.set_value(std::move(all)); }};
    EXPECT_TRUE(work->model.batcher->Submit(std::move(job)));
    const Outcomes all = outcomes.get_future().get();
    if (!all.ok()) return ReplyOf(all.status(), false).body;
    const auto text = work->format(*all);
    return text.ok() ? *text : ReplyOf(text.status(), false).body;
  }

  ServeLimits limits_;
  ServeMetrics metrics_;
  std::unique_ptr<ServedModels> models_;
};

TEST_F(ServeTest, RoutesAreFoundByMethodAndPath) {
  EXPECT_TRUE(FindRoute("POST", "/embed").ok());
  EXPECT_TRUE(FindRoute("HEAD", "/info").ok());
  EXPECT_EQ(ReplyOf(FindRoute("GET", "/embed").status(), false).status, 405);
  EXPECT_EQ(ReplyOf(FindRoute("POST", "/Embed").status(), false).status, 404);
  EXPECT_EQ(ReplyOf(FindRoute("POST", "/embed/").status(), false).status, 404);
  EXPECT_NE(*FindRoute("GET", "/"), *FindRoute("POST", "/"));
}

TEST_F(ServeTest, ErrorsHaveTheFormOfTheRoute) {
  const absl::Status wrong = Error(Exit::kData, "input: missing: expected \"text\"");
  EXPECT_EQ(ReplyOf(wrong, false).body,
      R"({"error": "input: missing: expected \"text\"", "error_type": "Validation"})");
  EXPECT_EQ(ReplyOf(wrong, true).body,
      R"({"error": {"message": "input: missing: expected \"text\"", "type": "invalid_request_error", "param": "input", "code": "invalid_value"}})");
  EXPECT_THAT(ReplyOf(Refuse(Refusal::kKey, "no key"), true).body, HasSubstr(R"("param": null)"));
  EXPECT_EQ(ReplyOf(Error(Exit::kLimit, "out of memory"), false).status, 424);
  EXPECT_EQ(ReplyOf(absl::InternalError("x"), false).status, 424);
}

TEST_F(ServeTest, ChoosesTheModelByNameOrKind) {
  Open({"classifier", "tagger", "plain"});
  EXPECT_EQ(Read("/predict", R"({"inputs": "a"})")->model.name, "classifier");
  EXPECT_EQ(Read("/tag", R"({"inputs": "a"})")->model.name, "tagger");
  EXPECT_EQ(Read("/embed", R"({"inputs": "a"})")->model.name, "plain");
  EXPECT_EQ(Read("/embed", R"({"inputs": "a", "model": "tagger"})")->model.name, "tagger");
  EXPECT_THAT(Answer("/fill-mask", R"({"inputs": "a"})"),
      HasSubstr(R"(expected one of \"classifier\", \"tagger\", \"plain\")"));
  EXPECT_THAT(Answer("/", R"({"inputs": "a"})"), HasSubstr("model: missing"));
  Open({"classifier"});
  EXPECT_EQ(Read("/embed", R"({"inputs": "a"})")->model.name, "classifier");
  EXPECT_THAT(Answer("/tag", R"({"inputs": "a"})"), HasSubstr("is of kind sequence_class"));
}

TEST_F(ServeTest, PredictsTextsPairsAndBatches) {
  Open({"classifier"});
  const std::string single = Answer("/predict", R"({"inputs": "the cat sat"})");
  EXPECT_EQ(Answer("/predict", R"({"inputs": ["the cat sat"]})"), single);
  EXPECT_EQ(Answer("/predict", R"({"inputs": [["the cat sat"], ["the cat sat"]]})"),
      "[" + single + ", " + single + "]");
  EXPECT_EQ(Answer("/", R"({"inputs": "the cat sat"})"), "[" + single + "]");
  EXPECT_NE(Answer("/predict", R"({"inputs": ["the cat", "sat"]})"), single);
  const Json scores = Json::parse(single);
  ASSERT_EQ(scores.size(), 3);
  EXPECT_GE(scores[0]["score"], scores[1]["score"]);
  const Json raw =
      Json::parse(Answer("/predict", R"({"inputs": "the cat sat", "raw_scores": true})"));
  EXPECT_NEAR(std::exp(raw[2]["score"].get<double>()), scores[2]["score"].get<double>(), 1e-6);
  EXPECT_THAT(Answer("/predict", R"({"inputs": [["a"], 3]})"), HasSubstr("Validation"));
  EXPECT_THAT(Answer("/rerank", R"({"query": "a", "texts": ["b"]})"), HasSubstr("3 labels"));
}

TEST_F(ServeTest, RefusesLongTextsUnlessTheyMayBeCut) {
  Open({"sentence"});
  std::string text;  // 12 tokens with those around it
  for (int i = 0; i < 10; ++i) text += "cat ";
  EXPECT_TRUE(Read("/embed", R"({"inputs": ")" + text + "\"}").ok());
  EXPECT_THAT(Answer("/embed", R"({"inputs": ")" + text + "cat\"}"),
      HasSubstr("inputs: 13 tokens: expected at most 12"));
  EXPECT_TRUE(Read("/embed", R"({"truncate": true, "inputs": ")" + text + "cat\"}").ok());
  EXPECT_THAT(Answer("/embed", R"({"inputs": [" "]})"), HasSubstr("Empty"));
}

TEST_F(ServeTest, EmbedsAsTheRequestSays) {
  Open({"sentence"});
  const auto length = [&](const std::string& members) {
    double sum = 0;
    const Json rows = Json::parse(Answer("/embed", R"({"inputs": "cat on)" + members + "}"));
    for (const Json& x : rows[0]) sum += x.get<double>() * x.get<double>();
    return sum;
  };
  EXPECT_NEAR(length("\""), 1, 1e-5);
  EXPECT_NEAR(length("\", \"dimensions\": 4"), 1, 1e-5);
  EXPECT_GT(std::abs(length("\", \"normalize\": false") - 1), 1e-3);
  EXPECT_NE(Answer("/embed", R"({"inputs": "on"})"),
      Answer("/embed", R"({"inputs": "on", "prompt_name": "query"})"));
  const std::string many = Answer("/v1/embeddings", R"({"input": ["cat", "on"]})");
  EXPECT_THAT(many, HasSubstr(R"("usage": {"prompt_tokens": 6, "total_tokens": 6})"));
}

TEST_F(ServeTest, AnswersQuestions) {
  WriteModel(Path("questions"), HeadKind::kQuestionAnswering);
  Open({"questions"});
  const Json answer = Json::parse(Answer(
      "/", R"({"inputs": {"question": "the cat", "context": "on the mat sat, the cats."}})"));
  const std::string context = "on the mat sat, the cats.";
  ASSERT_TRUE(answer["answer"].is_string()) << answer;
  const int64_t start = answer["start"], end = answer["end"];
  EXPECT_EQ(answer["answer"], context.substr(start, end - start));
  EXPECT_THAT(Answer("/", R"({"inputs": {"question": "the cat"}})"), HasSubstr("context"));
}

TEST_F(ServeTest, BatcherJoinsEqualOperationsUpToTheBudget) {
  limits_.batch_tokens = 1000;
  Open({"sentence"});
  const Work work = *Read("/embed", R"({"inputs": "the cat sat on the mat"})");
  const Work other = *Read("/embed", R"({"inputs": "the cat sat", "normalize": false})");
  std::vector<std::promise<Outcomes>> promises(120);
  for (size_t i = 0; i < promises.size(); ++i) {
    const Work& own = i % 3 == 0 ? other : work;
    Job job = {own.model.engine, own.operation, own.records,
        [&, i](Outcomes outcomes) { promises[i].set_value(std::move(outcomes)); }};
    ASSERT_TRUE(own.model.batcher->Submit(std::move(job)));
  }
  std::vector<Outcomes> all;
  for (auto& promise : promises) all.push_back(promise.get_future().get());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(all[i].ok());
    EXPECT_EQ((*all[i])[0].values, (*all[i % 3 == 0 ? 0 : 1])[0].values);
  }
  EXPECT_NE((*all[0])[0].values, (*all[1])[0].values);
  EXPECT_THAT(metrics_.Text(), HasSubstr("cloze_batch_next_size_sum 120\n"));
  EXPECT_EQ(metrics_.waiting, 0);
}

TEST_F(ServeTest, BatcherRefusesWhatDoesNotFitAndAnswersTheRest) {
  limits_.queue = 2;
  Open({"sentence"});
  const Work work = *Read("/embed", R"({"inputs": "cat"})");
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> answered = 0;
  int queued = 0;
  // The first answer holds up the thread of the batcher.
  for (int i = 0; i < 5; ++i) {
    Job job = {work.model.engine, work.operation, work.records, [&, gone](const Outcomes&) {
                 gone.wait();
                 ++answered;
               }};
    queued += work.model.batcher->Submit(std::move(job));
  }
  EXPECT_GE(queued, 2);
  EXPECT_LE(queued, 4);
  go.set_value();
  models_->Finish();
  Job late = {work.model.engine, work.operation, work.records, {}};
  EXPECT_FALSE(work.model.batcher->Submit(std::move(late)));
  EXPECT_EQ(answered, queued);
}

TEST_F(ServeTest, ReloadsFoldersAndKeepsWhatIsBroken) {
  Open({"classifier", "sentence"});
  const auto before = models_->All();
  WriteModel(Path("classifier"), HeadKind::kSequenceClassification, 2);
  std::filesystem::remove(JoinPath(Path("sentence"), "config.json"));
  testing::internal::CaptureStderr();
  models_->Reload();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("sentence: not loaded"));
  const auto after = models_->All();
  EXPECT_NE(before[0].engine, after[0].engine);
  EXPECT_EQ(before[1].engine, after[1].engine);
  EXPECT_EQ(metrics_.failed_reloads, 1);
}

TEST_F(ServeTest, OptionsOfModelsAreChecked) {
  const auto open = [&](const std::vector<std::string>& models,
                        const std::vector<std::string>& adapters) {
    return std::string(
        ServedModels::Open(models, adapters, "f32", limits_, &metrics_).status().message());
  };
  EXPECT_THAT(open({}, {}), HasSubstr("--model: missing"));
  EXPECT_THAT(open({"a=x", "a=y"}, {}), HasSubstr("two models have the name \"a\""));
  EXPECT_THAT(open({"a=x", "b=y"}, {"c=z"}), HasSubstr("MODEL:NAME=FOLDER"));
  EXPECT_THAT(open({"a=x"}, {"b:c=z"}), HasSubstr("unknown model"));
}

TEST(Metrics, HistogramsCountEachValueOnce) {
  ServeHistogram histogram(1, 2);
  for (const double value : {0.5, 1.0, 1.5, 1e30}) histogram.Observe(value);
  std::string out;
  histogram.Print("x", &out);
  EXPECT_THAT(out, HasSubstr("x_bucket{le=\"1\"} 2\nx_bucket{le=\"2\"} 3\n"));
  EXPECT_THAT(out, HasSubstr("x_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(out, HasSubstr("x_count 4\n"));
}

}  // namespace
}  // namespace cloze
