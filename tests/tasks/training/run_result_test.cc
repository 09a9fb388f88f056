// What a run says at its end, and the methods it is compared with.
#include "tasks/training/run_result.h"

#include "core/base/file.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class RunResultTest : public TrainerTest {
 protected:
  // Trains on `data`, validates on `validation`, and returns result.json.
  Json ResultOf(const std::string& task, const std::string& data, const std::string& validation,
      const std::string& fields = "", int steps = 30) {
    const std::string run = absl::StrCat("run", runs_++);
    LoadedSpec spec = Spec(NewEncoder() + task, data, run, steps);
    spec.spec.mutable_validation()->add_files(Path(validation));
    for (const char* part : {"train.", "validation."}) {
      if (fields.empty()) continue;
      EXPECT_TRUE(ApplyOverride(&spec, fields, "test", part).ok());
    }
    const auto summary = Train(spec);
    EXPECT_TRUE(summary.ok()) << summary.status();
    const auto result = ParseJson(Read(Path(run + "/result.json")), "result.json");
    return result.ok() ? *result : Json();
  }

 private:
  int runs_ = 0;
};

TEST_F(RunResultTest, OneLabel) {
  // In classes.tsv, "the" decides.
  Write("other.tsv", "text\tlabel\nthe cat\tcat\nthe mat\tcat\nthe sat\tcat\na dog\tdog\n");
  const Json result =
      ResultOf(" sequence_classification { max_tokens: 48 }", "classes.tsv", "other.tsv");
  EXPECT_EQ(result["metric"], "accuracy");
  EXPECT_EQ(result["examples"], 4);
  EXPECT_EQ(result["unit"], "rows");
  // Both labels are equally frequent; the first one counts.
  EXPECT_EQ(result["baselines"]["most_frequent"], 0.75);
  EXPECT_EQ(result["baselines"]["words"], 1);
  EXPECT_THAT(
      progress_, HasSubstr(absl::StrCat("result: ", result["sentence"].get<std::string>())));
  EXPECT_THAT(progress_, HasSubstr(" % of 4 held-out rows (most frequent class 75 %, words alone "
                                   "100 %)"));
}

TEST_F(RunResultTest, TheSameAnswerForEveryTextIsAWarningInTheLastLine) {
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", "run", 3);
  spec.spec.mutable_validation()->add_files(Path("classes.tsv"));
  spec.spec.mutable_optimizer()->set_learning_rate(1e-8);
  ASSERT_TRUE(Train(spec).ok());
  std::vector<std::string> lines = absl::StrSplit(progress_, '\n', absl::SkipEmpty());
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines.back(), HasSubstr("for every text: it has not learned from the texts"));
  EXPECT_THAT(lines.back(), HasSubstr("the run has only 3 steps: train for more, schedule.steps"));
  const auto result = ParseJson(Read(Path("run/result.json")), "result.json");
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(lines.back(), HasSubstr((*result)["warning"].get<std::string>()));
}

TEST_F(RunResultTest, SeveralLabelsAndNumbersAndTags) {
  std::string several = "text\tlabel\n", numbers = several;
  for (int i = 0; i < 40; ++i) {
    several += i % 4 == 0 ? "the cat sat\tcat\n" : "a dog ran\tcat,dog\n";
    numbers += i % 2 == 0 ? "the cat sat\t1.5\n" : "a dog ran\t3\n";
  }
  Write("several.tsv", several);
  Write("numbers.tsv", numbers);
  const Json labels = ResultOf(" sequence_classification { max_tokens: 48 kind: MULTI_LABEL }",
      "several.tsv", "several.tsv");
  EXPECT_EQ(labels["metric"], "micro_f1");
  EXPECT_EQ(labels["baselines"]["words"], 1);
  // All texts get both labels: 70 of 80 are right, and none is missed.
  EXPECT_NEAR(labels["baselines"]["most_frequent"].get<double>(), 2 * 70.0 / (80 + 70), 1e-9);
  const Json number = ResultOf(
      " sequence_classification { max_tokens: 48 kind: REGRESSION }", "numbers.tsv", "numbers.tsv");
  EXPECT_EQ(number["metric"], "pearson");
  EXPECT_TRUE(number["baselines"]["most_frequent"].is_null());
  EXPECT_NEAR(number["baselines"]["words"].get<double>(), 1, 1e-6);
  const Json tags = ResultOf(" token_tagging { max_tokens: 24 }", "tags.conll", "tags.conll");
  EXPECT_EQ(tags["metric"], "accuracy");
  EXPECT_EQ(tags["examples"], 210);
  EXPECT_EQ(tags["unit"], "words");
  EXPECT_NEAR(tags["baselines"]["most_frequent"].get<double>(), 60 / 210.0, 1e-9);
  EXPECT_THAT(tags["sentence"].get<std::string>(), HasSubstr("each word's most frequent tag"));
}

TEST_F(RunResultTest, PretrainingHasNone) {
  LoadedSpec spec = Spec(Mlm(), "text.txt", "run", 3);
  spec.spec.mutable_validation()->add_files(Path("text.txt"));
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_FALSE(PathExists(Path("run/result.json")));
  EXPECT_THAT(progress_, testing::Not(HasSubstr("result:")));
}

TEST(LearningAdviceTest, StepsComeBeforeTheRate) {
  TaskSpec spec;
  spec.mutable_sequence_classification();
  spec.mutable_schedule()->set_epochs(2);
  const std::string few = LearningAdvice(spec, 60);
  EXPECT_LT(few.find("schedule.epochs: 34"), few.find("optimizer.learning_rate"));
  EXPECT_THAT(few, HasSubstr("only 60 steps"));
  EXPECT_THAT(LearningAdvice(spec, 5000), testing::StartsWith("lower optimizer.learning_rate"));
  EXPECT_THAT(PlateauNote(0.7, 0.69, spec, 2, 60), HasSubstr("there: the run has only 60 steps"));
  EXPECT_THAT(PlateauNote(0.7, 0.69, spec, 2, 6000), HasSubstr("there: lower optimizer.learning"));
}

}  // namespace
}  // namespace cloze
