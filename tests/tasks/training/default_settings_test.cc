// Batch, length and rate that a run chooses, and keeps.
#include "tasks/training/default_settings.h"

#include "tasks/run/trainer_state.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

TaskSpec SpecOf(const std::string& text) {
  const auto loaded = ParseSpec(text, "test");
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? loaded->spec : TaskSpec();
}

constexpr char kClassifier[] = "sequence_classification {}";

// What is chosen for a spec with `more` and these facts.
TaskSpec Chosen(const RunFacts& facts, const std::string& more = kClassifier) {
  TaskSpec spec = SpecOf(more);
  ChooseSettings(facts, &spec);
  return spec;
}

constexpr RunFacts kSmall = {.rows = 1000, .tokens = 20'000, .hidden = 384, .pretrained = true};
constexpr RunFacts kLarge = {.rows = 60'000, .tokens = 1e6, .hidden = 384, .pretrained = true};

double Steps(const RunFacts& facts, const TaskSpec& spec) {
  return facts.rows / spec.batch().examples() * spec.schedule().epochs();
}

TEST(DefaultSettingsTest, FewRowsGetSmallBatchesAndManyEpochs) {
  const TaskSpec small = Chosen(kSmall), large = Chosen(kLarge);
  EXPECT_LT(small.batch().examples(), large.batch().examples());
  EXPECT_GT(small.schedule().epochs(), 2 * large.schedule().epochs());
  EXPECT_GE(Steps(kSmall, small), 500);
  EXPECT_LT(Steps(kSmall, small), Steps(kLarge, large));
  RunFacts labels = kSmall;
  labels.labels = 48;
  EXPECT_GT(Chosen(labels).schedule().epochs(), small.schedule().epochs());
  labels.pretrained = false;
  RunFacts two = labels;
  two.labels = 2;
  EXPECT_GT(Chosen(labels).schedule().epochs(), 1.5 * Chosen(two).schedule().epochs());
  // However few rows there are, the run ends.
  RunFacts tiny = kSmall;
  tiny.rows = 6;
  EXPECT_LE(Chosen(tiny).schedule().epochs(), 60);
}

TEST(DefaultSettingsTest, PairsFromRandomWeightsAreReadLessOften) {
  const std::string pairs = std::string(kClassifier) + " train { text_pair_field: \"b\" }";
  RunFacts facts = kSmall;
  EXPECT_EQ(Chosen(facts, pairs).schedule().epochs(), Chosen(facts).schedule().epochs());
  facts.pretrained = false;
  EXPECT_LT(Chosen(facts, pairs).schedule().epochs(), Chosen(facts).schedule().epochs());
}

TEST(DefaultSettingsTest, TheRateFollowsSizeAndStart) {
  const auto rate = [](int64_t hidden, bool pretrained, const std::string& more = "") {
    return Chosen({.rows = 1000, .tokens = 20'000, .hidden = hidden, .pretrained = pretrained},
        kClassifier + more)
        .optimizer()
        .learning_rate();
  };
  EXPECT_GT(rate(384, true), rate(768, true));
  EXPECT_GT(rate(128, false), rate(768, false));
  EXPECT_GT(rate(384, false), rate(384, true));
  EXPECT_GE(rate(768, true), 3e-5F);
  EXPECT_LE(rate(768, true), 6e-5F);
  EXPECT_GT(rate(384, true, " trainable { lora {} }"), 3 * rate(384, true));
  EXPECT_GT(rate(384, true, " trainable { head_only: true }"), 3 * rate(384, true));
  EXPECT_EQ(rate(384, true, " trainable { head_only: false }"), rate(384, true));
}

TEST(DefaultSettingsTest, SeveralLabelsTakeLonger) {
  EXPECT_GT(Chosen(kSmall, "sequence_classification { kind: MULTI_LABEL }").schedule().epochs(),
      Chosen(kSmall).schedule().epochs());
}

TEST(DefaultSettingsTest, WhatTheSpecSetsStays) {
  TaskSpec spec = SpecOf(
      "token_tagging {} batch { tokens: 500 } schedule { steps: 9 } optimizer { learning_rate: 1 "
      "}");
  const std::string before = spec.ShortDebugString();
  EXPECT_TRUE(ChooseSettings(kSmall, &spec).empty());
  EXPECT_EQ(spec.ShortDebugString(), before);
  // The length follows from the batch that is given: 20,000 tokens are 40 steps.
  const TaskSpec open = Chosen(kSmall, "token_tagging {} batch { tokens: 500 }");
  EXPECT_GE(40 * open.schedule().epochs(), 400);
  EXPECT_FALSE(open.batch().has_examples());
  // The clock is a length, too.
  EXPECT_FALSE(Chosen(kSmall, "token_tagging {} schedule { time_budget_minutes: 1 }")
                   .schedule()
                   .has_epochs());
  EXPECT_FALSE(Chosen(kSmall, "token_tagging {} optimizer { muon_rate: 1 }")
                   .optimizer()
                   .has_learning_rate());
}

TEST(DefaultSettingsTest, PretrainingAndRule1HaveFixedDefaults) {
  for (const char* text : {"masked_lm {}", "causal_lm {}", "token_tagging {} default_rule: 1"}) {
    TaskSpec spec = SpecOf(text);
    EXPECT_TRUE(ChooseSettings(kSmall, &spec).empty()) << text;
    const TaskSpec effective = EffectiveSpec(spec);
    EXPECT_EQ(effective.batch().tokens(), 8192) << text;
    EXPECT_EQ(effective.schedule().epochs(), 3) << text;
    EXPECT_EQ(effective.optimizer().learning_rate(), 5e-5F) << text;
  }
}

TEST(DefaultSettingsTest, ReasonsAreForTheUser) {
  TaskSpec spec = SpecOf(kClassifier);
  const std::string text = DescribeSettings(ChooseSettings(kLarge, &spec));
  EXPECT_THAT(text, HasSubstr("chosen: batch.examples 32 (60,000 rows); schedule.epochs "));
  EXPECT_THAT(text, HasSubstr("; optimizer.learning_rate 0.0001 (pretrained, hidden size 384)"));
}

class ChosenRunTest : public TrainerTest {
 protected:
  // A classifier of classes.tsv without batch, length and rate.
  LoadedSpec Open(const std::string& run, const std::string& more = "") {
    auto loaded = ParseSpec(
        absl::StrCat(NewEncoder(), " sequence_classification { max_tokens: 48 } train { files: \"",
            Path("classes.tsv"), "\" max_examples: 24 } batch { micro_tokens: 64 } output { ",
            "directory: \"", Path(run), "\" checkpoint_every_steps: 4 log_every_steps: 100 } ",
            more),
        "test");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *loaded;
  }
};

TEST_F(ChosenRunTest, TheChoiceIsPrintedRecordedAndKept) {
  ASSERT_TRUE(Train(Open("straight")).ok());
  EXPECT_THAT(progress_, HasSubstr("chosen: batch.examples 8 (24 rows); schedule.epochs "));
  const auto recorded = LoadSpec(Path("straight/spec.textproto"));
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->spec.batch().examples(), 8);
  EXPECT_GT(recorded->spec.schedule().epochs(), 3);
  EXPECT_GT(recorded->spec.optimizer().learning_rate(), 1e-4);
  EXPECT_EQ(recorded->spec.default_rule(), 2);
  EXPECT_EQ(ExitOf(Train(Open("pieces"), 5).status()), Exit::kInterrupted);
  ASSERT_TRUE(Train(Open("pieces")).ok());
  EXPECT_THAT(progress_, testing::Not(HasSubstr("chosen:")));
  EXPECT_EQ(Weights("pieces"), Weights("straight"));
  // Another rate is another run.
  LoadedSpec other = Open("pieces", "optimizer { learning_rate: 0.5 }");
  EXPECT_EQ(ExitOf(Train(other).status()), Exit::kMismatch);
}

TEST_F(ChosenRunTest, RunsOfEarlierVersionsKeepTheFixedDefaults) {
  const auto spec = [&](const std::string& run, const std::string& more) {
    LoadedSpec loaded = Open(run, more);
    EXPECT_TRUE(ApplyOverride(&loaded, "batch.tokens=128").ok());
    return loaded;
  };
  const auto straight = Train(spec("straight", "default_rule: 1"));
  ASSERT_TRUE(straight.ok()) << straight.status();
  EXPECT_THAT(progress_, testing::Not(HasSubstr("chosen:")));
  EXPECT_EQ(ExitOf(Train(spec("run", "default_rule: 1"), 4).status()), Exit::kInterrupted);
  for (const char* file : {"step-00000004/trainer.textproto", "spec.textproto"})
    Forget(Path("run"), file, "default_rule: 1");
  const auto resumed = Train(spec("run", ""));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->steps, straight->steps);
  EXPECT_EQ(Weights("run"), Weights("straight"));
  ASSERT_TRUE(Train(spec("new", "")).ok());
  EXPECT_THAT(progress_, HasSubstr("chosen: schedule.epochs"));
}

}  // namespace
}  // namespace cloze
