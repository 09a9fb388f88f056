#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kSpecs = CLOZE_SOURCE_DIR "/tools/specs";

TEST(SpecCommand, FindsNoFaultInOurSpecs) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSpecs)) {
    const RunResult result = RunCloze("spec check --spec-only " + entry.path().string());
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_EQ(result.out, entry.path().string() + ": ok\n");
    ++count;
  }
  EXPECT_GE(count, 13);
}

TEST(SpecCommand, PrintsASpecThatPrintsTheSame) {
  const std::string file = TemporaryFolder() + "/effective.textproto";
  for (const auto& entry : std::filesystem::directory_iterator(kSpecs)) {
    const std::string first = RunCloze("spec print --set seed=7 " + entry.path().string()).out;
    EXPECT_THAT(first, HasSubstr("seed: 7\n"));
    std::ofstream(file) << first;
    EXPECT_EQ(RunCloze("spec print " + file).out, first);
  }
}

TEST(SpecCommand, RefusesWithPlaceAndExitCode) {
  const std::string file = TemporaryFolder() + "/bad.textproto";
  std::ofstream(file) << "schedule {\n  stepz: 3\n}\n";
  const RunResult result = RunCloze("spec check " + file);
  EXPECT_EQ(result.exit, 78);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("cloze: " + file + ":2:3: unknown field \"stepz\""));
  EXPECT_EQ(RunCloze("spec check /nonexistent.textproto").exit, 66);
  EXPECT_EQ(RunCloze("spec check " + kSpecs + "/sst2.textproto --set batch.tokens=1").exit, 78);
  EXPECT_EQ(RunCloze("spec check " + kSpecs + "/sst2.textproto --set batch.tokens").exit, 78);
}

TEST(SpecCommand, ChecksWhatTheSpecNames) {
  const std::string folder = TemporaryFolder() + "/", spec = folder + "s.textproto";
  std::ofstream(folder + "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  std::ofstream(folder + "train.csv") << "text,queue\na,x\n";
  std::ofstream(folder + "dev.csv") << "text,label\n\"a,x\n";
  std::ofstream(folder + "model.safetensors") << std::string("\2\0\0\0\0\0\0\0{}", 10);
  std::ofstream(folder + "config.json")
      << R"({"model_type": "bert", "vocab_size": 6, "hidden_size": 8, "num_hidden_layers": 1,
             "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 32,
             "type_vocab_size": 2})";
  std::ofstream(spec) << "model { start_from: '" << folder << "' }\n"
                      << "sequence_classification { max_tokens: 64 }\n"
                      << "train { files: '" << folder << "t*.csv' }\n"
                      << "validation { files: '" << folder << "dev.csv' }\n"
                      << "output { directory: 'run' }\n";
  const RunResult wrong = RunCloze("spec check " + spec);
  EXPECT_EQ(wrong.exit, 78);
  EXPECT_THAT(wrong.err, StartsWith("cloze: " + spec +
                                    ":2:27: sequence_classification.max_tokens: "
                                    "64, but the model has 32 positions\n" +
                                    folder + "train.csv:1: label_field: no column \"label\""));
  EXPECT_THAT(wrong.err, HasSubstr(folder + "dev.csv:2: column 1: the quote opened here"));
  EXPECT_THAT(RunCloze("spec check --set evaluation.metric=acuracy " + spec).err,
      HasSubstr("evaluation.metric: unknown metric \"acuracy\": expected one of accuracy, "));
  EXPECT_EQ(RunCloze("spec check --spec-only " + spec).exit, 0);
  const std::string set = " --set train.label_field=queue --set validation.files=" + folder +
                          "train.csv --set validation.label_field=queue "
                          "--set sequence_classification.max_tokens=32";
  const RunResult right = RunCloze("spec check " + spec + set);
  EXPECT_EQ(right.exit, 0) << right.err;
  EXPECT_EQ(right.out, spec + ": ok\n");
  const RunResult gone = RunCloze("spec check " + spec + set + " --set train.files=gone.csv");
  EXPECT_EQ(gone.exit, 66);
  EXPECT_THAT(gone.err, HasSubstr("train.files: gone.csv: cannot open"));
  const RunResult model = RunCloze("spec check " + spec + set + " --set model.tokenizer=gone");
  EXPECT_EQ(model.exit, 66);
  EXPECT_THAT(model.err, HasSubstr("model.tokenizer: gone: "));
}

TEST(SpecCommand, TakesOneValueForEachSet) {
  const RunResult result =
      RunCloze("spec print --set train.files=a,b --set seed=3 " + kSpecs + "/imdb.textproto");
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("files: \"a\"\n  files: \"b\"\n"));
}

TEST(SpecCommand, Explains) {
  EXPECT_THAT(RunCloze("spec explain batch.tokens").out,
      StartsWith("batch.tokens  (int64, default 8192, 8 to 1e+09 tokens)\n"));
  EXPECT_EQ(RunCloze("spec explain nonsense").exit, 2);
}

}  // namespace
}  // namespace cloze
