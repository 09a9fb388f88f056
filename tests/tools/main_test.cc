#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string UsageErrorOf(const std::string& arguments) {
  const RunResult result = RunCloze(arguments);
  EXPECT_EQ(result.exit, 2) << arguments;
  EXPECT_EQ(result.out, "");
  return result.err;
}

TEST(Main, ExplainsUnknownCommands) {
  EXPECT_EQ(UsageErrorOf("spce"),
      "cloze: unknown command \"spce\"; did you mean \"spec\"?\nTry `cloze --help`.\n");
  EXPECT_THAT(UsageErrorOf("spec chek f"),
      StartsWith("cloze spec: unknown command \"chek\"; did you mean \"check\"?\n"));
  EXPECT_THAT(UsageErrorOf("qqqqq"), StartsWith("cloze: unknown command \"qqqqq\"\n"));
  EXPECT_THAT(UsageErrorOf("\"$(printf '\\033[31m')\""), HasSubstr("\\u{1B}"));
}

TEST(Main, ExplainsUnknownFlags) {
  EXPECT_THAT(UsageErrorOf("--threds 3"),
      StartsWith("cloze: unknown flag --threds; did you mean \"--threads\"?\n"));
  EXPECT_THAT(UsageErrorOf("vocab --sise=3"),
      StartsWith("cloze vocab: unknown flag --sise; did you mean \"--size\"?\n"));
  EXPECT_THAT(UsageErrorOf("spec check f --st a=b"),
      StartsWith("cloze spec check: unknown flag --st; did you mean \"--set\"?\n"));
  EXPECT_THAT(UsageErrorOf("predict -m x"),
      StartsWith("cloze predict: unknown flag -m; did you mean \"--model\"?\n"));
  EXPECT_THAT(UsageErrorOf("predict --model a --model b"),
      StartsWith("cloze predict: --model: given 2 times: expected one\n"));
  EXPECT_THAT(UsageErrorOf("spec explain a b"),
      StartsWith("cloze spec explain: unexpected argument \"b\"\n"));
}

// Names of other programs.
TEST(Main, AnswersFlagsOfSettingsWithSet) {
  const auto answer = [](const std::string& flags) { return UsageErrorOf("finetune s " + flags); };
  for (const auto& [flags, set] : {std::pair("--epochs 3", "schedule.epochs=3"),
           std::pair("--num_train_epochs=3", "schedule.epochs=3"),
           std::pair("--lr 1e-4", "optimizer.learning_rate=1e-4"),
           std::pair("--learning-rate 1e-4", "optimizer.learning_rate=1e-4"),
           std::pair("--output runs/a", "output.directory=runs/a"),
           std::pair("--output_dir", "output.directory=..."),
           std::pair("--per_device_train_batch_size 8", "batch.examples=8"),
           std::pair("--model_name_or_path bert", "model.start_from=bert"),
           std::pair("--max_length 64", "TASK.max_tokens=64"), std::pair("--seed 7", "seed=7"),
           std::pair("--tokenizer vocab", "model.tokenizer=vocab")})
    EXPECT_THAT(answer(flags), HasSubstr(std::string("; did you mean --set ") + set + "?\n"));
  EXPECT_THAT(
      UsageErrorOf("predict --epochs 3"), StartsWith("cloze predict: unknown flag --epochs\n"))
      << "it reads no spec";
}

TEST(Main, ExplainsWhatIsMissingOrWrong) {
  EXPECT_THAT(UsageErrorOf(""), HasSubstr("a command is required"));
  EXPECT_THAT(UsageErrorOf("spec"), HasSubstr("subcommand is required"));
  EXPECT_THAT(UsageErrorOf("spec check"), HasSubstr("file is required"));
  EXPECT_THAT(UsageErrorOf("--threads -1 --version"), HasSubstr("--threads"));
  EXPECT_THAT(UsageErrorOf("tokenize --model x --input-format xml"),
      HasSubstr("expected text, csv, tsv, jsonl, fasttext or ids, found xml"));
  EXPECT_THAT(UsageErrorOf("generate --model x --temperature nan a"),
      HasSubstr("--temperature: expected 0 to 1000, found nan"));
  EXPECT_THAT(UsageErrorOf("generate --model x --top-k 1.5 a"),
      HasSubstr("expected an integer, 0 to 1000000000, found 1.5"));
}

TEST(Main, HelpsAtEachLevel) {
  for (const char* arguments :
      {"--help", "spec --help", "spec check -h", "vocab --help", "tokenize --help"}) {
    const RunResult result = RunCloze(arguments);
    EXPECT_EQ(result.exit, 0) << arguments;
    EXPECT_THAT(result.out, HasSubstr("Usage: cloze"));
  }
}

TEST(Main, PrintsVersionAndThreads) {
  const RunResult result = RunCloze("--threads 3 --version");
  EXPECT_EQ(result.exit, 0);
  EXPECT_THAT(result.out, StartsWith("cloze "));
  EXPECT_THAT(
      result.out, testing::ContainsRegex("\ncommit [0-9a-f]{12,}\\+?\n|\ncommit unknown\n"));
  EXPECT_THAT(result.out, testing::ContainsRegex("\nkernels [a-z0-9]+ [0-9]+, (GCC|Clang|Debian)"));
  EXPECT_THAT(result.out, HasSubstr("\nmatmul oneDNN "));
  EXPECT_THAT(result.out, HasSubstr("\nthreads 3\n"));
}

TEST(Main, AnIllegalInstructionIsAnErrorOfTheCpu) {
  const RunResult result = RunCloze(
      "vocab --text - --out v > /dev/null & sleep 0.5; kill -ILL $!; wait $!", "sleep 5 | ");
  EXPECT_EQ(result.exit, 69);
}

TEST(Main, EveryCommandTakesThreads) {
  for (const char* command : {"spec check", "spec explain", "bench train", "vocab", "pretrain",
           "finetune", "evaluate", "predict", "tag", "fill-mask", "encode", "tokenize", "verify"}) {
    EXPECT_EQ(RunCloze(std::string(command) + " --threads 1 --help").exit, 0) << command;
  }
}

// A file that is opened later must not take the place of a closed standard stream.
TEST(Main, ReadsAndWritesNoOtherFileForAClosedStream) {
  const std::string model = CLOZE_SOURCE_DIR "/tests/golden/masked_lm",
                    out = TemporaryFolder() + "/out";
  const RunResult closed_in =
      RunCloze("encode --model " + model + " --input-format ids --out " + out,
          "bash -c 'exec \"$@\" <&-' - ");
  EXPECT_EQ(closed_in.exit, 74);
  EXPECT_THAT(closed_in.err, HasSubstr("standard input: cannot read"));
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(RunCloze("--version", "bash -c 'exec \"$@\" >&-' - ").exit, 74);
}

TEST(Main, NoticesAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const RunResult result = RunCloze("spec explain >/dev/full");
  EXPECT_EQ(result.exit, 74);
  EXPECT_THAT(result.err, HasSubstr("standard output: cannot write"));
}

TEST(Main, EndsQuietlyWhenItsReaderGoes) {
  const RunResult result =
      RunCloze("spec explain", "bash -c 'set -o pipefail; (sleep 0.3; exec \"$@\") | true' - ");
  EXPECT_EQ(result.exit, 0);
  EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace cloze
