// `--plan` estimates memory and time without a run.
#include <filesystem>
#include <fstream>

#include "core/ops/matmul.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Plan : public testing::Test {
 protected:
  Plan() {
    std::ofstream(folder_ + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n";
    std::ofstream text(folder_ + "/d.txt"), classes(folder_ + "/c.tsv");
    classes << "text\tlabel\n";
    for (int i = 0; i < 300; ++i) {
      text << "a bb a a b a b b a b\n\n";
      classes << "a bb a " << (i % 2 ? "a\tx\n" : "b\ty\n");
    }
    text.close(), classes.close();
    Write("m",
        "masked_lm { max_tokens: 32 } train { files: 'd.txt' } schedule { epochs: 2 } batch { "
        "tokens: 300 }");
    Write("c",
        "sequence_classification { max_tokens: 32 } train { files: 'c.tsv' } validation { files: "
        "'c.tsv' } batch { examples: 30 }");
  }
  void Write(const std::string& name, const std::string& rest) {
    std::ofstream(folder_ + "/" + name)
        << "model { tokenizer: 'vocab.txt' encoder { preset: CUSTOM layers: 2 hidden: 32 heads: 2 "
           "intermediate: 64 max_positions: 32 } } output { directory: 'run' } "
        << rest;
  }
  RunResult Cloze(const std::string& arguments) {
    return RunCloze(arguments, "cd " + folder_ + "; TMPDIR=" + folder_ + " ");
  }
  size_t Files() { return std::distance(std::filesystem::directory_iterator(folder_), {}); }

  const std::string folder_ = TemporaryFolder();
};

TEST_F(Plan, TellsMemoryAndTimeAndLeavesNothing) {
  const size_t files = Files();
  const RunResult mlm = Cloze("pretrain --plan m");
  EXPECT_EQ(mlm.exit, 0) << mlm.err;
  for (const char* name : {"parameters", "weights", "optimizer", "packed weights", "activations",
           "scratch", "expected peak", "training data", "tokens/s", "time to finish"}) {
    EXPECT_THAT(mlm.out, HasSubstr(name)) << mlm.out;
  }
  EXPECT_THAT(mlm.out, ContainsRegex("micro_tokens +300\n"));
  EXPECT_THAT(mlm.out, ContainsRegex("steps +[0-9]+ +"));
  EXPECT_THAT(mlm.out, HasSubstr("measured: steps of this model on these data"));
  EXPECT_THAT(mlm.out, Not(HasSubstr("estimated by")));
  const RunResult text = Cloze("finetune --plan c --set schedule.epochs=3");
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out, ContainsRegex("steps +30 "));
  EXPECT_THAT(text.out, HasSubstr("of it for 3 evaluations"));
  const auto json =
      nlohmann::json::parse(Cloze("finetune --plan --json c --set schedule.epochs=3").out);
  EXPECT_EQ(json["steps"], 30);
  EXPECT_EQ(json["fits"], true);
  EXPECT_GT(json["memory_bytes"]["total"], json["memory_bytes"]["weights"]);
  EXPECT_EQ(Files(), files) << "neither run directory nor scratch files";
}

TEST_F(Plan, LimitsTextsAndNotWindows) {
  std::ofstream texts(folder_ + "/long.tsv");
  texts << "text\tlabel\n";
  for (int i = 0; i < 300; ++i) texts << "a b a b a b a b a b a b a b\t" << (i % 2 ? "x\n" : "y\n");
  texts.close();
  const auto sequences = [&](int most) -> double {
    const RunResult plan = Cloze(
        "finetune --plan --json c --set train.files=long.tsv --set "
        "sequence_classification.max_tokens=8 --set "
        "sequence_classification.long_texts=WINDOWS --set train.max_examples=" +
        std::to_string(most));
    EXPECT_EQ(plan.exit, 0) << plan.err;
    return nlohmann::json::parse(plan.out)["train"]["sequences"];
  };
  EXPECT_GT(sequences(300), 300);
  EXPECT_EQ(5 * sequences(60), sequences(300));
}

TEST_F(Plan, CountsTheTimeOfPairs) {
  std::ofstream pairs(folder_ + "/pairs.tsv");
  pairs << "good\tbad\n";
  for (int i = 0; i < 2000; ++i) pairs << "a bb a a b a b b a b\ta bb\n";
  pairs.close();
  const auto seconds = [&](const std::string& arguments) -> double {
    const RunResult plan =
        Cloze("pretrain --plan --json m --set validation.files=d.txt " + arguments);
    EXPECT_EQ(plan.exit, 0) << plan.err;
    return nlohmann::json::parse(plan.out)["seconds"];
  };
  EXPECT_GT(seconds("--set evaluation.pairs=pairs.tsv"), 5 * seconds(""));
}

// The model has 20,000 parameters or so: at 1 Mb/s a step of 2 ranks sends 0.6 s, of 4 ranks 1.5
// times that. local_steps sends three arrays once in that many steps. In bf16 nine tenths of the
// weights, half of what is sent, take half as long.
TEST_F(Plan, CountsTheTimeOfTheNetwork) {
  const auto seconds = [&](const std::string& arguments) {
    const RunResult plan = Cloze(
        "pretrain --plan m --set batch.micro_tokens=100 --set runtime.compute=F32 " + arguments);
    EXPECT_EQ(plan.exit, 0) << plan.err;
    const size_t at = plan.out.find("a step takes ");
    return at == std::string::npos ? 0 : std::stod(plan.out.substr(at + 13));
  };
  const double two = seconds("--ranks 2 --network 1Mb"), four = seconds("--ranks 4 --network 1Mb");
  EXPECT_NEAR(four / two, 1.5, 0.1);
  EXPECT_NEAR(seconds("--ranks 2 --network 1Mb --set distributed.local_steps=6") / two, 0.5, 0.1);
  if (MultipliesBf16()) {
    EXPECT_NEAR(seconds("--ranks 2 --network 1Mb --set runtime.compute=BF16") / two, 0.78, 0.05);
  }
  EXPECT_LT(seconds("--ranks 2 --network 10Gb"), two / 5);
  EXPECT_EQ(seconds(""), 0);
  for (const char* wrong : {"10", "Gb", "-1Gb", "1e999Gb", "10GB", "nanGb"}) {
    const RunResult plan = Cloze(std::string("pretrain --plan m --ranks 2 --network ") + wrong);
    EXPECT_EQ(plan.exit, 2) << wrong;
    EXPECT_THAT(plan.err, HasSubstr("expected bits per second, for example 10Gb")) << wrong;
  }
  EXPECT_THAT(Cloze("pretrain m --ranks 2").err, HasSubstr("expected --plan"));
  EXPECT_THAT(Cloze("pretrain --plan m --network 1Gb").err, HasSubstr("--network needs --ranks"));
}

TEST_F(Plan, KnowsWhatARunDoes) {
  ASSERT_EQ(Cloze("finetune c --set schedule.epochs=1").exit, 0);
  const RunResult again = Cloze("finetune --plan c --set schedule.epochs=1");
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, ContainsRegex("steps +10 "));
  EXPECT_THAT(Cloze("finetune c --set schedule.epochs=1").out, HasSubstr("\"steps\": 10,"));
}

TEST_F(Plan, EstimatesLargeFilesByTheirBeginning) {
  std::ofstream text(folder_ + "/d.txt", std::ios::app);
  for (int i = 0; i < 300000; ++i) text << "a bb a a b a b b a b\n\n";
  text.close();
  const RunResult large = Cloze("pretrain --plan m");
  EXPECT_EQ(large.exit, 0) << large.err;
  EXPECT_THAT(large.out, HasSubstr("estimated by 2.1 of 6.6 MB"));
  EXPECT_THAT(large.out, ContainsRegex("training data +3.[89]"))
      << large.out;  // 300,300 documents of 11 tokens, <class> and <sep>
}

TEST_F(Plan, RefusesWhatTheRunWouldRefuse) {
  const RunResult small = Cloze("pretrain --plan m --set runtime.memory_limit_mb=1");
  EXPECT_EQ(small.exit, 77);
  EXPECT_THAT(small.out, HasSubstr("expected peak"));
  EXPECT_THAT(small.out, Not(HasSubstr("time to finish")));
  EXPECT_THAT(small.err, HasSubstr("batch.micro_tokens: 32 tokens in a pass need"));
  EXPECT_EQ(Cloze("finetune --plan m").exit, 78);
  EXPECT_EQ(Cloze("pretrain --plan m --set train.files=no.txt").exit, 66);
  EXPECT_THAT(Cloze("pretrain --plan m --set schedule.time_budget_minutes=2").out,
      HasSubstr("within the time budget"));
}

}  // namespace
}  // namespace cloze
