#include <cmath>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/base/json.h"
#include "core/tensor/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// A folder of sentence-transformers.
class SentenceFolderTest : public testing::Test {
 protected:
  SentenceFolderTest() {
    for (const char* file : {"config.json", "model.safetensors"})
      std::filesystem::copy(
          std::string(CLOZE_SOURCE_DIR "/tests/golden/masked_lm/") + file, model_);
    std::filesystem::create_directory(model_ + "/1_Pooling");
    Modules({"Transformer", "Pooling", "Normalize"});
    Write("1_Pooling/config.json",
        R"({"word_embedding_dimension": 32, "pooling_mode_cls_token": true,
            "pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": false})");
  }
  void Write(const std::string& file, const std::string& text) {
    std::ofstream(model_ + "/" + file) << text;
  }
  void Modules(const std::vector<std::string>& types) {
    std::string list;
    for (const std::string& type : types) {
      list += list.empty() ? "[" : ", ";
      list += R"({"idx": 0, "name": "0", "path": ")" +
              std::string(type == "Pooling" ? "1_Pooling"
                          : type == "Dense" ? "2_Dense"
                                            : "") +
              R"(", "type": "sentence_transformers.models.)" + type + "\"}";
    }
    Write("modules.json", list + "]");
  }
  RunResult Encode(const std::string& options, const std::string& out = "-") {
    return RunCloze("encode --input-format ids --model " + model_ + " --out " + out + " " + options,
        "echo 2 9 7 4 3 | ");
  }
  std::string Vectors(const std::string& options) {
    const RunResult result = Encode(options);
    EXPECT_EQ(result.exit, 0) << result.err;
    return result.out;
  }
  void ExpectError(int exit, const std::string& message) {
    const RunResult result = Encode("");
    EXPECT_EQ(result.exit, exit);
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(Encode("--pool mean").exit, 0) << "a pooling that is chosen needs no such file";
  }
  const std::string model_ = TemporaryFolder();
};

TEST_F(SentenceFolderTest, DefaultsFollowIt) {
  EXPECT_EQ(Vectors(""), Vectors("--pool cls --normalize"));
  EXPECT_NE(Vectors(""), Vectors("--pool cls"));
  Modules({"Transformer", "Pooling"});
  EXPECT_EQ(Vectors(""), Vectors("--pool cls"));
  EXPECT_EQ(Vectors("--normalize"), Vectors("--pool cls --normalize"));
  Write("1_Pooling/config.json", R"({"embedding_dimension": 32, "pooling_mode": "max"})");
  EXPECT_EQ(Vectors(""), Vectors("--pool max"));
  std::filesystem::remove(model_ + "/modules.json");
  EXPECT_EQ(Vectors(""), Vectors("--pool mean"));
}

TEST_F(SentenceFolderTest, ADenseLayerFollowsThePooling) {
  const auto vector = [&](const std::string& options) {
    return Json::parse(Vectors(options))["vector"].get<std::vector<double>>();
  };
  constexpr int kHidden = 64;
  std::vector<float> weight(2 * kHidden);
  for (int i = 0; i < 2 * kHidden; ++i) weight[i] = 0.01f * static_cast<float>(i % 13 - 6);
  const std::vector<float> bias = {0.25f, -0.5f};
  const std::vector<double> pooled = vector("--pool cls");
  std::vector<double> expected(2);
  for (int o = 0; o < 2; ++o) {
    expected[o] = bias[o];
    for (int i = 0; i < kHidden; ++i) expected[o] += weight[o * kHidden + i] * pooled[i];
    expected[o] = std::tanh(expected[o]);
  }
  std::filesystem::create_directory(model_ + "/2_Dense");
  ASSERT_TRUE(WriteSafetensors(model_ + "/2_Dense/model.safetensors",
      {{"linear.weight", {2, kHidden}, FileType::kF32, weight.data()},
          {"linear.bias", {2}, FileType::kF32, bias.data()}})
                  .ok());
  const auto config = [&](int inputs, const std::string& activation) {
    Write("2_Dense/config.json", absl::StrCat("{\"in_features\": ", inputs,
                                     ", \"out_features\": 2, \"bias\": true, "
                                     "\"activation_function\": \"torch.nn.modules.activation.",
                                     activation, "\"}"));
  };
  config(kHidden, "Tanh");
  Modules({"Transformer", "Pooling", "Dense"});
  EXPECT_THAT(vector(""), Pointwise(DoubleNear(1e-6), expected));
  Modules({"Transformer", "Pooling", "Dense", "Normalize"});
  const double length = std::hypot(expected[0], expected[1]);
  for (double& x : expected) x /= length;
  EXPECT_THAT(vector(""), Pointwise(DoubleNear(1e-6), expected));
  EXPECT_EQ(Encode("", model_ + "/v.npy").exit, 0);
  EXPECT_THAT(Content(model_ + "/v.npy"), HasSubstr("'shape': (1, 2)"));

  Modules({"Transformer", "Pooling", "Normalize", "Dense"});
  ExpectError(76, "expected Transformer, Pooling and then Dense and Normalize");
  Modules({"Transformer", "Pooling", "Dense"});
  config(16, "Tanh");
  ExpectError(76, "linear.weight: shape [2, 64]: expected [2, 16]");
  config(kHidden, "Tanh");
  Modules({"Transformer", "Pooling", "Dense", "Dense"});
  ExpectError(76, "in_features: 64: expected 2");
  Modules({"Transformer", "Pooling", "Dense"});
  config(kHidden, "Mish");
  ExpectError(76, "activation_function: \"torch.nn.modules.activation.Mish\": expected that of");
  config(kHidden, "Tanh");
  std::filesystem::remove(model_ + "/2_Dense/model.safetensors");
  ExpectError(66, "2_Dense: no model.safetensors");
}

TEST_F(SentenceFolderTest, ItsLengthHolds) {
  Write("tokenizer_config.json", R"({"model_max_length": 1e30})");
  EXPECT_EQ(Encode("").exit, 0);
  Write("tokenizer_config.json", R"({"model_max_length": 4})");
  EXPECT_THAT(Encode("").err, HasSubstr("5 tokens: expected 1 to 4"));
  Write("sentence_bert_config.json", R"({"max_seq_length": 5, "do_lower_case": false})");
  EXPECT_EQ(Encode("").exit, 0);
  EXPECT_EQ(Encode("", model_ + "/v.safetensors").exit, 0) << "hidden states of tokens";
}

TEST_F(SentenceFolderTest, OlderNamesOfItsSettingsAreRead) {
  Write("sentence_roberta_config.json", R"({"max_seq_length": 4})");
  EXPECT_THAT(Encode("").err, HasSubstr("5 tokens: expected 1 to 4"));
}

// With one token for each byte, a blank at an end would be a token.
TEST_F(SentenceFolderTest, TextsAreStrippedAndLowerCased) {
  std::string tokens = "\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3, \"<mask>\": 4";
  for (int i = 0; i < 26; ++i)
    tokens += ", \"" + std::string(1, 'a' + i) + "\": " + std::to_string(5 + i) + ", \"" +
              std::string(1, 'A' + i) + "\": " + std::to_string(31 + i);
  Write("vocab.json", "{" + tokens + ", \"\u0120\": 57}");
  Write("merges.txt", "#version: 0.2\n");
  const auto encode = [&](const std::string& text) {
    return RunCloze("encode --model " + model_ + " --out -", "printf '" + text + "' | ").out;
  };
  EXPECT_THAT(encode("ab c\n"), HasSubstr("vector"));
  EXPECT_EQ(encode("ab c\n"), encode(" ab c \t\n"));
  EXPECT_NE(encode("ab c\n"), encode("aB c\n"));
  Write("sentence_bert_config.json", R"({"do_lower_case": true})");
  EXPECT_EQ(encode("ab c\n"), encode("aB C\n"));
}

TEST_F(SentenceFolderTest, WhatIsNotSupportedIsRefused) {
  Modules({"Transformer", "Pooling", "WordWeights"});
  ExpectError(76, "models.WordWeights\" is not supported; --pool chooses a pooling instead");
  for (const std::vector<std::string>& order : {std::vector<std::string>{"Pooling", "Transformer"},
           {"Transformer", "Pooling", "Pooling"}, {"Transformer", "Normalize", "Pooling"},
           {"Transformer", "Pooling", "Normalize", "Normalize"}}) {
    Modules(order);
    ExpectError(76, "modules.json: expected Transformer, Pooling and then Dense and Normalize");
  }
  Write("modules.json", R"([{"path": "", "type": "own_code.Transformer"}])");
  ExpectError(76, "the module \"own_code.Transformer\" is not supported");
  Write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer",
      "kwargs": {"trust": 1}}])");
  ExpectError(76, "kwargs: is {\"trust\":1}, which is not supported");
  Modules({"Transformer"});
  ExpectError(65, "modules.json: expected a list of modules with a Pooling module");
  Write("modules.json", "[{\"type\": 7}]");
  ExpectError(65, "type: expected a string");
  Write("modules.json", "[");
  ExpectError(65, "modules.json:1");
  Write("modules.json", "[], \"more\": {}");
  ExpectError(65, "modules.json: expected a list of modules");
  for (const char* path : {"/tmp", "..", "a/../../b"}) {
    Write("modules.json", absl::StrCat("[{\"type\": \"Pooling\", \"path\": \"", path, "\"}]"));
    ExpectError(65, "expected a folder inside this one");
  }
  Modules({"Transformer", "Pooling"});
  Write("config_sentence_transformers.json", R"({"default_prompt_name": "query"})");
  ExpectError(76, "default_prompt_name: \"query\": expected a name of prompts");
  Write("config_sentence_transformers.json", R"({"truncate_dim": 16})");
  ExpectError(76, "truncate_dim: is 16, which is not supported");
  Write("config_sentence_transformers.json", R"({"precision": "int8"})");
  ExpectError(76, "precision: unknown member");
  Write("config_sentence_transformers.json", R"({"__version__": {"pytorch": "2"},
      "prompts": {"query": "q: ", "document": ""}, "default_prompt_name": null,
      "similarity_fn_name": "cosine", "model_type": "SentenceTransformer"})");
  Write("sentence_bert_config.json", R"({"max_seq_length": 5, "pad_to": 3})");
  ExpectError(76, "pad_to: unknown member");
  Write("sentence_bert_config.json", R"({"module_output_name": "sentence_embedding"})");
  ExpectError(76, "module_output_name: is \"sentence_embedding\"");
  Write("sentence_bert_config.json", R"({"transformer_task": "feature-extraction",
      "modality_config": {"text": {"method": "forward",
      "method_output_name": "last_hidden_state"}}, "module_output_name": "token_embeddings"})");
  EXPECT_EQ(Encode("").exit, 0);
  Write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  ExpectError(76, "expected one pooling");  // the mean is on unless it is turned off
  Write("1_Pooling/config.json", R"({"pooling_mode": "mean", "include_prompt": false})");
  EXPECT_EQ(Encode("").exit, 0);
  EXPECT_THAT(Encode("--prompt query").err, HasSubstr("include_prompt false: expected true"));
  Write("1_Pooling/config.json",
      R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false, "layers": 2})");
  ExpectError(76, "layers: unknown member");
  Write("1_Pooling/config.json",
      R"({"pooling_mode_cls_token": true, "pooling_mode_weightedmean_tokens": true})");
  ExpectError(76, "expected one pooling of cls, mean and max");
  std::filesystem::remove(model_ + "/1_Pooling/config.json");
  ExpectError(66, "1_Pooling/config.json");
}

// The tokenizer gives the second text type 1, which this model does not have.
TEST(Encode, TakesPairsForModelsOfOneType) {
  const std::string model = TemporaryFolder();
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy(
        std::string(CLOZE_SOURCE_DIR "/tests/golden/distilbert_masked_lm/") + file, model);
  std::ofstream vocab(model + "/vocab.txt");
  vocab << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 5; i < 120; ++i) vocab << 'w' << i << '\n';
  vocab.close();
  const RunResult pair =
      RunCloze("encode --pairs --out - --model " + model, "printf 'w5 w6\tw7\n' | ");
  ASSERT_EQ(pair.exit, 0) << pair.err;
  EXPECT_EQ(pair.out,
      RunCloze("encode --input-format ids --out - --model " + model, "echo 2 5 6 3 7 3 | ").out);
  const RunResult maps =
      RunCloze("attention w5 w7 --model " + model + " --out " + model + "/maps.html");
  EXPECT_EQ(maps.exit, 0) << maps.err;
}

}  // namespace
}  // namespace cloze
