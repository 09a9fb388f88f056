// Trains decoders with `cloze pretrain` and continues texts with them.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kDecoder = CLOZE_SOURCE_DIR "/tests/golden/gpt2_causal_lm";

class GenerateTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new std::string(TemporaryFolder());
    std::ofstream text(Path("text.txt"));
    for (int i = 0; i < 60; ++i) text << "the cat sat on the mat\n\nthe dog ran to the sea\n\n";
    text.close();
    std::ofstream(Path("spec")) << R"(
      model { encoder { architecture: GPT2 preset: CUSTOM layers: 2 hidden: 32 heads: 2
              intermediate: 64 max_positions: 32 } tokenizer: ")"
                                << Path("vocab") << R"(" }
      causal_lm { max_tokens: 32 } train { files: ")"
                                << Path("text.txt") << R"(" } validation { files: ")"
                                << Path("text.txt") << R"(" }
      batch { tokens: 256 } schedule { steps: 60 } optimizer { learning_rate: 1e-2 }
      output { directory: ")" << Path("run")
                                << "\" }\n";
    ASSERT_EQ(RunCloze("vocab --kind bpe --size 290 --min-count 1 --text " + Path("text.txt") +
                       " --out " + Path("vocab"))
                  .exit,
        0);
    const RunResult trained = RunCloze("pretrain " + Path("spec"));
    ASSERT_EQ(trained.exit, 0) << trained.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::string Path(const std::string& name) { return *folder_ + "/" + name; }
  static RunResult Generate(const std::string& options, const std::string& before = "") {
    return RunCloze("generate --model " + Path("run") + " " + options, before);
  }

  static inline std::string* folder_ = nullptr;
};

TEST_F(GenerateTest, GoesOnAfterWrongLines) {
  std::ofstream(Path("mixed.jsonl")) << "{\"text\": \"the cat\"}\n{\"text\": 5, \"id\": 7}\n"
                                        "{\"text\": \"the dog\"}\n";
  const std::string input = "--input " + Path("mixed.jsonl") + " --max-new-tokens 2";
  EXPECT_EQ(Generate(input).exit, 65);
  const RunResult text = Generate(input + " --on-error line");
  EXPECT_EQ(text.exit, 65);
  EXPECT_THAT(text.err, HasSubstr("mixed.jsonl: 1 invalid line"));
  const size_t first = text.out.find('\n');
  EXPECT_THAT(text.out.substr(first), StartsWith("\n\nthe dog"));
  EXPECT_THAT(Generate(input + " --on-error line --output-format jsonl").out,
      HasSubstr("\n{\"id\": 7, \"line\": 2, \"error\": "));
}

TEST_F(GenerateTest, EachLineChoosesItsAdapter) {
  std::ofstream text(Path("sea.txt"));
  for (int i = 0; i < 60; ++i) text << "the cat ran to the sea\n\n";
  text.close();
  std::ofstream(Path("sea_spec")) << "model { start_from: '" << Path("run") << R"(' }
      causal_lm { max_tokens: 32 } train { files: ')"
                                  << Path("sea.txt")
                                  << R"(' } batch { tokens: 256 } schedule { steps: 60 }
      trainable { lora { rank: 4 } } optimizer { learning_rate: 2e-2 }
      output { directory: ')" << Path("sea")
                                  << "' }\n";
  const RunResult trained = RunCloze("pretrain " + Path("sea_spec"));
  ASSERT_EQ(trained.exit, 0) << trained.err;
  const std::string options = "--input-format jsonl --adapter sea=" + Path("sea") + " ";
  EXPECT_EQ(Generate(options,
                R"(printf '{"text": "the cat", "adapter": "sea"}\n{"text": "the cat"}\n' | )")
                .out,
      "the cat ran to the sea\nthe cat sat on the mat\n");
  const RunResult unknown =
      Generate(options, R"(printf '{"text": "the cat", "adapter": "sae"}\n' | )");
  EXPECT_EQ(unknown.exit, 65);
  EXPECT_THAT(unknown.err, HasSubstr("one of sea"));
}

TEST_F(GenerateTest, AQuantizedDecoderContinuesTexts) {
  for (const char* data : {"--data ", "--texts "}) {
    const std::string out = Path(std::string("int8") + data[2]);
    const RunResult quantized = RunCloze("quantize --max-loss 5 --model " + Path("run") +
                                         " --out " + out + " " + data + Path("text.txt"));
    ASSERT_EQ(quantized.exit, 0) << quantized.err;
    const json result = json::parse(quantized.out);
    EXPECT_EQ(result["metric"], data[2] == 'd' ? "loss" : "cosine");
    EXPECT_EQ(result["kept_layers"], json::array());
    EXPECT_LT(std::filesystem::file_size(out + "/model.safetensors"),
        std::filesystem::file_size(Path("run") + "/model.safetensors") / 2);
    const RunResult text = RunCloze("generate --model " + out, "echo the cat | ");
    EXPECT_EQ(text.out, "the cat sat on the mat\n") << text.err;
  }
}

TEST_F(GenerateTest, OneSignalEndsTheWaitForInput) {
  const std::string idle = Path("idle");
  const RunResult waits = RunCloze("generate --model " + Path("run") + " < " + idle,
      "mkfifo " + idle + "; sleep 20 > " + idle + " 2> /dev/null & timeout --preserve-status 2 ");
  EXPECT_EQ(waits.exit, 75) << waits.err;
}

TEST_F(GenerateTest, ContinuesWhatItHasLearned) {
  EXPECT_EQ(Generate("'the cat'").out, "the cat sat on the mat\n");
  EXPECT_EQ(Generate("--beams 3", "printf 'the dog\\nthe cat\\n' | ").out,
      "the dog ran to the sea\nthe cat sat on the mat\n");
  const json line = json::parse(Generate("--output-format jsonl 'the dog'").out);
  EXPECT_EQ(line["generated"], " ran to the sea");
  EXPECT_EQ(line["text"], "the dog");
  EXPECT_EQ(Generate("--stop ' to' 'the dog'").out, "the dog ran\n");
  std::ofstream(Path("prompts.txt")) << "the dog\n";
  EXPECT_EQ(
      Generate("--input " + Path("prompts.txt") + " --stop sea --stop to").out, "the dog ran \n");
}

TEST_F(GenerateTest, DrawsTheSameTextWithAnyNumberOfThreads) {
  const std::string draw = "--temperature 2 --top-k 50 --top-p 0.9 --seed 3 --threads ";
  const RunResult one = Generate(draw + "1 the 'the cat'"),
                  four = Generate(draw + "4 the 'the cat'");
  EXPECT_EQ(one.out, four.out);
  EXPECT_THAT(one.out, StartsWith("the"));
}

TEST_F(GenerateTest, RunsAreVerifiedEvaluatedAndTrainedOn) {
  EXPECT_EQ(RunCloze("verify " + Path("run")).exit, 0);
  const RunResult evaluated =
      RunCloze("evaluate --model " + Path("run") + " --data " + Path("text.txt"));
  EXPECT_EQ(evaluated.exit, 0) << evaluated.err;
  EXPECT_LT(json::parse(evaluated.out)["perplexity"], 3);
  EXPECT_THAT(RunCloze("pretrain --plan " + Path("spec")).out, HasSubstr("parameters"));
  std::ofstream(Path("lora.spec")) << "model { start_from: \"" << Path("run")
                                   << "\" } causal_lm { max_tokens: 32 } train { files: \""
                                   << Path("text.txt") << "\" } batch { tokens: 256 }"
                                   << " schedule { steps: 3 } trainable { lora {} } output {"
                                   << " directory: \"" << Path("lora") << "\" }\n";
  const RunResult trained = RunCloze("pretrain " + Path("lora.spec"));
  ASSERT_EQ(trained.exit, 0) << trained.err;
  EXPECT_THAT(
      RunCloze("generate --model " + Path("lora") + " 'the cat'").out, StartsWith("the cat"));
}

TEST_F(GenerateTest, TellsWhatIsWrong) {
  const auto error = [](const std::string& options, const std::string& before = "") {
    const RunResult result = RunCloze("generate " + options, before);
    EXPECT_NE(result.exit, 0);
    return result.err;
  };
  const std::string model = "--model " + Path("run") + " ";
  EXPECT_THAT(error(model, "yes the cat | head -n 40 | tr '\\n' ' ' | "),
      HasSubstr("standard input:1: a prompt of "));
  EXPECT_THAT(error(model + "--beams 1000 a"), HasSubstr("the tokens of the vocabulary"));
  EXPECT_THAT(error("--model " CLOZE_SOURCE_DIR "/tests/golden/release_0.1/runs/post_norm a"),
      HasSubstr("has no head for causal_lm"));
  EXPECT_THAT(error("--model " + kDecoder + " a"), HasSubstr("no tokenizer: expected"));
  EXPECT_THAT(RunCloze("predict --model " + Path("run"), "echo a | ").err,
      HasSubstr("use `cloze generate`"));
  EXPECT_THAT(
      RunCloze("pretrain " + Path("spec") +
               " --set model.encoder.architecture=BERT --set output.directory=" + Path("bert"))
          .err,
      HasSubstr("the model is an encoder: expected model.encoder.architecture GPT2"));
}

TEST_F(GenerateTest, ContinuesIds) {
  const RunResult result = RunCloze("generate --model " + kDecoder +
                                        " --input-format ids --output-format ids --end-token 119 "
                                        "--max-new-tokens 2",
      "echo 5 7 9 | ");
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("5 7 9 "));
}

TEST_F(GenerateTest, AnswersTheLinesBeforeAWrongOne) {
  const RunResult result = Generate("--input-format jsonl --max-new-tokens 1",
      R"(printf '{"text": "the"}\n{"text": "the", "adapter": "x"}\n' | )");
  EXPECT_EQ(result.exit, 65);
  EXPECT_THAT(result.err, HasSubstr("standard input:2: \"adapter\": unknown adapter x"));
  EXPECT_THAT(result.out, StartsWith("the"));
}

// The lowest temperature is greedy search.
TEST_F(GenerateTest, AnswersEmptyLinesByEmptyLines) {
  std::ofstream(Path("gaps.txt")) << "the cat\n\nthe dog\n";
  const std::string input = "--input " + Path("gaps.txt") + " --max-new-tokens 2";
  const RunResult text = Generate(input);
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_THAT(text.out.substr(text.out.find('\n')), StartsWith("\n\nthe dog"));
  EXPECT_THAT(text.err, HasSubstr("empty: 1 text, whose answer is empty"));
  EXPECT_THAT(Generate(input + " --output-format jsonl").out,
      HasSubstr("\n{\"text\": \"\", \"generated\": \"\", \"ids\": []}\n"));
  EXPECT_THAT(Generate(input + " --output-format ids").out, HasSubstr("\n\n"));
}

TEST_F(GenerateTest, LowTemperaturesDoNotOverflow) {
  EXPECT_EQ(Generate("--temperature 1e-30 --max-new-tokens 4 the").out,
      Generate("--max-new-tokens 4 the").out);
}

// A folder with an encoder: sources in, targets out.
TEST_F(GenerateTest, MapsSourcesToTargets) {
  const auto run = [](const std::string& command, const std::string& options,
                       const std::string& ids) {
    return RunCloze(command + " --model " CLOZE_SOURCE_DIR "/tests/golden/bart " + options,
        "echo " + ids + " | ");
  };
  const std::string ids = "--input-format ids --output-format ids --max-new-tokens 3 ",
                    source = "2 117 113 44 57";
  EXPECT_EQ(run("generate", ids, source).out, run("generate", ids + "--beams 1", source).out);
  EXPECT_THAT(run("generate", ids + "--beams 4", source).out, StartsWith("3 "));
  EXPECT_EQ(run("generate", ids, "").out, "\n");
  const auto fails = [&](const std::string& options, const std::string& source,
                         const std::string& message) {
    const RunResult result = run("generate", ids + options, source);
    EXPECT_NE(result.exit, 0);
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  std::string longer = "2";
  for (int i = 0; i < 48; ++i) longer += " 7";
  fails("", longer, "ids: 49 tokens: expected 1 to 48");
  fails("--beams 121", source, "beams 121: expected at most 120");
  EXPECT_THAT(run("encode", "--input-format ids --out -", source).err,
      HasSubstr("is an encoder-decoder: expected an encoder (`cloze generate` runs this model)"));
}

}  // namespace
}  // namespace cloze
