// config.json of ELECTRA, ALBERT and the families with RoBERTa's tables.
#include "encoder/families/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "encoder/modules/relative.h"

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
  EXPECT_EQ(config->mlp.activation, ActivationKind::kGeluTanh) << "the default";
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
    EXPECT_EQ(config->positions.offset, 2);
    EXPECT_EQ(config->Key(Role::kWordEmbeddings, -1).name, "roberta.embeddings.word_embeddings");
    EXPECT_EQ(Kept(*config)["architectures"][0], absl::StrCat(classes, "ForMaskedLM"));
  }
}

std::string Deberta(absl::string_view members) {
  return ConfigWith(absl::StrCat(members, R"("model_type":"deberta-v2","hidden_size":16,
      "num_hidden_layers":2,"architectures":["DebertaV2ForMaskedLM"],)"));
}

TEST(Families, KeepDeberta) {
  const auto config = ParseConfig(Deberta(R"("relative_attention":true,"position_buckets":8,
      "pos_att_type":"p2c|c2p","share_att_key":true,"norm_rel_ebd":"layer_norm",
      "position_biased_input":false,"max_relative_positions":-1,"conv_kernel_size":3,
      "conv_act":"gelu","cls_dropout":0.25,"legacy":false,)"),
      "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->relative.span, 8);
  EXPECT_EQ(config->relative.furthest, 64);
  EXPECT_EQ(config->norm.epsilon, 1e-7f);
  EXPECT_TRUE(config->head_calls_embeddings);
  const Json json = Kept(*config);
  EXPECT_EQ(json["pos_att_type"].dump(), R"(["p2c","c2p"])");
  EXPECT_EQ(json["position_buckets"], 8);
  EXPECT_EQ(json["conv_act"], "gelu");
  EXPECT_EQ(json["type_vocab_size"], 0);
  EXPECT_EQ(json["cls_dropout"].dump(), "0.25");
  EXPECT_EQ(json["position_biased_input"], false);
  EXPECT_EQ(json["legacy"], true);
  EXPECT_FALSE(ParseConfig(json.dump(), "x")->head_calls_embeddings);
  EXPECT_EQ(CanonicalName("lm_predictions.lm_head.LayerNorm.weight", *config->family),
      "cls.predictions.transform.LayerNorm.weight");
  EXPECT_EQ(CanonicalName("lm_predictions.lm_head.bias", *config->family), "cls.predictions.bias");
}

TEST(Families, RefuseDebertasByField) {
  constexpr char kRelative[] = R"("relative_attention":true,"pos_att_type":["c2p"],)";
  const std::pair<std::string, const char*> cases[] = {
      {R"("relative_attention":true,"pos_att_type":["c2p","p2p"],)", "pos_att_type: p2p"},
      {R"("relative_attention":true,"pos_att_type":[3],)", "pos_att_type: "},
      {R"("relative_attention":true,"pos_att_type":3,)", "pos_att_type: "},
      {R"("relative_attention":true,)", "pos_att_type: none"},
      {R"("pos_att_type":["c2p"],)", "relative_attention: false"},
      {absl::StrCat(kRelative, R"("position_buckets":2147483648,)"), "position_buckets: "},
      {absl::StrCat(kRelative, R"("position_buckets":1,)"), "position_buckets: 1"},
      {absl::StrCat(kRelative, R"("position_buckets":8,"max_relative_positions":5,)"),
          "position_buckets: 8"},
      {absl::StrCat(kRelative, R"("max_relative_positions":2147483648,)"),
          "max_relative_positions: "},
      {absl::StrCat(kRelative, R"("norm_rel_ebd":"batch",)"), "norm_rel_ebd: batch"},
      {R"("conv_kernel_size":4,)", "conv_kernel_size: 4"},
      {R"("conv_kernel_size":3,"conv_groups":2,)", "conv_groups: "},
      {R"("conv_kernel_size":3,"conv_act":"selu",)", "conv_act: selu"},
      {R"("pooler_hidden_act":"tanh",)", "pooler_hidden_act: tanh"},
      {R"("pooler_dropout":0.5,)", "pooler_dropout: "},
      {R"("embedding_size":8,)", "embedding_size: "},
      {R"("attention_head_size":4,)", "attention_head_size: "},
  };
  for (const auto& [members, message] : cases) {
    EXPECT_THAT(
        std::string(ParseConfig(Deberta(members), "x").status().message()), HasSubstr(message))
        << members;
  }
}

TEST(Families, MpnetHas32Buckets) {
  const auto with = [](absl::string_view members) {
    return ParseConfig(ConfigWith(absl::StrCat(members, R"("model_type":"mpnet","hidden_size":16,
        "num_hidden_layers":2,)")),
        "x");
  };
  ASSERT_TRUE(with("").ok());
  EXPECT_EQ(Kept(*with(""))["relative_attention_num_buckets"], 32);
  EXPECT_THAT(with(R"("pad_token_id":0,)").status().message(), HasSubstr("pad_token_id"));
  for (const char* number : {"0", "31", "-1", "2147483648"}) {
    EXPECT_THAT(
        with(absl::StrCat(R"("relative_attention_num_buckets":)", number, ",")).status().message(),
        HasSubstr("relative_attention_num_buckets"));
  }
}

// Values of transformers.
TEST(Families, BucketsOfDistances) {
  const RelativeConfig mpnet = {.buckets = 32},
                       deberta = {.span = 256, .furthest = 512, .query_terms = true},
                       small = {.span = 4, .furthest = 16, .query_terms = true},
                       exact = {.span = 4, .query_terms = true};
  for (const auto& [key_minus_query, bucket] : {std::pair<int, int>{0, 0}, {-1, 1}, {-7, 7},
           {-8, 8}, {-12, 9}, {-16, 10}, {-32, 12}, {-64, 14}, {-100, 15}, {1, 17}, {7, 23},
           {8, 24}, {16, 26}, {28, 27}, {32, 28}, {64, 30}, {100, 31}, {100000, 31}})
    EXPECT_EQ(BucketOf(mpnet, -key_minus_query), bucket) << key_minus_query;
  for (const auto& [distance, bucket] :
      {std::pair<int, int>{0, 0}, {127, 127}, {128, 128}, {129, 129}, {130, 130}, {140, 137},
          {150, 143}, {200, 169}, {256, 192}, {300, 207}, {400, 233}, {500, 254}, {511, 255}}) {
    EXPECT_EQ(BucketOf(deberta, distance), 256 + bucket) << distance;
    EXPECT_EQ(BucketOf(deberta, -distance), 256 - bucket) << distance;
  }
  for (int distance = -15; distance <= 15; ++distance) {
    EXPECT_EQ(BucketOf(small, distance), 4 + std::clamp(distance, -3, 3)) << distance;
    EXPECT_EQ(BucketOf(exact, distance), 4 + std::clamp(distance, -4, 3)) << distance;
  }
}

// What no family computes is refused by its name: in the reference models, and in the two families
// without one that have RoBERTa's config.json.
TEST(Families, RefuseWhatNoneComputes) {
  std::vector<Json> configs;
  for (const auto& folder : std::filesystem::directory_iterator(CLOZE_SOURCE_DIR "/tests/golden")) {
    const auto text = ReadFile(folder.path() / "config.json", 1 << 20);
    if (text.ok()) configs.push_back(Json::parse(*text));
    if (!text.ok() || configs.back()["model_type"] != "roberta") continue;
    for (const char* like : {"camembert", "roberta-prelayernorm"}) {
      configs.push_back(Json::parse(*text));
      configs.back()["model_type"] = like;
    }
  }
  std::set<std::string> seen;
  for (const Json& config : configs) {
    const auto parsed = ParseConfig(config.dump(), "x");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const Family& family = *parsed->family;
    seen.insert(family.model_type);
    for (const auto& [key, value] : {std::pair<const char*, Json>{family.keys.activation, "mish"},
             {family.keys.activation, 3}, {"position_embedding_type", "relative_key"},
             {"position_embedding_type", "relative_key_query"}, {"is_decoder", true},
             {"is_decoder", "yes"}, {"add_cross_attention", true}, {"head_dim", 4096},
             {"attention_head_size", 3}, {"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}) {
      Json wrong = config;
      (family.joined.standalone == nullptr ? wrong : wrong["encoder"])[key] = value;
      const absl::Status status = ParseConfig(wrong.dump(), "x").status();
      EXPECT_EQ(ExitOf(status), Exit::kData) << family.model_type << key;
      EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(": ", key, ": ")));
    }
    if (parsed->positions.kind == Positions::kRotary) {
      Json named = config;
      named["position_embedding_type"] = "sans_pos";
      EXPECT_TRUE(ParseConfig(named.dump(), "x").ok());
    }
    if (!config.contains("rope_parameters")) continue;
    Json partial = config;
    Json& rope = partial["rope_parameters"];
    (rope.contains("full_attention") ? rope["full_attention"] : rope)["partial_rotary_factor"] =
        0.5;
    EXPECT_THAT(std::string(ParseConfig(partial.dump(), "x").status().message()),
        HasSubstr("partial_rotary_factor: "));
  }
  EXPECT_EQ(seen.size(), std::size(kFamilies));
}

TEST(Families, RefuseDecodersThatPairsCannotHave) {
  ModelConfig encoder;
  encoder.family = &kBert;
  for (const Family* family : kFamilies) {
    ModelConfig decoder;
    decoder.family = family;
    const auto pair = JoinEncoderDecoder(encoder, decoder);
    EXPECT_EQ(pair.ok(), family->joined.can_be_decoder) << family->model_type;
    if (pair.ok()) {
      EXPECT_TRUE(pair->has(Role::kCrossQuery)) << family->model_type;
      EXPECT_FALSE(JoinEncoderDecoder(encoder, *pair).ok()) << "a half of another pair";
    } else {
      EXPECT_THAT(pair.status().message(),
          HasSubstr(absl::StrCat(
              family->model_type, ": expected bert, roberta, xlm-roberta, camembert or electra")));
    }
  }
}

TEST(Families, AreListedForAnUnknownOne) {
  const auto config = ParseConfig(ConfigWith(R"("model_type":"t5",)"), "x");
  for (const Family* family : kFamilies)
    EXPECT_THAT(config.status().message(), HasSubstr(family->model_type));
}

}  // namespace
}  // namespace cloze
