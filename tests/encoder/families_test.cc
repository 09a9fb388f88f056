// config.json of ELECTRA, ALBERT and the families with RoBERTa's tables.
#include "encoder/families/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace cloze {
namespace {

using testing::HasSubstr;

// A config.json with these members before the common ones.
std::string ConfigWith(absl::string_view members) {
  return absl::StrCat("{", members, R"("vocab_size":100,"num_attention_heads":2,
      "intermediate_size":32,"max_position_embeddings":64})");
}

std::string Albert(absl::string_view members) {
  return ConfigWith(absl::StrCat(members, R"("model_type":"albert","embedding_size":8,
      "hidden_size":16,"architectures":["AlbertForMaskedLM"],)"));
}

std::string Electra(absl::string_view members) {
  return ConfigWith(absl::StrCat(members, R"("model_type":"electra","num_hidden_layers":2,)"));
}

// Writes the config and reads it again; returns what was written.
Json Kept(const ModelConfig& config) {
  const std::string text = FormatConfig(config);
  const auto again = ParseConfig(text, "config.json");
  EXPECT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again.ok() ? FormatConfig(*again) : "", text);
  return Json::parse(text);
}

TEST(Families, KeepAlbert) {
  const auto config = ParseConfig(
      Albert(R"("num_hidden_layers":4,"num_hidden_groups":2,"inner_group_num":2,)"), "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->layers, 8) << "blocks";
  EXPECT_EQ(config->own_blocks(), 4);
  EXPECT_EQ(config->activation, ActivationKind::kGeluTanh) << "the default";
  EXPECT_FLOAT_EQ(config->head_dropout(), 0.1f) << "the default";
  const Json json = Kept(*config);
  EXPECT_EQ(json["num_hidden_layers"], 4);
  EXPECT_EQ(json["num_hidden_groups"], 2);
  EXPECT_EQ(json["inner_group_num"], 2);
  EXPECT_EQ(json["embedding_size"], 8);
  EXPECT_EQ(json["classifier_dropout_prob"].dump(), "0.1");
}

TEST(Families, AlbertSharesTheBlocksOfAGroup) {
  const auto config = ParseConfig(
      Albert(R"("num_hidden_layers":4,"num_hidden_groups":2,"inner_group_num":2,)"), "x");
  ASSERT_TRUE(config.ok()) << config.status();
  struct {
    int group, inner, last;
    bool shared;
  } const expected[] = {{0, 0, 2, false}, {0, 1, 3, false}, {0, 0, 2, true}, {0, 1, 3, true},
      {1, 0, 6, false}, {1, 1, 7, false}, {1, 0, 6, true}, {1, 1, 7, true}};
  for (int block = 0; block < 8; ++block) {
    const ParamKey key = config->Key(Role::kIntermediate, block);
    const auto& e = expected[block];
    EXPECT_EQ(key.name, absl::StrCat("albert.encoder.albert_layer_groups.", e.group,
                            ".albert_layers.", e.inner, ".ffn"));
    EXPECT_EQ(key.layer, e.last) << block;
    EXPECT_EQ(key.shared, e.shared) << block;
  }
}

TEST(Families, RefuseBlocksThatCannotBeShared) {
  const auto error = [](absl::string_view members) {
    return std::string(ParseConfig(Albert(members), "x").status().message());
  };
  EXPECT_THAT(error(R"("num_hidden_layers":4,"num_hidden_groups":3,)"),
      HasSubstr("num_hidden_groups: 3 does not divide num_hidden_layers 4"));
  EXPECT_THAT(
      error(R"("num_hidden_layers":4,"num_hidden_groups":0,)"), HasSubstr("num_hidden_groups"));
  EXPECT_THAT(error(R"("num_hidden_layers":1000,"inner_group_num":2,)"),
      HasSubstr("inner_group_num: 2: expected at most 1024 blocks"));
  EXPECT_THAT(
      error(R"("num_hidden_layers":1,"inner_group_num":1000000,)"), HasSubstr("inner_group_num"));
}

TEST(Families, KeepElectra) {
  const auto config = ParseConfig(
      Electra(R"("hidden_size":16,"embedding_size":8,"architectures":["ElectraForPreTraining"],)"),
      "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, HeadKind::kReplacedTokens);
  EXPECT_TRUE(config->projects_embeddings());
  const Json json = Kept(*config);
  EXPECT_EQ(json["architectures"][0], "ElectraForPreTraining");
  EXPECT_EQ(json["embedding_size"], 8);
  EXPECT_FALSE(json.contains("cloze"));
  const auto base =
      ParseConfig(Electra(R"("hidden_size":128,"architectures":["ElectraForMaskedLM"],)"), "x");
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_EQ(base->head, HeadKind::kMaskedLm);
  EXPECT_FALSE(base->projects_embeddings()) << "128 is the default of embedding_size";
  const auto wide = ParseConfig(Electra(R"("hidden_size":16,"embedding_size":20000,)"), "x");
  EXPECT_THAT(wide.status().message(), HasSubstr("embedding_size"));
}

TEST(Families, KeepXlmRobertaAndCamembert) {
  for (const auto& [type, classes] :
      {std::pair("xlm-roberta", "XLMRoberta"), {"camembert", "Camembert"}}) {
    const auto config =
        ParseConfig(ConfigWith(absl::StrCat(R"("model_type":")", type,
                        R"(","hidden_size":16,"num_hidden_layers":2,"architectures":[")", classes,
                        R"(ForMaskedLM"],)")),
            "x");
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->position_offset, 2);
    EXPECT_EQ(config->Key(Role::kWordEmbeddings, -1).name, "roberta.embeddings.word_embeddings");
    EXPECT_EQ(Kept(*config)["architectures"][0], absl::StrCat(classes, "ForMaskedLM"));
  }
}

TEST(Families, AreListedForAnUnknownOne) {
  const auto config = ParseConfig(ConfigWith(R"("model_type":"t5",)"), "x");
  for (const Family* family : kFamilies)
    EXPECT_THAT(config.status().message(), HasSubstr(family->model_type));
}

}  // namespace
}  // namespace cloze
