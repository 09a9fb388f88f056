#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

const std::string kRuns = CLOZE_SOURCE_DIR "/tests/golden/release_0.1/runs/";

class Quantize : public ::testing::Test {
 protected:
  Quantize() { std::ofstream(texts_) << "the sea was calm\na good day\nno one came\nwhat is it\n"; }
  RunResult Run(const std::string& run, const std::string& more) {
    return RunCloze("quantize --model " + kRuns + run + " --out " + out_ + " " + more);
  }
  json Config() { return json::parse(std::ifstream(out_ + "/config.json")); }

  const std::string folder_ = TemporaryFolder();
  const std::string out_ = folder_ + "/int8", texts_ = folder_ + "/texts.txt";
};

TEST_F(Quantize, WritesAFolderThatAllCommandsRead) {
  const RunResult run = Run("classifier", "--max-loss 100 --texts " + texts_);
  ASSERT_EQ(run.exit, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result["metric"], "equal_answers");
  EXPECT_GE(result["equal_answers"], 0.5);
  EXPECT_EQ(result["loss_by_layer"].size(), Config()["num_hidden_layers"]);
  EXPECT_EQ(Config()["quantization_config"]["quant_method"], "compressed-tensors");
  EXPECT_THAT(
      Config()["quantization_config"]["ignore"], ::testing::Contains("classifier.out_proj"));
  EXPECT_LT(fs::file_size(out_ + "/model.safetensors"),
      fs::file_size(kRuns + "classifier/model.safetensors") * 3 / 4);
  const std::string in = " < " + texts_;
  const RunResult written = RunCloze("predict --model " + out_ + in);
  ASSERT_EQ(written.exit, 0) << written.err;
  // The same as quantizing when the model is read, up to the scales' last bits and the embeddings.
  const RunResult original =
      RunCloze("predict --compute int8 --model " + kRuns + "classifier" + in);
  std::istringstream a(written.out), b(original.out);
  for (std::string left, right; std::getline(a, left) && std::getline(b, right);)
    EXPECT_NEAR(json::parse(left)["score"], json::parse(right)["score"], 0.05);
  EXPECT_EQ(RunCloze("predict --compute f32 --model " + out_ + in).exit, 0);
  EXPECT_EQ(RunCloze("encode --out - --model " + out_ + in).exit, 0);
  EXPECT_EQ(RunCloze("verify " + out_).exit, 0);
}

// A tagger with a CRF, several labels, numbers, pairs, windows and masked tokens.
TEST_F(Quantize, TakesModelsOfAllTasks) {
  const auto quantize = [&](const std::string& run, const std::string& texts) {
    fs::remove_all(out_);
    const RunResult result = Run(run, "--max-loss 5 --texts " + texts);
    EXPECT_EQ(result.exit, 0) << run << ": " << result.err;
    return result.exit == 0 ? json::parse(result.out)["metric"].get<std::string>() : "";
  };
  const std::string pair = folder_ + "/pair.jsonl";
  std::ofstream(pair) << "{\"text\": \"a good day\", \"text_pair\": \"no one\"}\n";
  EXPECT_EQ(quantize("pairs", pair), "equal_answers");
  for (const char* run : {"tagger", "several", "windows", "roberta_classifier"})
    EXPECT_EQ(quantize(run, texts_), "equal_answers") << run;
  for (const char* run : {"regression", "post_norm"})
    EXPECT_EQ(quantize(run, texts_), "cosine") << run;
}

TEST_F(Quantize, AdaptersWorkOnTheirOwnBase) {
  const std::string adapter = " --adapter " + kRuns + "lora < " + texts_;
  ASSERT_EQ(Run("pre_norm", "--texts " + texts_).exit, 0);
  const RunResult int8 = RunCloze("predict --model " + out_ + adapter);
  ASSERT_EQ(int8.exit, 0) << int8.err;
  const RunResult f32 = RunCloze("predict --model " + kRuns + "pre_norm" + adapter);
  std::istringstream a(int8.out), b(f32.out);
  for (std::string left, right; std::getline(a, left) && std::getline(b, right);)
    EXPECT_NEAR(json::parse(left)["score"], json::parse(right)["score"], 0.02);
  fs::remove_all(out_);
  ASSERT_EQ(Run("classifier", "--texts " + texts_).exit, 0);
  const RunResult other = RunCloze("predict --model " + out_ + adapter);
  EXPECT_EQ(other.exit, 76);
  EXPECT_THAT(other.err, HasSubstr("is an adapter for another base"));
}

TEST_F(Quantize, RefusesToTrainOrQuantizeAgain) {
  ASSERT_EQ(Run("classifier", "--max-loss 100 --texts " + texts_).exit, 0);
  const RunResult again =
      RunCloze("quantize --model " + out_ + " --out " + out_ + "2 --texts " + texts_);
  EXPECT_EQ(again.exit, 76);
  EXPECT_THAT(again.err, HasSubstr("is quantized already"));
  const RunResult training =
      RunCloze("finetune " + kRuns + "classifier/spec.textproto --set " +
               "model.start_from=" + out_ + " --set output.directory=" + folder_ + "/run");
  EXPECT_EQ(training.exit, 76) << training.err;
  EXPECT_THAT(training.err, HasSubstr("expected a model with floating-point weights"));
}

TEST_F(Quantize, RefusesWhatLosesMore) {
  const RunResult run = Run("post_norm",
      "--max-loss 0 --data " CLOZE_SOURCE_DIR "/tests/golden/release_0.1/data/text.txt");
  EXPECT_EQ(run.exit, 77) << run.err;
  EXPECT_THAT(run.err, HasSubstr("nothing is written"));
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(Quantize, SaysWhatIsWrong) {
  const auto expect = [&](const std::string& more, int exit, const std::string& what) {
    const RunResult run = Run("classifier", more);
    EXPECT_EQ(run.exit, exit) << run.err;
    EXPECT_THAT(run.err, HasSubstr(what));
    EXPECT_FALSE(fs::exists(out_));
  };
  expect("", 2, "expected --data (labelled) or --texts (without labels)");
  std::ofstream(folder_ + "/unlabelled.tsv") << "text\na\nb\n";
  expect("--data " + folder_ + "/unlabelled.tsv", 65, "label");
  std::ofstream(folder_ + "/empty.txt") << "";
  expect("--texts " + folder_ + "/empty.txt", 65, "no texts");
}

TEST_F(Quantize, NamesOtherSchemes) {
  ASSERT_EQ(Run("classifier", "--max-loss 100 --texts " + texts_).exit, 0);
  fs::remove(out_ + "/MANIFEST");
  const json sound = Config();
  const auto expect = [&](const char* pointer, const json& value, const std::string& what) {
    json config = sound;
    config[json::json_pointer(pointer)] = value;
    std::ofstream(out_ + "/config.json") << config.dump();
    const RunResult run = RunCloze("predict --model " + out_ + " < " + texts_);
    EXPECT_EQ(run.exit, 65) << run.err;
    EXPECT_THAT(run.err, HasSubstr(what));
  };
  const std::string group = "/quantization_config/config_groups/group_0/";
  expect(
      "/quantization_config/quant_method", "gptq", "quant_method: expected \"compressed-tensors\"");
  expect((group + "weights/num_bits").c_str(), 4, "group_0.weights.num_bits: expected 8");
  expect((group + "input_activations/strategy").c_str(), "tensor", "expected \"token\"");
  expect("/quantization_config/ignore", 1, "ignore: expected []");
}

}  // namespace
}  // namespace cloze
