#include "encoder/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/kernels/kernels.h"
#include "nlohmann/json.hpp"
#include "proto/options.pb.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kMinimal[] =
    R"({"model_type":"bert","architectures":["BertForMaskedLM"],"vocab_size":120,"hidden_size":64,"num_hidden_layers":2,)"
    R"("num_attention_heads":4,"intermediate_size":128,"max_position_embeddings":48})";

// The minimal config with members replaced or added, or removed where the value is "REMOVE".
std::string With(const std::string& changes) {
  nlohmann::json json = nlohmann::json::parse(kMinimal);
  const nlohmann::json changed = nlohmann::json::parse(changes);
  for (const auto& [key, value] : changed.items()) {
    if (value == "REMOVE") {
      json.erase(key);
    } else {
      json[key] = value;
    }
  }
  return json.dump();
}

EncoderSpec Spec(EncoderSpec::Preset preset) {
  EncoderSpec spec;
  spec.set_preset(preset);
  return spec;
}

TEST(ConfigFromSpecTest, PresetsFillWhatIsNotSet) {
  const struct {
    EncoderSpec::Preset preset;
    int layers, hidden, heads, intermediate;
  } cases[] = {{EncoderSpec::TINY, 2, 128, 2, 512}, {EncoderSpec::MINI, 4, 256, 4, 1024},
      {EncoderSpec::SMALL, 4, 512, 8, 2048}, {EncoderSpec::MEDIUM, 8, 512, 8, 2048},
      {EncoderSpec::BASE, 12, 768, 12, 3072}};
  for (const auto& c : cases) {
    const auto config = ConfigFromSpec(Spec(c.preset));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->layers, c.layers);
    EXPECT_EQ(config->hidden, c.hidden);
    EXPECT_EQ(config->heads, c.heads);
    EXPECT_EQ(config->intermediate, c.intermediate);
    EXPECT_EQ(config->positions.count, 512);
    EXPECT_EQ(config->norm.epsilon, 1e-12f);
  }
  EXPECT_EQ(ConfigFromSpec(EncoderSpec())->hidden, 256);
  EncoderSpec spec = Spec(EncoderSpec::TINY);
  spec.set_hidden(192);
  spec.set_layers(7);
  EXPECT_EQ(ConfigFromSpec(spec)->heads, 3);
  EXPECT_EQ(ConfigFromSpec(spec)->intermediate, 768);
  EXPECT_EQ(ConfigFromSpec(spec)->layers, 7);
}

TEST(ConfigFromSpecTest, ModernEncoders) {
  EncoderSpec spec = Spec(EncoderSpec::MINI);
  spec.set_architecture(EncoderSpec::MODERN);
  spec.set_global_every(2);
  const auto config = ConfigFromSpec(spec);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_STREQ(config->family->model_type, "modernbert");
  EXPECT_EQ(config->hidden, 256);
  EXPECT_EQ(config->intermediate, 704);
  EXPECT_EQ(config->attention.window, 128);
  EXPECT_THAT(config->attention.local, ElementsAre(false, true, false, true));
  EXPECT_EQ(config->embeddings.token_types, 0);
  EXPECT_EQ(config->norm.epsilon, 1e-5f);
  EXPECT_EQ(config->max_tokens(), 512);
  spec.set_preset(EncoderSpec::BASE);
  EXPECT_EQ(ConfigFromSpec(spec)->intermediate, 2048);
}

TEST(ConfigFromSpecTest, OtherArchitectures) {
  for (const auto architecture :
      {EncoderSpec::ELECTRA, EncoderSpec::ALBERT, EncoderSpec::DEBERTA}) {
    for (const int positions : {64, 512}) {
      EncoderSpec spec = Spec(EncoderSpec::MINI);
      spec.set_architecture(architecture);
      spec.set_max_positions(positions);
      auto config = ConfigFromSpec(spec);
      ASSERT_TRUE(config.ok()) << config.status();
      const bool deberta = architecture == EncoderSpec::DEBERTA;
      EXPECT_EQ(config->embedding_size(), deberta ? 256 : 128);
      EXPECT_EQ(config->own_blocks(), architecture == EncoderSpec::ALBERT ? 1 : 4);
      EXPECT_EQ(config->relative.span, !deberta ? 0 : positions == 64 ? 64 : 256);
      EXPECT_EQ(config->embeddings.token_types, deberta ? 0 : 2);
      EXPECT_EQ(config->max_tokens(), positions);
      config->vocab = 30;
      config->head = HeadKind::kMaskedLm;
      const auto again = ParseConfig(FormatConfig(*config), "config.json");
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(CompareSizes(*again, *config), "");
      EXPECT_EQ(again->norm.epsilon, config->norm.epsilon);
      EXPECT_EQ(again->mlp.activation, config->mlp.activation);
    }
  }
}

TEST(ConfigFromSpecTest, NewModelsHaveTheDefaultsOfTheirFamily) {
  for (int i = 0; i < EncoderSpec::Architecture_ARRAYSIZE; ++i) {
    EncoderSpec spec = Spec(EncoderSpec::TINY);
    spec.set_architecture(static_cast<EncoderSpec::Architecture>(i));
    auto config = ConfigFromSpec(spec);
    ASSERT_TRUE(config.ok()) << config.status();
    const Family& family = *config->family;
    EXPECT_EQ(family.in_spec, spec.architecture());
    config->vocab = 30;
    config->head = config->attention.causal ? HeadKind::kCausalLm : HeadKind::kMaskedLm;
    nlohmann::json json = nlohmann::json::parse(FormatConfig(*config));
    for (const char* key : {family.keys.norm_epsilon, family.keys.activation, "rope_parameters"})
      json.erase(key);
    const auto read = ParseConfig(json.dump(), "config.json");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->norm.epsilon, config->norm.epsilon) << family.model_type;
    EXPECT_EQ(read->mlp.activation, config->mlp.activation) << family.model_type;
    EXPECT_EQ(read->positions.rotary_base, config->positions.rotary_base) << family.model_type;
    spec.set_norm_epsilon(0.25e-3);
    spec.set_activation(EncoderSpec::RELU);
    EXPECT_EQ(ConfigFromSpec(spec)->norm.epsilon, 0.25e-3f) << family.model_type;
    EXPECT_EQ(ConfigFromSpec(spec)->mlp.activation, ActivationKind::kRelu) << family.model_type;
  }
}

TEST(ConfigFromSpecTest, PreNormCountsPositionsFromPadPlusOne) {
  EncoderSpec spec = Spec(EncoderSpec::TINY);
  spec.set_norm(EncoderSpec::PRE);
  spec.set_max_positions(128);
  const auto config = ConfigFromSpec(spec);
  EXPECT_EQ(config->positions.offset, 1);
  EXPECT_EQ(config->positions.count, 129);
  EXPECT_EQ(config->max_tokens(), 128);
}

TEST(ConfigFromSpecTest, RefusesSizesThatDoNotFit) {
  EncoderSpec spec = Spec(EncoderSpec::TINY);
  spec.set_heads(3);
  EXPECT_EQ(ExitOf(ConfigFromSpec(spec).status()), Exit::kSpec);
  EXPECT_THAT(std::string(ConfigFromSpec(spec).status().message()),
      HasSubstr("model.encoder.heads: 3 does not divide hidden 128"));
  spec.clear_heads();
  spec.set_hidden(100);
  EXPECT_THAT(
      std::string(ConfigFromSpec(spec).status().message()), HasSubstr("not a multiple of 64"));
  EXPECT_THAT(std::string(ConfigFromSpec(Spec(EncoderSpec::CUSTOM)).status().message()),
      HasSubstr("model.encoder.preset"));
}

TEST(ParseConfigTest, ReadsTheMinimum) {
  const auto config = ParseConfig(kMinimal, "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab, 120);
  EXPECT_EQ(config->positions.count, 48);
  EXPECT_EQ(config->head, HeadKind::kMaskedLm);
  EXPECT_EQ(config->family, FindFamily("bert"));
  EXPECT_EQ(config->mlp.activation, ActivationKind::kGelu);
  EXPECT_FLOAT_EQ(config->dropout, 0.1f);
  EXPECT_EQ(config->norm.epsilon, 1e-12f);
  EXPECT_EQ(config->positions.offset, 0);
  EXPECT_LT(config->classifier_dropout, 0);
}

TEST(ParseConfigTest, ReadsOldAndOptionalSpellings) {
  for (const char* name : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}) {
    EXPECT_EQ(ParseConfig(With((std::string(R"({"hidden_act":")") + name + "\"}").c_str()), "c")
                  ->mlp.activation,
        ActivationKind::kGeluTanh);
  }
  const auto config = ParseConfig(
      With(
          R"({"torch_dtype":"float16","position_embedding_type":"absolute","classifier_dropout":0.3,"hidden_act":"relu",
      "layer_norm_eps":1e-5,"transformers_version":"4.20.0","gradient_checkpointing":false,"something":{},"pad_token_id":3,"type_vocab_size":1})"),
      "c");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FLOAT_EQ(config->head_dropout(), 0.3f);
  EXPECT_EQ(config->mlp.activation, ActivationKind::kRelu);
  EXPECT_EQ(config->pad_id, 3);
  EXPECT_EQ(config->embeddings.token_types, 1);
  EXPECT_EQ(ParseConfig(With(R"({"architectures":null})"), "c")->head, HeadKind::kNone);
  EXPECT_EQ(ParseConfig(With(R"({"architectures":["BertModel"]})"), "c")->head, HeadKind::kNone);
  EXPECT_EQ(ParseConfig(With(R"({"architectures":["BertForPreTraining"]})"), "c")->head,
      HeadKind::kMaskedLm);
}

TEST(ParseConfigTest, ReadsGpt2) {
  const auto parse = [](const char* members) {
    return ParseConfig(
        absl::StrCat(R"({"model_type":"gpt2","vocab_size":90,"n_embd":16,"n_layer":2,)",
            R"("n_head":2,"n_positions":32,"architectures":["GPT2LMHeadModel"])", members, "}"),
        "c");
  };
  const auto config = parse(R"(,"n_inner":null,"eos_token_id":5,"resid_pdrop":0.2)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, HeadKind::kCausalLm);
  EXPECT_EQ(config->intermediate, 64);
  EXPECT_EQ(config->end_id, 5);
  EXPECT_EQ(config->mlp.activation, ActivationKind::kGeluTanh);
  EXPECT_FLOAT_EQ(config->dropout, 0.2f);
  EXPECT_EQ(parse(R"(,"n_inner":48)")->intermediate, 48);
  for (const char* other : {R"(,"scale_attn_by_inverse_layer_idx":true)",
           R"(,"scale_attn_weights":false)", R"(,"add_cross_attention":true)"})
    EXPECT_FALSE(parse(other).ok()) << other;
  EXPECT_EQ(
      ParseConfig(With(R"({"architectures":["BertLMHeadModel"]})"), "c")->head, HeadKind::kNone);
}

TEST(ParseConfigTest, ReadsLabelsByTheirIds) {
  const auto config = ParseConfig(
      With(
          R"({"architectures":["BertForTokenClassification"],"label2id":{"O":0,"B":1,"I":2},"id2label":{"2":"I","0":"O","1":"B"}})"),
      "c");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, HeadKind::kTokenTagging);
  EXPECT_THAT(config->labels, ElementsAre("O", "B", "I"));
  EXPECT_FALSE(config->pooler);
  const auto two = ParseConfig(With(R"({"architectures":["BertForSequenceClassification"]})"), "c");
  EXPECT_THAT(two->labels, ElementsAre("LABEL_0", "LABEL_1"));
  EXPECT_TRUE(two->pooler);
}

TEST(ParseConfigTest, RefusesByField) {
  const struct {
    std::string changes;
    const char* message;
  } cases[] = {
      {R"({"model_type":"t5"})", "model_type: t5"},
      {R"({"model_type":"REMOVE"})", "model_type: missing"},
      {R"({"hidden_act":"selu"})", "hidden_act: selu"},
      {R"({"hidden_act":5})", "hidden_act: expected a string"},
      {R"({"position_embedding_type":"relative_key"})", "position_embedding_type: relative_key"},
      {R"({"is_decoder":true})", "is_decoder"},
      {R"({"vocab_size":0})", "vocab_size: expected a whole number from 1 to 100000000, found 0"},
      {R"({"vocab_size":-1})", "found -1"},
      {R"({"vocab_size":4294967296})", "found 4294967296"},
      {R"({"vocab_size":18446744073709551615})", "found 18446744073709551615"},
      {R"({"vocab_size":120.5})", "found 120.5"},
      {R"({"vocab_size":"120"})", "found \"120\""},
      {R"({"vocab_size":"REMOVE"})", "vocab_size: missing"},
      {R"({"vocab_size":null})", "vocab_size: missing"},
      {R"({"hidden_size":2147483648})", "hidden_size"},
      {R"({"hidden_size":66})", "num_attention_heads: 4 does not divide hidden_size 66"},
      {R"({"num_hidden_layers":1000000})", "num_hidden_layers"},
      {R"({"num_attention_heads":0})", "num_attention_heads"},
      {R"({"intermediate_size":[]})", "intermediate_size"},
      {R"({"max_position_embeddings":1000000000})", "max_position_embeddings"},
      {R"({"hidden_dropout_prob":1})", "hidden_dropout_prob"},
      {R"({"layer_norm_eps":-1e-5})", "layer_norm_eps"},
      {R"({"pad_token_id":120})", "pad_token_id: 120"},
      {R"({"architectures":"BertModel"})", "architectures"},
      {R"({"architectures":[1]})", "architectures"},
      {R"({"architectures":["BertForSequenceClassification"],"id2label":{"0":"x","2":"y"}})",
          "id2label: no \"1\""},
      {R"({"architectures":["BertForSequenceClassification"],"id2label":{"0":"x","1":"x"}})",
          "id2label: x is given twice"},
      {R"({"architectures":["BertForSequenceClassification"],"id2label":{"0":"x","1":5}})",
          "id2label"},
      {R"({"architectures":["BertForSequenceClassification"],"id2label":{"0":")" +
              std::string(1025, 'x') + "\"}}",
          "id2label: \"0\": expected at most 1024 bytes"},
      {R"({"architectures":["BertForTokenClassification"],"id2label":["x"]})", "id2label"},
      {R"({"model_type":"roberta-prelayernorm","pad_token_id":47})", "max_position_embeddings"},
      {R"({"model_type":"roberta","max_position_embeddings":2})",
          "max_position_embeddings: 2: expected at least 5"},
      {R"({"cloze":1})", "cloze"},
      {R"({"cloze":{"sinusoid_base":0}})", "sinusoid_base"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ParseConfig(With(c.changes), "dir/config.json").status();
    EXPECT_EQ(ExitOf(status), Exit::kData) << c.changes;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.changes;
    EXPECT_THAT(std::string(status.message()), HasSubstr("dir/config.json: "));
  }
  for (const char* text :
      {"", "{", "[]", "null", "{\"a\":1}x", "{\"model_type\":\"bert\",\"model_type\":\"bert\"}"}) {
    EXPECT_EQ(ExitOf(ParseConfig(text, "c").status()), Exit::kData) << text;
  }
  EXPECT_EQ(ExitOf(ParseConfig("{\"a\":" + std::string(100000, '['), "c").status()), Exit::kData);
}

TEST(FormatConfigTest, KeepsTheIdsOfSpecialTokens) {
  const auto config = ParseConfig(
      With(R"({"bos_token_id":5,"eos_token_id":6,"cls_token_id":7,"sep_token_id":null})"), "c");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto json = nlohmann::json::parse(FormatConfig(*config));
  EXPECT_EQ(json["bos_token_id"], 5);
  EXPECT_EQ(json["eos_token_id"], 6);
  EXPECT_EQ(json["cls_token_id"], 7);
  EXPECT_TRUE(json.contains("sep_token_id") && json["sep_token_id"].is_null());
  EXPECT_FALSE(
      nlohmann::json::parse(FormatConfig(*ParseConfig(kMinimal, "c"))).contains("bos_token_id"));
}

TEST(FormatConfigTest, SaysIfTheOutputLayerIsTied) {
  const auto tied = [](const std::string& changes) {
    const auto config = ParseConfig(With(changes), "c");
    const auto json = nlohmann::json::parse(FormatConfig(*config));
    EXPECT_EQ(json["tie_word_embeddings"], !config->untied);
    return !config->untied;
  };
  EXPECT_TRUE(tied("{}"));
  EXPECT_FALSE(tied(R"({"tie_word_embeddings":false})"));
  EXPECT_TRUE(tied(R"({"tie_word_embeddings":false,"architectures":["BertModel"]})"));
}

TEST(FormatConfigTest, ComesBackAsItWas) {
  for (const auto norm : {EncoderSpec::POST, EncoderSpec::PRE}) {
    for (const auto head : {HeadKind::kNone, HeadKind::kMaskedLm, HeadKind::kSequenceClassification,
             HeadKind::kTokenTagging}) {
      for (const bool pooler : {false, true}) {
        for (const auto positions : {Positions::kLearned, Positions::kSinusoidal}) {
          EncoderSpec spec = Spec(EncoderSpec::TINY);
          spec.set_norm(norm);
          ModelConfig config = *ConfigFromSpec(spec);
          config.vocab = 321;
          config.head = head;
          config.pooler = pooler;
          config.positions.kind = positions;
          config.mlp.activation = ActivationKind::kGeluTanh;
          config.positions.sinusoid_base = 5000.5f;
          config.dropout = 0.3f;
          config.classifier_dropout = 0.7f;
          const bool labels =
              head == HeadKind::kSequenceClassification || head == HeadKind::kTokenTagging;
          if (labels)
            config.labels = {"ja", "nei \"\xC3\xB8\"\n", "10", "9", "8", "7", "6", "5", "4", "3",
                "2"};  // ids of two digits
          const std::string json = FormatConfig(config);
          const auto again = ParseConfig(json, "config.json");
          ASSERT_TRUE(again.ok()) << again.status() << json;
          EXPECT_EQ(FormatConfig(*again), json);
          EXPECT_EQ(again->head, head);
          EXPECT_EQ(again->pooler, pooler);
          EXPECT_EQ(again->labels, config.labels);
          EXPECT_EQ(again->positions.kind, positions);
          EXPECT_EQ(again->family, config.family);
          EXPECT_EQ(again->dropout, 0.3f);
          EXPECT_EQ(again->norm.epsilon, config.norm.epsilon);
          EXPECT_EQ(again->positions.offset, config.positions.offset);
          EXPECT_EQ(again->positions.count, config.positions.count);
          EXPECT_EQ(again->mlp.activation, ActivationKind::kGeluTanh);
          const bool special = positions == Positions::kSinusoidal ||
                               pooler != (head == HeadKind::kSequenceClassification);
          EXPECT_EQ(nlohmann::json::parse(json).contains("cloze"), special);
        }
      }
    }
  }
}

TEST(FormatConfigTest, KeepsWhatTheTaskStores) {
  ModelConfig config = *ConfigFromSpec(Spec(EncoderSpec::TINY));
  config.vocab = 100;
  config.head = HeadKind::kTokenTagging;
  config.labels = {"B-A", "I-A", "O"};
  config.crf = true;
  config.task_fields = {{"viterbi", false}, {"window", 77}, {"later", {1, "x"}}};
  const std::string json = FormatConfig(config);
  EXPECT_EQ(Json::parse(json)["cloze"],
      Json::parse(R"({"crf": true, "later": [1, "x"], "viterbi": false, "window": 77})"));
  const auto again = ParseConfig(json, "config.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->crf);
  EXPECT_EQ(again->task_fields, config.task_fields);
  EXPECT_EQ(FormatConfig(*again), json);
}

TEST(FormatConfigTest, WritesTheNamesOfTransformers) {
  ModelConfig config = *ConfigFromSpec(Spec(EncoderSpec::TINY));
  config.vocab = 100;
  config.head = HeadKind::kSequenceClassification;
  config.pooler = true;
  config.labels = {"no", "yes"};
  const auto json = nlohmann::json::parse(FormatConfig(config));
  EXPECT_EQ(json["architectures"], nlohmann::json({"BertForSequenceClassification"}));
  EXPECT_EQ(json["hidden_dropout_prob"].dump(), "0.1");
  EXPECT_EQ(json["id2label"]["1"], "yes");
  EXPECT_EQ(json["label2id"]["yes"], 1);
  EXPECT_TRUE(json["classifier_dropout"].is_null());
  config.family = FindFamily("roberta-prelayernorm");
  config.head = HeadKind::kMaskedLm;
  EXPECT_EQ(nlohmann::json::parse(FormatConfig(config))["architectures"][0],
      "RobertaPreLayerNormForMaskedLM");
  EXPECT_EQ(config.Key(Role::kFinalNorm, 1).name, "roberta_prelayernorm.LayerNorm");
}

TEST(FormatConfigTest, KeepsRoberta) {
  const char* text =
      R"({"model_type":"roberta","architectures":["RobertaForSequenceClassification"],"vocab_size":100,"hidden_size":16,
      "num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":32,"max_position_embeddings":514,"type_vocab_size":1,
      "layer_norm_eps":1e-5})";
  const auto config = ParseConfig(text, "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->family, FindFamily("roberta"));
  EXPECT_EQ(config->pad_id, 1);
  EXPECT_EQ(config->positions.offset, 2);
  EXPECT_EQ(config->max_tokens(), 512);
  EXPECT_EQ(config->Key(Role::kQuery, 1).name, "roberta.encoder.layer.1.attention.self.query");
  const auto again = ParseConfig(FormatConfig(*config), "config.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(FormatConfig(*again), FormatConfig(*config));
  const auto json = nlohmann::json::parse(FormatConfig(*config));
  EXPECT_EQ(json["model_type"], "roberta");
  EXPECT_EQ(json["architectures"][0], "RobertaForSequenceClassification");
  EXPECT_FALSE(json.contains("cloze"));
}

TEST(FormatConfigTest, KeepsDistilBert) {
  const char* text =
      R"({"model_type":"distilbert","architectures":["DistilBertForSequenceClassification"],"vocab_size":100,"dim":16,
      "n_layers":2,"n_heads":2,"hidden_dim":32,"max_position_embeddings":64,"dropout":0.3,"attention_dropout":0.2})";
  const auto config = ParseConfig(text, "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->embeddings.token_types, 0);
  EXPECT_EQ(config->norm.epsilon, 1e-12f);
  EXPECT_FLOAT_EQ(config->head_dropout(), 0.2f) << "the default of seq_classif_dropout";
  EXPECT_EQ(config->Key(Role::kQuery, 1).name, "distilbert.transformer.layer.1.attention.q_lin");
  ModelConfig tagger = *config;
  tagger.head = HeadKind::kTokenTagging;
  EXPECT_FLOAT_EQ(tagger.head_dropout(), 0.3f);
  const auto again = ParseConfig(FormatConfig(*config), "config.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(FormatConfig(*again), FormatConfig(*config));
  const auto json = nlohmann::json::parse(FormatConfig(*config));
  EXPECT_EQ(json["architectures"][0], "DistilBertForSequenceClassification");
  EXPECT_EQ(json["dim"], 16);
  EXPECT_EQ(json["seq_classif_dropout"].dump(), "0.2");
  for (const char* absent : {"hidden_size", "type_vocab_size", "layer_norm_eps", "cloze"})
    EXPECT_FALSE(json.contains(absent)) << absent;
}

// A ModernBERT configuration with these members as well.
std::string Modern(const char* members) {
  return absl::StrCat(R"({"model_type":"modernbert","vocab_size":100,"hidden_size":16,)",
      R"("num_hidden_layers":4,"num_attention_heads":2,"intermediate_size":24,)",
      R"("max_position_embeddings":64,"pad_token_id":3,)",
      R"("architectures":["ModernBertForSequenceClassification"])", members, "}");
}

TEST(FormatConfigTest, KeepsModernBert) {
  const auto old = ParseConfig(Modern(R"(,"global_attn_every_n_layers":2,"local_attention":8,
      "global_rope_theta":5000.0,"local_rope_theta":null,"classifier_pooling":"mean")"),
      "c");
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_THAT(old->attention.local, ElementsAre(false, true, false, true));
  EXPECT_EQ(old->attention.window, 8);
  EXPECT_EQ(old->positions.rotary_base[0], 5000);
  EXPECT_EQ(old->positions.rotary_base[1], 10000);
  EXPECT_EQ(old->dropout, 0);
  EXPECT_EQ(old->norm.epsilon, 1e-5f);
  EXPECT_EQ(old->pooling, Pool::kMean);
  EXPECT_EQ(old->embeddings.token_types, 0);
  const auto again = ParseConfig(FormatConfig(*old), "config.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(FormatConfig(*again), FormatConfig(*old));
  const auto json = nlohmann::json::parse(FormatConfig(*old));
  EXPECT_EQ(json["layer_types"][1], "sliding_attention");
  EXPECT_EQ(json["rope_parameters"]["full_attention"]["rope_theta"], 5000);
  EXPECT_EQ(json["classifier_dropout"], 0);
  EXPECT_FALSE(json.contains("cloze"));
  EXPECT_EQ(old->Key(Role::kQueryKeyValue, 1).name, "model.layers.1.attn.Wqkv");
  const auto plain = ParseConfig(Modern(""), "c");
  EXPECT_THAT(plain->attention.local, ElementsAre(false, true, true, false));
  EXPECT_EQ(plain->positions.rotary_base[0], 160000);
  EXPECT_EQ(plain->attention.window, 128);
  EXPECT_EQ(plain->pooling, Pool::kClass);
}

TEST(ParseConfigTest, RefusesModernBertsByField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(,"layer_types":["full_attention"])", "layer_types: expected a list of 4"},
      {R"(,"layer_types":"full_attention")", "layer_types: expected a list of 4"},
      {R"(,"layer_types":["full_attention","chunked_attention",1,2])",
          "layer_types: \"chunked_attention\": expected"},
      {R"(,"local_attention":0)", "local_attention: "},
      {R"(,"local_attention":-1)", "local_attention: "},
      {R"(,"global_attn_every_n_layers":0)", "global_attn_every_n_layers: "},
      {R"(,"global_rope_theta":0)", "global_rope_theta: "},
      {R"(,"rope_parameters":{"full_attention":{"rope_type":"yarn"}})", "rope_type: yarn"},
      {R"(,"rope_parameters":{"sliding_attention":{"rope_theta":"x"}})", "rope_theta: "},
      {R"(,"rope_parameters":{"full_attention":5})", "rope_parameters"},
      {R"(,"rope_parameters":5)", "rope_parameters"},
      {R"(,"attention_bias":true)", "attention_bias: true"},
      {R"(,"norm_bias":true)", "norm_bias: true"},
      {R"(,"decoder_bias":false)", "decoder_bias: false"},
      {R"(,"classifier_pooling":"max")", "classifier_pooling: max"},
      {R"(,"classifier_activation":"relu")", "classifier_activation: relu"},
      {R"(,"hidden_activation":"selu")", "hidden_activation: selu"},
  };
  for (const auto& [members, message] : cases) {
    const absl::Status status = ParseConfig(Modern(members), "c").status();
    EXPECT_EQ(ExitOf(status), Exit::kData) << members;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << members;
  }
  std::string odd = Modern("");
  odd.replace(odd.find("\"hidden_size\":16"), 16, "\"hidden_size\":18");
  EXPECT_THAT(std::string(ParseConfig(odd, "c").status().message()),
      HasSubstr("num_attention_heads: 2: heads of 9 dimensions: expected an even number"));
}

TEST(FormatConfigTest, KeepsNomicBertOfTheHub) {
  const std::string hub =
      R"({"model_type":"nomic_bert","architectures":["NomicBertModel"],"vocab_size":100,"n_embd":16,
      "n_layer":2,"n_head":2,"n_inner":32,"n_positions":64,"layer_norm_epsilon":1e-7,"resid_pdrop":0.5,
      "activation_function":"swiglu","rotary_emb_base":500,"rotary_emb_fraction":1.0,"prenorm":false,
      "rotary_scaling_factor":null)";
  const auto config = ParseConfig(hub + "}", "c");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->hidden, 16);
  EXPECT_EQ(config->intermediate, 32);
  EXPECT_EQ(config->norm.epsilon, 1e-7f);
  EXPECT_EQ(config->dropout, 0.5f);
  EXPECT_EQ(config->attention.dropout, 0);
  EXPECT_EQ(config->positions.rotary_base[0], 500);
  EXPECT_EQ(config->mlp.activation, ActivationKind::kSilu);
  const auto json = nlohmann::json::parse(FormatConfig(*config));
  EXPECT_EQ(json["hidden_size"], 16);
  EXPECT_EQ(json["rope_parameters"]["rope_theta"], 500);
  EXPECT_EQ(FormatConfig(*ParseConfig(FormatConfig(*config), "c")), FormatConfig(*config));
  EXPECT_EQ(CanonicalName("encoder.layers.1.attn.out_proj.weight", *config->family),
      "nomic_bert.layers.1.self_attn.o_proj.weight");
  EXPECT_EQ(CanonicalName("nomic_bert.emb_ln.bias", *config->family),
      "nomic_bert.embeddings.LayerNorm.bias");
  for (const char* member : {"\"prenorm\":true", "\"qkv_proj_bias\":true",
           "\"rotary_scaling_factor\":2", "\"rotary_emb_fraction\":0.5", "\"moe_every_n_layers\":2",
           "\"activation_function\":\"gelu\"", "\"rotary_emb_interleaved\":true",
           "\"rope_parameters\":{\"rope_type\":\"yarn\"}"}) {
    nlohmann::json wrong = nlohmann::json::parse(hub + "}");
    wrong.update(nlohmann::json::parse(absl::StrCat("{", member, "}")));
    const absl::Status status = ParseConfig(wrong.dump(), "c").status();
    const std::string text = member, name = text.substr(1, text.find('"', 1) - 1);
    EXPECT_EQ(ExitOf(status), Exit::kData) << member;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name + ": ")) << member;
  }
}

TEST(Config, TheWidestModelFitsTheKernels) {
  const auto* hidden = EncoderSpec::descriptor()->FindFieldByName("hidden");
  EXPECT_LE(hidden->options().GetExtension(limits).max(), kMaxDropoutRow);
  const auto config = [](int64_t width) {
    return With(absl::StrCat("{\"hidden_size\": ", width, "}").c_str());
  };
  EXPECT_TRUE(ParseConfig(config(kMaxDropoutRow), "x").ok());
  EXPECT_FALSE(ParseConfig(config(kMaxDropoutRow + 1), "x").ok());
}

}  // namespace
}  // namespace cloze
