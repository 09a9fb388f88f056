// One reference model of each family, with every way to train and look at it that a spec has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/tensor/safetensors.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Returns the folder of one masked-LM model of each family in tests/golden, by model_type.
std::map<std::string, fs::path> References() {
  std::map<std::string, fs::path> found;
  for (const auto& folder : fs::directory_iterator(CLOZE_SOURCE_DIR "/tests/golden")) {
    const auto text = ReadFile(folder.path() / "config.json", 1 << 20);
    const std::string name = folder.path().filename();
    if (!text.ok() || !fs::exists(folder.path() / "model.safetensors")) continue;
    if (name.find("masked_lm") == std::string::npos && name != "electra_generator") continue;
    std::string type = nlohmann::json::parse(*text)["model_type"];
    fs::path& path = found[std::move(type)];
    if (path.empty() || folder.path() < path) path = folder.path();
  }
  return found;
}

class FamiliesProgramTest : public testing::TestWithParam<std::pair<const std::string, fs::path>> {
 protected:
  void SetUp() override {
    fs::create_directories(Path("base"));
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy_file(GetParam().second / file, Path("base") + "/" + file);
    const auto config = nlohmann::json::parse(*ReadFile(Path("base/config.json"), 1 << 20));
    std::vector<std::string> tokens(config["vocab_size"].get<size_t>());
    tokens[config["pad_token_id"].get<size_t>()] = "[PAD]";
    std::vector<std::string> others = {
        "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "great", "dull", "film", "movie", "was", "so"};
    for (size_t i = others.size() + 1; i < tokens.size(); ++i)
      others.push_back("w" + std::to_string(i));
    std::ofstream vocab(Path("base/vocab.txt")), data(Path("data.tsv"));
    for (size_t id = 0, next = 0; id < tokens.size(); ++id)
      vocab << (tokens[id].empty() ? others[next++] : tokens[id]) << '\n';
    data << "text\tlabel\n";
    for (int i = 0; i < 30; ++i)
      data << (i % 2 ? "a great film was so great\tgood\n" : "a dull movie\tbad\n");
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Spec(const std::string& name, const std::string& more) const {
    std::ofstream(Path(name + ".textproto"))
        << "model { start_from: \"" << Path("base") << "\" } sequence_classification { max_tokens: "
        << "16 } train { files: \"" << Path("data.tsv") << "\" } batch { tokens: 128 } "
        << "optimizer { learning_rate: 0.01 } schedule { steps: 3 } output { directory: \""
        << Path(name) << "\" } " << more;
    return Path(name + ".textproto");
  }
  std::string Out(const std::string& arguments, const std::string& before = "") const {
    const RunResult r = RunCloze(arguments, before);
    EXPECT_EQ(r.exit, 0) << GetParam().first << ": " << arguments << '\n' << r.err;
    return r.out;
  }
  // The tensors of a folder's encoder, without its pooler.
  std::map<std::string, std::vector<float>> Encoder(const std::string& name) const {
    std::map<std::string, std::vector<float>> values;
    const auto file = SafetensorsReader::OpenFolder(Path(name));
    EXPECT_TRUE(file.ok()) << file.status();
    for (const TensorInfo& tensor : file->tensors()) {
      if (tensor.name.find("layer") == std::string::npos &&
          tensor.name.find("embeddings") == std::string::npos)
        continue;
      std::vector<float>& all = values[tensor.name];
      all.resize(tensor.elements());
      EXPECT_TRUE(file->ReadF32(tensor.name, absl::MakeSpan(all)).ok());
    }
    return values;
  }

  const std::string folder_ = TemporaryFolder();
};

TEST_P(FamiliesProgramTest, TrainsAndShowsInEveryWay) {
  EXPECT_THAT(Out("finetune --plan " + Spec("all", "")), HasSubstr("weights"));
  for (const auto& [name, more] :
      {std::pair<std::string, std::string>{"all", ""}, {"recompute", "runtime { recompute: true }"},
          {"bf16", "runtime { compute: BF16 }"}, {"head", "trainable { head_only: true }"},
          {"last", "trainable { last_layers: 1 }"}, {"lora", "trainable { lora { rank: 2 } }"}}) {
    const RunResult run = RunCloze("finetune " + Spec(name, more));
    EXPECT_EQ(run.exit, 0) << GetParam().first << ", " << name << '\n' << run.err;
    Out("verify " + Path(name) + (name == "lora" ? " --model " + Path("base") : ""));
    EXPECT_THAT(
        Out("predict --model " + Path(name), "echo a great film | "), HasSubstr("\"scores\""));
  }
  std::ofstream(Path("texts.txt")) << "a great film\n";
  Out("quantize --max-loss 100 --model " + Path("all") + " --texts " + Path("texts.txt") +
      " --out " + Path("int8"));
  const auto score = [&](const std::string& name) {
    const std::string answer = Out("predict --model " + Path(name) + " " + Path("texts.txt"));
    return nlohmann::json::parse(answer)["score"].get<double>();
  };
  EXPECT_NEAR(score("int8"), score("all"), 0.05);
  const auto base = Encoder("base"), all = Encoder("all"), head = Encoder("head"),
             last = Encoder("last");
  EXPECT_EQ(all, Encoder("recompute"));
  ASSERT_GT(all.size(), 10u);
  int kept = 0, changed = 0;
  for (const auto& [name, values] : head) {
    const auto old = base.find(name);  // a folder of the Hub's NomicBERT has other names
    const bool same = old == base.end() || old->second == values;
    EXPECT_TRUE(same) << name;
    kept += old != base.end() && same;
    EXPECT_TRUE(last.at(name) == values || name.find("embeddings.") == std::string::npos) << name;
    changed += last.at(name) != values;
  }
  EXPECT_GT(kept, 1);
  EXPECT_GT(changed, 3);
  Out("attention --model " + Path("all") + " 'a great film' --out " + Path("page.html"));
  EXPECT_THAT(*ReadFile(Path("page.html"), 1 << 26), HasSubstr("great"));
}

INSTANTIATE_TEST_SUITE_P(
    All, FamiliesProgramTest, testing::ValuesIn(References()), [](const auto& info) {
      std::string name = info.param.first;
      std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
      return name;
    });

}  // namespace
}  // namespace cloze
