// LoRA as a user runs it: fine-tune, predict with several adapters of one base, evaluate, merge,
// and every mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Made once: two bases; of the first two classifiers with other labels, and a tagger.
class AdapterProgramTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new std::string(TemporaryFolder());
    std::ofstream text(Path("text.txt")), mood(Path("mood.tsv")), kind(Path("kind.tsv")),
        tags(Path("tags.conll"));
    mood << "text\tlabel\n", kind << "text\tlabel\n";
    for (int i = 0; i < 60; ++i) {
      const bool good = i % 2 == 0;
      text << (good ? "The good film was a great joy to see.\n\n"
                    : "This bad movie is a dull waste of time.\n\n");
      mood << (good ? "a great film " : "a dull movie ") << i << '\t'
           << (good ? "positive" : "negative") << '\n';
      kind << (i % 3 == 0 ? "a film\tfilm\n" : i % 3 == 1 ? "a movie\tmovie\n" : "a joy\tjoy\n");
      tags << (good ? "film NOUN\nwas VERB\n\n" : "dull ADJ\nmovie NOUN\n\n");
    }
    text.close(), mood.close(), kind.close(), tags.close();
    Expect0("vocab --text " + Path("text.txt") + " --size 120 --out " + Path("vocab"));
    Train("pretrain", "base", Encoder(32) + "masked_lm { max_tokens: 24 }", "text.txt", 60);
    Train("pretrain", "wide", Encoder(48) + "masked_lm { max_tokens: 24 }", "text.txt", 2);
    const std::string start =
        "model { start_from: \"" + Path("base") + "\" } trainable { lora { rank: 4 } } ";
    Train("finetune", "mood", start + "sequence_classification { max_tokens: 24 }", "mood.tsv", 80);
    Train("finetune", "kind", start + "sequence_classification { max_tokens: 24 }", "kind.tsv", 80);
    Train("finetune", "tagger", start + "token_tagging { max_tokens: 24 }", "tags.conll", 80);
  }
  static void TearDownTestSuite() { delete dir_; }

  static std::string Path(const std::string& name) { return *dir_ + "/" + name; }
  static std::string Encoder(int hidden) {
    return "model { tokenizer: \"" + Path("vocab") +
           "\" encoder { preset: CUSTOM layers: 2 hidden: " + std::to_string(hidden) +
           " heads: 2 intermediate: 64 max_positions: 32 } } ";
  }
  static void Expect0(const std::string& arguments) {
    const RunResult r = RunCloze(arguments);
    ASSERT_EQ(r.exit, 0) << arguments << '\n' << r.err;
  }
  static void Train(const std::string& command, const std::string& name, const std::string& task,
      const std::string& data, int steps) {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name + ".textproto"))
        << task << " train { files: \"" << Path(data) << "\" } batch { tokens: 512 } "
        << "optimizer { learning_rate: 0.01 } schedule { steps: " << steps
        << " } output { directory: \"" << Path(name) << "\" }";
    Expect0(command + " " + Path(name + ".textproto"));
  }
  static void ExpectError(
      const std::string& arguments, const std::string& before, int exit, const std::string& part) {
    const RunResult r = RunCloze(arguments, before);
    EXPECT_EQ(r.exit, exit) << arguments << '\n' << r.err;
    EXPECT_THAT(r.err, HasSubstr(part)) << arguments;
  }

  static std::string* dir_;
};
std::string* AdapterProgramTest::dir_ = nullptr;

constexpr char kTexts[] = "printf 'a great film\\na dull movie\\n' | ";

TEST_F(AdapterProgramTest, RunDirectoryAloneOrWithItsBaseOrMerged) {
  const RunResult run = RunCloze("predict --model " + Path("mood"), kTexts);
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(JsonLines(run.out)[0]["label"], "positive");
  EXPECT_EQ(JsonLines(run.out)[1]["label"], "negative");
  EXPECT_EQ(RunCloze("predict --model " + Path("base") + " --adapter " + Path("mood"), kTexts).out,
      run.out);
  Expect0("merge --adapter " + Path("mood") + " --out " + Path("merged"));
  const auto merged = JsonLines(RunCloze("predict --model " + Path("merged"), kTexts).out);
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_NEAR(merged[0]["score"].get<double>(), JsonLines(run.out)[0]["score"].get<double>(), 1e-5);
  for (const std::string& model :
      {Path("mood"), Path("merged"), Path("base") + " --adapter " + Path("mood")}) {
    const RunResult metrics = RunCloze("evaluate --model " + model + " --data " + Path("mood.tsv"));
    ASSERT_EQ(metrics.exit, 0) << metrics.err;
    EXPECT_EQ(json::parse(metrics.out)["accuracy"], 1.0) << model;
  }
  Expect0("verify " + Path("merged"));
  std::ofstream(Path("merged/vocab.txt"), std::ios::app) << "more\n";
  for (const std::string command : {"predict --model ", "tokenize --model "})
    ExpectError(command + Path("merged"), kTexts, 76, "merged/vocab.txt: ");
  ExpectError("verify " + Path("merged"), "", 76, "merged/vocab.txt: ");
  Expect0("encode --pool mean --model " + Path("mood") + " --out " + Path("vectors.safetensors") +
          " " + Path("text.txt"));
  const auto tagged =
      JsonLines(RunCloze("tag --model " + Path("tagger"), "echo 'dull movie' | ").out);
  ASSERT_EQ(tagged.size(), 1u);
  EXPECT_EQ(tagged[0]["words"][0]["label"], "ADJ");
}

// The run and its checkpoints are at different depths; neither depends on the working directory,
// and both may move together with the base.
TEST_F(AdapterProgramTest, FindsItsBaseFromTheRunACheckpointAndASeed) {
  const std::string start =
      "model { start_from: \"" + Path("base") + "\" } trainable { lora { rank: 4 } } ";
  Train("finetune", "deep/seeds",
      start + "repeat: 2 validation { files: \"" + Path("mood.tsv") +
          "\" } sequence_classification { max_tokens: 24 }",
      "mood.tsv", 8);
  std::filesystem::create_directories(Path("elsewhere/deep"));
  std::filesystem::rename(Path("deep/seeds"), Path("elsewhere/deep/seeds"));
  std::filesystem::copy(Path("base"), Path("elsewhere/base"));
  std::filesystem::rename(Path("base"), Path("hidden"));
  const std::string seeds = Path("elsewhere/deep/seeds");
  for (const std::string& folder : {seeds, seeds + "/seed-1", seeds + "/seed-1/step-00000008"}) {
    const RunResult r = RunCloze("predict --model " + folder, std::string("cd / && ") + kTexts);
    EXPECT_EQ(r.exit, 0) << r.err;
    EXPECT_EQ(JsonLines(r.out).size(), 2u);
  }
  Expect0("verify " + seeds);
  std::filesystem::rename(Path("elsewhere/base"), Path("elsewhere/other"));
  ExpectError("predict --model " + seeds, kTexts, 66, "its base ../../base does not exist");
  ExpectError(
      "verify " + seeds, "", 76, "expected the base as the model, and this folder as its adapter");
  Expect0("verify " + seeds + " --model " + Path("elsewhere/other"));
  std::filesystem::rename(Path("hidden"), Path("base"));
}

TEST_F(AdapterProgramTest, EachLineChoosesItsAdapter) {
  const std::string both = " --input-format jsonl --model " + Path("base") +
                           " --adapter mood=" + Path("mood") + " --adapter kind=" + Path("kind");
  const RunResult r =
      RunCloze("predict" + both, R"(printf '{"id": 1, "text": "a great film", "adapter": "mood"}\n)"
                                 R"({"id": 2, "text": "a joy", "adapter": "kind"}\n)"
                                 R"({"id": 3, "text": "a dull movie", "adapter": "mood"}\n' | )");
  ASSERT_EQ(r.exit, 0) << r.err;
  const auto lines = JsonLines(r.out);
  ASSERT_EQ(lines.size(), 3u);
  const char* labels[] = {"positive", "joy", "negative"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i]["id"], i + 1);
    EXPECT_EQ(lines[i]["label"], labels[i]);
  }
  const auto alone = JsonLines(RunCloze("predict --model " + Path("kind"), "echo 'a joy' | ").out);
  EXPECT_NEAR(lines[1]["score"].get<double>(), alone[0]["score"].get<double>(), 1e-6);
  ExpectError("predict" + both,
      R"(printf '{"text": "a", "adapter": "mood"}\n{"text": "b", "adapter": "modd"}\n' | )", 65,
      "standard input:2: \"adapter\": unknown adapter modd: expected one of mood, "
      "kind");
  ExpectError("predict" + both, R"(echo '{"text": "a"}' | )", 65,
      "standard input:1: \"adapter\": none is named, and the base alone has no such head");
  EXPECT_EQ(RunCloze("predict" + both + " --adapter " + Path("mood"),
                R"(echo '{"text": "a great film"}' | )")
                .exit,
      0);
}

// Writes a temporary file of a process that does not exist, as kill -9 leaves it.
std::string PlantLeftover(const std::string& path, const std::string& suffix = "") {
  const std::string leftover = path + ".tmp-999999999" + suffix;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(leftover) << "half";
  return leftover;
}

TEST_F(AdapterProgramTest, CommandsRemoveWhatDeadProcessesLeft) {
  std::vector<std::string> left = {PlantLeftover(Path("left/vectors")),
      PlantLeftover(Path("left/vectors"), ".data"), PlantLeftover(Path("left/vocab/vocab.txt")),
      PlantLeftover(Path("left/vocab/tokenizer.json")), Path("left/merged.tmp-999999999")};
  PlantLeftover(left.back() + "/config.json");
  PlantLeftover(left.back() + "/model.safetensors", ".data");
  ASSERT_EQ(
      RunCloze("encode --model " + Path("base") + " --out " + Path("left/vectors"), kTexts).exit,
      0);
  Expect0("vocab --text " + Path("text.txt") + " --size 120 --out " + Path("left/vocab"));
  Expect0("merge --adapter " + Path("mood") + " --out " + Path("left/merged"));
  for (const std::string& path : left) EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

TEST_F(AdapterProgramTest, RepeatedRunRemovesWhatDeadProcessesLeft) {
  const std::string repeat =
      "finetune " + Path("mood.textproto") +
      " --set repeat=2 --set schedule.steps=2 --set output.directory=" + Path("again");
  Expect0(repeat + " --set validation.files=" + Path("mood.tsv"));
  const std::vector<std::string> left = {
      Path("again/step-00000002.tmp-999999999"), PlantLeftover(Path("again/repeat.json"))};
  PlantLeftover(left[0] + "/adapter_model.safetensors");
  std::filesystem::remove(Path("again/adapter_model.safetensors"));
  Expect0(repeat + " --set validation.files=" + Path("mood.tsv"));
  for (const std::string& path : left) EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

TEST_F(AdapterProgramTest, SaysWhatDoesNotFit) {
  ExpectError("predict --model " + Path("wide") + " --adapter " + Path("mood"), kTexts, 76,
      "another base: hidden_size is 32, expected 48");
  ExpectError("predict --model " + Path("tagger"), kTexts, 76, "a head for token_tagging");
  ExpectError("predict --model " + Path("base") + " --adapter a=" + Path("mood") +
                  " --adapter b=" + Path("tagger"),
      kTexts, 76, "another kind of head");
  ExpectError("predict --model " + Path("base") + " --adapter a=" + Path("mood") +
                  " --adapter a=" + Path("kind"),
      kTexts, 2, "two adapters are named a");
  ExpectError("predict --model " + Path("mood") + " --input-format jsonl",
      R"(echo '{"text": "a", "adapter": "x"}' | )", 65, R"(expected no "adapter")");
  ExpectError(
      "predict --model " + Path("base") + " --adapter " + Path("absent"), kTexts, 66, "absent");
  ExpectError("predict --model " + Path("base") + " --adapter " + Path("vocab"), kTexts, 66,
      "adapter_config.json");
  ExpectError(
      "merge --adapter " + Path("mood") + " --model " + Path("wide") + " --out " + Path("no"), "",
      76, "another base");
  ExpectError("merge --adapter " + Path("mood") + " --out " + Path("base"), "", 73, "exists");
  std::filesystem::copy(Path("mood"), Path("huge"));
  std::filesystem::remove(Path("huge/MANIFEST"));
  std::fstream weights(
      Path("huge/adapter_model.safetensors"), std::ios::binary | std::ios::in | std::ios::out);
  uint64_t header = 0;
  weights.read(reinterpret_cast<char*>(&header), sizeof(header));
  const float huge = 3e38F;
  const uint64_t end = std::filesystem::file_size(Path("huge/adapter_model.safetensors"));
  weights.seekp(8 + header);
  for (uint64_t at = 8 + header; at < end; at += 4)
    weights.write(reinterpret_cast<const char*>(&huge), 4);
  weights.close();
  ExpectError(
      "merge --adapter " + Path("huge") + " --out " + Path("no"), "", 65, "huge: cannot be merged");
  ExpectError("evaluate --model " + Path("mood") + " --adapter " + Path("kind") + " --data " +
                  Path("mood.tsv"),
      "", 2, "one adapter");
  EXPECT_FALSE(std::filesystem::exists(Path("no")));
  Expect0("spec check " + Path("mood.textproto"));
  ExpectError("finetune " + Path("mood.textproto") + " --set model.start_from=" + Path("kind") +
                  " --set output.directory=" + Path("new"),
      "", 76, "cloze merge");
  std::filesystem::copy(Path("mood"), Path("moved"));
  std::ofstream(Path("moved/adapter_config.json"))
      << R"({"peft_type": "LORA", "r": 4, "lora_alpha": 16, "base_model_name_or_path": "/gone"})";
  ExpectError("predict --model " + Path("moved"), kTexts, 66,
      "its base /gone is not a relative path: expected the base as the model");
}

}  // namespace
}  // namespace cloze
