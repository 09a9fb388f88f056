// Adapter folders: what is written is PEFT's, what is read gives the same numbers, and what does
// not fit is said.
#include "encoder/folder/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "core/base/file.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/model_folder.h"
#include "encoder/model.h"
#include "tests/encoder/small_config.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig Classifier() { return SmallConfig(HeadKind::kSequenceClassification); }

TrainableSpec Lora(std::vector<LoraSpec::Target> targets = {}) {
  TrainableSpec spec;
  spec.mutable_lora()->set_rank(3);
  spec.mutable_lora()->set_alpha(6);
  for (const LoraSpec::Target target : targets) spec.mutable_lora()->add_targets(target);
  return spec;
}

Batch Sentences() {
  Batch batch;
  const std::vector<int32_t> a = {2, 7, 8, 3}, b = {2, 9, 3};
  for (const int32_t row : {0, 4}) batch.rows.push_back(row);
  batch.Add(a, 4, 1);
  batch.Add(b, 2, 2);
  batch.Pad();
  return batch;
}

std::vector<float> Logits(Model& model, int adapter = 0) {
  const Batch batch = Sentences();
  model.arena().Reset();
  const Pass pass = model.NewPass(batch, DType::kF32, false, 0, adapter);
  const Mat hidden = model.backbone().Infer(pass);
  const Mat logits = model.head().Logits(pass, hidden);
  return {logits.f32(), logits.f32() + 2 * logits.cols};
}

void ExpectNear(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

class AdapterTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // A base, and an adapter of it in which every parameter is random; returns the model of both.
  std::unique_ptr<Model> Make(
      const ModelConfig& config, const TrainableSpec& spec, const std::string& name = "adapter") {
    Model base(config, false);
    base.Initialize(1);
    EXPECT_TRUE(SaveWeights(Path("base"), config, base.params()).ok());
    auto model = std::make_unique<Model>(config, true, spec);
    std::vector<std::string> fresh;
    EXPECT_TRUE(model->Load(Path("base"), 7, &fresh).ok());
    for (ParamId id = 0; id < model->params().size(); ++id) {
      const Param& p = model->params().param(id);
      if (!p.trainable) continue;
      float* value = model->params().value(id).f32();
      for (int64_t i = 0; i < p.size(); ++i)
        value[i] += 0.3f * std::sin(static_cast<float>(i + 13 * id));
    }
    model->params().Changed();
    EXPECT_TRUE(SaveAdapter(Path(name), config, spec.lora(), "../base", model->params()).ok());
    return model;
  }
  json ReadJson(const std::string& name) { return json::parse(std::ifstream(Path(name))); }
  void WriteJson(const std::string& name, const json& value) {
    std::ofstream(Path(name)) << value.dump();
  }
  absl::StatusOr<Adapter> Open(const ModelConfig& config, const std::string& name = "adapter") {
    return Adapter::Open(Path(name), config);
  }
  void ExpectRefused(const absl::Status& status, Exit exit, const std::string& part) {
    EXPECT_EQ(ExitOf(status), exit) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    EXPECT_THAT(std::string(status.message()), HasSubstr("adapter"));
  }

  const TestFolder own_;
  const std::string folder_ = own_.path();
};

TEST_F(AdapterTest, HasTheNamesOfPeft) {
  Make(Classifier(), Lora());
  const auto reader = SafetensorsReader::Open(Path("adapter/adapter_model.safetensors"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> names;
  for (const TensorInfo& t : reader->tensors()) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  const std::string l0 = "base_model.model.bert.encoder.layer.0.attention.self.",
                    l1 = "base_model.model.bert.encoder.layer.1.attention.self.";
  EXPECT_THAT(names,
      ElementsAre(l0 + "query.lora_A.weight", l0 + "query.lora_B.weight",
          l0 + "value.lora_A.weight", l0 + "value.lora_B.weight", l1 + "query.lora_A.weight",
          l1 + "query.lora_B.weight", l1 + "value.lora_A.weight", l1 + "value.lora_B.weight",
          "base_model.model.bert.pooler.dense.bias", "base_model.model.bert.pooler.dense.weight",
          "base_model.model.classifier.bias", "base_model.model.classifier.weight"));
  EXPECT_THAT(reader->Find(l0 + "query.lora_A.weight")->shape, ElementsAre(3, 8));
  EXPECT_THAT(reader->Find(l0 + "query.lora_B.weight")->shape, ElementsAre(8, 3));
  const json config = ReadJson("adapter/adapter_config.json");
  EXPECT_EQ(config["peft_type"], "LORA");
  EXPECT_EQ(config["task_type"], "SEQ_CLS");
  EXPECT_EQ(config["r"], 3);
  EXPECT_EQ(config["lora_alpha"], 6);
  EXPECT_EQ(config["target_modules"], json({"query", "value"}));
  EXPECT_EQ(config["modules_to_save"], json({"pooler", "classifier"}));
  EXPECT_EQ(config["base_model_name_or_path"], "../base");
}

TEST_F(AdapterTest, NamesItsBaseRelativeToItsFolder) {
  Make(Classifier(), Lora({LoraSpec::QUERY}));
  EXPECT_EQ(*BaseOf(Path("adapter")), Path("adapter/../base"));
  json config = ReadJson("adapter/adapter_config.json");
  const std::string hint = ": expected the base as the model";
  for (const auto& [name, what] : {std::pair(Path("base"), "is not a relative path"),
           std::pair(std::string("base"), "does not exist relative to its folder"),
           std::pair(std::string("../gone"), "does not exist relative to its folder"),
           std::pair(std::string(), "names no base")}) {
    config["base_model_name_or_path"] = name;
    WriteJson("adapter/adapter_config.json", config);
    ExpectRefused(BaseOf(Path("adapter")).status(), Exit::kNoInput, absl::StrCat(what, hint));
  }
  config["base_model_name_or_path"] = "../base";
  WriteJson("adapter/adapter_config.json", config);
  std::filesystem::create_directories(Path("deep/moved"));
  ASSERT_TRUE(MoveBase(Path("adapter"), Path("deep/moved"), Path("deep/moved")).ok());
  config["base_model_name_or_path"] = "../../base";
  EXPECT_EQ(ReadJson("deep/moved/adapter_config.json"), config);
}

TEST_F(AdapterTest, TargetsMatchNoOtherLayer) {
  Make(Classifier(), Lora({LoraSpec::OUTPUT, LoraSpec::KEY}));
  EXPECT_EQ(ReadJson("adapter/adapter_config.json")["target_modules"],
      json({"key", "0.output.dense", "1.output.dense"}));
  Make(Classifier(), Lora({LoraSpec::OUTPUT, LoraSpec::ATTENTION_OUTPUT, LoraSpec::INTERMEDIATE}));
  EXPECT_EQ(ReadJson("adapter/adapter_config.json")["target_modules"],
      json({"intermediate.dense", "output.dense"}));
  Make(Classifier(), Lora({LoraSpec::ATTENTION_OUTPUT}));
  EXPECT_EQ(
      ReadJson("adapter/adapter_config.json")["target_modules"], json({"attention.output.dense"}));
}

TEST_F(AdapterTest, TogetherBesideAndMergedGiveTheSameNumbers) {
  for (const char* family : {"bert", "roberta-prelayernorm", "distilbert", "modernbert", "electra",
           "albert", "nomic_bert"}) {
    for (const HeadKind head :
        {HeadKind::kSequenceClassification, HeadKind::kTokenTagging, HeadKind::kMaskedLm}) {
      const ModelConfig config = SmallConfig(head, family);
      TrainableSpec spec = Lora({LoraSpec::QUERY, LoraSpec::KEY, LoraSpec::VALUE,
          LoraSpec::ATTENTION_OUTPUT, LoraSpec::INTERMEDIATE, LoraSpec::OUTPUT});
      spec.mutable_lora()->set_rslora(true);
      spec.mutable_lora()->set_embeddings(true);
      const auto one = Make(config, spec, "one");
      spec.mutable_lora()->clear_targets();
      spec.mutable_lora()->set_rank(2);
      spec.mutable_lora()->set_embeddings(false);
      const auto two = Make(config, spec, "two");
      const std::vector<float> want = Logits(*one), other = Logits(*two);
      std::vector<Adapter> adapters;
      for (const char* name : {"one", "two"}) adapters.push_back(*Open(config, name));
      std::vector<std::string> fresh, whole;

      for (const Param& p : adapters[0].whole()) whole.push_back(p.name);
      Model together(adapters[0]);
      ASSERT_TRUE(together.Load(Path("base"), 0, &fresh, whole).ok());
      EXPECT_THAT(fresh, ElementsAre());
      ASSERT_TRUE(adapters[0].CheckBase(HashParams(together.params(), config)).ok());
      ASSERT_TRUE(adapters[0].Load(0, &together.params()).ok());
      EXPECT_EQ(Logits(together), want);

      Model beside(config, adapters);
      ASSERT_TRUE(beside.Load(Path("base"), 0, &fresh).ok());
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(adapters[i].CheckBase(HashParams(beside.params(), config)).ok());
        ASSERT_TRUE(adapters[i].Load(i, &beside.params()).ok());
      }
      EXPECT_EQ(Logits(beside, 0), want);
      EXPECT_EQ(Logits(beside, 1), other);
      Model base(config, false);
      ASSERT_TRUE(base.Load(Path("base"), 0, &fresh).ok());
      EXPECT_EQ(Logits(beside, -1), Logits(base));
      EXPECT_NE(Logits(beside, -1), want);

      const auto file = ReadAdapterConfig(Path("one"));
      ASSERT_TRUE(file.ok()) << file.status();
      MergeLora(file->lora, &together.params());
      ASSERT_TRUE(SaveWeights(Path("merged"), config, together.params()).ok());
      const auto merged_config = LoadConfig(Path("merged"));
      ASSERT_TRUE(merged_config.ok()) << merged_config.status();
      Model merged(*merged_config, false);
      ASSERT_TRUE(merged.Load(Path("merged"), 0, &fresh).ok());
      EXPECT_THAT(fresh, ElementsAre());
      ExpectNear(Logits(merged), want);
    }
  }
}

TEST_F(AdapterTest, StartsAsItsBase) {
  Make(Classifier(), Lora());
  Model base(Classifier(), false), fresh_lora(Classifier(), true, Lora());
  std::vector<std::string> fresh;
  ASSERT_TRUE(base.Load(Path("base"), 0, &fresh).ok());
  ASSERT_TRUE(fresh_lora.Load(Path("base"), 0, &fresh).ok());
  EXPECT_EQ(Logits(fresh_lora), Logits(base));
  const ParamStore& store = fresh_lora.params();
  double sum = 0, most = 0;
  const ConstMat a =
      store.value(store.Find("bert.encoder.layer.0.attention.self.query.lora_A.weight", 0));
  for (int64_t i = 0; i < a.rows * a.cols; ++i)
    sum += std::fabs(a.f32()[i]), most = std::max<double>(most, std::fabs(a.f32()[i]));
  EXPECT_LE(most,
      1 / std::sqrt(
              8.0));  // Kaiming uniform with a = sqrt(5): +-1 / sqrt(in), of mean size half that
  EXPECT_NEAR(sum / (a.rows * a.cols), 0.5 / std::sqrt(8.0), 0.06);
}

TEST_F(AdapterTest, ReadsOneOfPeftItself) {
  const auto model = Make(Classifier(), Lora());
  std::filesystem::remove(Path("adapter/config.json"));
  WriteJson("adapter/adapter_config.json",
      {{"peft_type", "LORA"}, {"task_type", "SEQ_CLS"}, {"r", 3}, {"lora_alpha", 6},
          {"target_modules", {"query", "value"}}, {"base_model_name_or_path", nullptr},
          {"inference_mode", true}});
  const auto adapter = Open(SmallConfig(HeadKind::kMaskedLm));
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_THAT(adapter->config().labels, ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  Model together(*adapter);
  std::vector<std::string> fresh;
  ASSERT_TRUE(together.Load(Path("base"), 0, &fresh).ok());
  ASSERT_TRUE(adapter->Load(0, &together.params()).ok());
  EXPECT_EQ(Logits(together), Logits(*model));
  WriteJson(
      "adapter/adapter_config.json", {{"peft_type", "LORA"}, {"task_type", "SEQ_CLS"}, {"r", 3},
                                         {"lora_alpha", 6}, {"target_modules", {"query", "alue"}}});
  ExpectRefused(Open(SmallConfig(HeadKind::kMaskedLm)).status(), Exit::kMismatch,
      "attention.self.value.lora_A.weight: target_modules does not name its module");
}

TEST_F(AdapterTest, RefusesOtherBases) {
  Make(Classifier(), Lora());
  ModelConfig other = Classifier();
  other.hidden = 16;
  ExpectRefused(
      Open(other).status(), Exit::kMismatch, "another base: hidden_size is 8, expected 16");
  std::filesystem::remove(Path("adapter/config.json"));
  ExpectRefused(Open(other).status(), Exit::kMismatch, "shape [");
  other = Classifier();
  other.layers = 1;
  ExpectRefused(Open(other).status(), Exit::kMismatch,
      "bert.encoder.layer.1.attention.self.query.lora_A.weight: the base has no such module");
  const auto adapter = Open(Classifier());
  ASSERT_TRUE(adapter.ok());
  Model strange(Classifier(), false);
  strange.Initialize(2);
  ExpectRefused(adapter->CheckBase(HashParams(strange.params(), Classifier())), Exit::kMismatch,
      "not those that it was trained on");
}

TEST_F(AdapterTest, RefusesWhatDoesNotFit) {
  Make(Classifier(), Lora());
  const json good = ReadJson("adapter/adapter_config.json");
  const auto refused = [&](const char* field, const json& value, Exit exit, const char* part) {
    json bad = good;
    bad[field] = value;
    WriteJson("adapter/adapter_config.json", bad);
    ExpectRefused(Open(Classifier()).status(), exit, part);
  };
  refused("r", 0, Exit::kData, "r: expected a whole number from 1 to 65536, found 0");
  refused("r", "8", Exit::kData, "r: expected a whole number from 1 to 65536, found \"8\"");
  refused("r", 4, Exit::kMismatch, "does not fit its rank");
  refused("lora_alpha", nullptr, Exit::kData, "lora_alpha: missing");
  refused("lora_dropout", 1.5, Exit::kData, "found 1.5");
  refused("peft_type", "IA3", Exit::kMismatch, "peft_type");
  refused("use_dora", true, Exit::kMismatch, "use_dora");
  refused("bias", "all", Exit::kMismatch, "bias: ");
  refused("init_lora_weights", "pissa_niter_4", Exit::kMismatch, "it changes the base");
  refused("rank_pattern", {{"query", 4}}, Exit::kMismatch, "rank_pattern");
  for (const char* start : {"lora_ga", "LoftQ", "olora", "corda", "of 2030"})
    refused("init_lora_weights", start, Exit::kMismatch, "it changes the base");
  refused("layer_replication", json::array({{0, 2}, {0, 1}}), Exit::kMismatch, "layer_replication");
  refused("use_qalora", true, Exit::kMismatch, "use_qalora");
  refused("kasa_config", {{"beta", 1}}, Exit::kMismatch, "kasa_config");
  refused("trainable_token_indices", {1, 2}, Exit::kMismatch, "trainable_token_indices");
  refused("use_of_2030", false, Exit::kMismatch, "use_of_2030: unknown member");
  refused("modules_to_save", "classifier", Exit::kData, "expected a list of names");
  WriteJson("adapter/adapter_config.json", good);
  json labels = ReadJson("adapter/config.json");
  const json fitting = labels;
  labels["id2label"] = {{"0", "x"}, {"1", "y"}};
  labels["label2id"] = {{"x", 0}, {"y", 1}};
  WriteJson("adapter/config.json", labels);
  ExpectRefused(Open(Classifier()).status(), Exit::kMismatch, "expected shape [2], found [3]");
  WriteJson("adapter/config.json", fitting);
  EXPECT_TRUE(Open(Classifier()).ok());

  const std::vector<float> values(64, 0.5f);
  const auto write = [&](const std::string& name, std::vector<int64_t> shape) {
    ASSERT_TRUE(ReplaceSafetensors(Path("adapter/adapter_model.safetensors"),
        {{name, std::move(shape), FileType::kF32, values.data()}})
                    .ok());
  };
  write("base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight", {3, 8});
  ExpectRefused(Open(Classifier()).status(), Exit::kMismatch, "only one of lora_A and lora_B");
  write("base_model.model.bert.encoder.layer.0.output.dense.weight", {8, 8});
  ExpectRefused(Open(Classifier()).status(), Exit::kMismatch, "cannot be used");
  write("classifier.weight", {3, 8});
  ExpectRefused(Open(Classifier()).status(), Exit::kMismatch, "base_model.model.");
  write("base_model.model.classifier.weight", {3, 8});
  ExpectRefused(Open(Classifier()).status(), Exit::kMismatch, "holds no LoRA");
  std::filesystem::remove(Path("adapter/adapter_model.safetensors"));
  ExpectRefused(Open(Classifier()).status(), Exit::kNoInput, "adapter_model.safetensors");
  std::filesystem::remove(Path("adapter/adapter_config.json"));
  ExpectRefused(Open(Classifier()).status(), Exit::kNoInput, "adapter_config.json");
  Make(Classifier(), Lora(), "again");
  ExpectRefused(LoadConfig(Path("again")).status(), Exit::kMismatch, "cloze merge");
}

// What PEFT 0.20 writes for an adapter without special methods.
TEST_F(AdapterTest, MembersWithoutEffectPass) {
  Make(Classifier(), Lora());
  json config = ReadJson("adapter/adapter_config.json");
  for (const char* name : {"alora_invocation_tokens", "arrow_config", "corda_config", "eva_config",
           "exclude_modules", "kasa_config", "layer_replication", "lora_ga_config",
           "megatron_config", "monteclora_config", "target_parameters", "trainable_token_indices",
           "use_bdlora", "velora_config"})
    config[name] = nullptr;
  config.update({{"ensure_weight_tying", false}, {"loftq_config", json::object()},
      {"lora_bias", false}, {"megatron_core", "megatron.core"}, {"peft_version", "0.20.0"},
      {"qalora_group_size", 16}, {"use_qalora", false}, {"init_lora_weights", "Gaussian"},
      {"target_modules", ".*(query|value)"}, {"auto_mapping", {{"base_model_class", "X"}}},
      {"layers_to_transform", {0, 1}}, {"layers_pattern", "layer"}});
  WriteJson("adapter/adapter_config.json", config);
  EXPECT_TRUE(Open(Classifier()).ok()) << Open(Classifier()).status();
}

// The output layer of a tied model, when an adapter replaces one of the two matrices.
class TiedAdapterTest : public AdapterTest {
 protected:
  static constexpr char kWords[] = "bert.embeddings.word_embeddings",
                        kOutput[] = "cls.predictions.decoder";

  // Makes an adapter of a masked-LM model that trained the embeddings, as PEFT would write it: with
  // the tensors of `saved`, which are copies of modules if `copies`.
  void MakeForeign(const std::vector<std::string>& saved, bool copies, bool tied = false) {
    TrainableSpec spec = Lora();
    spec.mutable_lora()->set_embeddings(true);
    Make(config_, spec);
    const std::string path = Path("adapter/adapter_model.safetensors");
    const auto reader = SafetensorsReader::Open(path);
    std::vector<TensorData> tensors;
    std::vector<std::vector<float>> values;
    values.reserve(reader->tensors().size());
    for (const TensorInfo& t : reader->tensors()) {
      const std::string module = t.name.substr(17, t.name.rfind('.') - 17);
      const bool wanted =
          absl::c_linear_search(saved, module) || t.name.find("lora") != std::string::npos;
      if (!wanted) continue;
      values.emplace_back(t.elements());
      EXPECT_TRUE(reader->ReadF32(t.name, absl::MakeSpan(values.back())).ok());
      tensors.push_back({t.name, t.shape, FileType::kF32, values.back().data()});
    }
    ASSERT_TRUE(ReplaceSafetensors(path, tensors).ok());
    std::filesystem::remove(Path("adapter/config.json"));
    json config = ReadJson("adapter/adapter_config.json");
    config["modules_to_save"] = copies ? json(saved) : json();
    config["ensure_weight_tying"] = tied;
    WriteJson("adapter/adapter_config.json", config);
  }
  // Returns the word embeddings and the output matrix of base and adapter.
  std::array<std::vector<float>, 2> Matrices(const std::string& adapter) {
    const auto model = LoadModel(Path("base"), adapter.empty() ? "" : Path(adapter));
    EXPECT_TRUE(model.ok()) << model.status();
    const auto values = [&](ParamId id) {
      const Mat m = (*model)->params().value(id);
      return std::vector<float>(m.f32(), m.f32() + m.rows * m.cols);
    };
    const ParamId words = FindWeight((*model)->params(), Role::kWordEmbeddings, -1),
                  output = FindWeight((*model)->params(), Role::kDecoder, config_.layers);
    return {values(words), values(output < 0 ? words : output)};
  }
  const ModelConfig config_ = SmallConfig(HeadKind::kMaskedLm);
};

TEST_F(TiedAdapterTest, ACopyOfOneMatrixLeavesTheOther) {
  MakeForeign({kWords}, true);
  const auto base = Matrices("")[0];
  auto [words, output] = Matrices("adapter");
  EXPECT_NE(words, base);
  EXPECT_EQ(output, base);
  MakeForeign({kOutput}, true);
  EXPECT_EQ(Matrices("adapter")[0], base);
  EXPECT_EQ(Matrices("adapter")[1], words);
  MakeForeign({kWords, kOutput}, true);
  EXPECT_EQ(Matrices("adapter")[0], words);
  EXPECT_EQ(Matrices("adapter")[1], words);
}

TEST_F(TiedAdapterTest, WithoutACopyBothChange) {
  for (const std::string& saved : {std::string(kWords), std::string(kOutput)}) {
    MakeForeign({saved}, false);
    const auto [words, output] = Matrices("adapter");
    EXPECT_EQ(words, output) << saved;
    EXPECT_NE(words, Matrices("")[0]) << saved;
  }
  MakeForeign({kWords}, true, /*tied=*/true);
  EXPECT_EQ(Matrices("adapter")[0], Matrices("adapter")[1]);
}

// PEFT takes the trained matrix for both, because the adapter has a copy of both modules.
TEST_F(TiedAdapterTest, WhatIsWrittenHoldsBothModules) {
  TrainableSpec spec = Lora();
  spec.mutable_lora()->set_embeddings(true);
  const auto model = Make(config_, spec);
  const auto reader = SafetensorsReader::Open(Path("adapter/adapter_model.safetensors"));
  for (const char* name : {"bert.embeddings.word_embeddings.weight",
           "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"})
    EXPECT_NE(reader->Find(absl::StrCat("base_model.model.", name)), nullptr) << name;
  EXPECT_THAT(ReadJson("adapter/adapter_config.json")["modules_to_save"],
      testing::IsSupersetOf({"word_embeddings", "cls.predictions.decoder"}));
  const auto read = LoadModel(Path("base"), Path("adapter"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Logits(**read), Logits(*model));
  Make(config_, Lora(), "plain");
  const auto plain = SafetensorsReader::Open(Path("plain/adapter_model.safetensors"));
  EXPECT_EQ(plain->Find("base_model.model.cls.predictions.decoder.weight"), nullptr);
}

// An adapter of version 0.1 holds the embeddings alone, and means both.
TEST_F(TiedAdapterTest, OlderAdaptersOfClozeAreTied) {
  MakeForeign({kWords}, true);
  const std::string path = Path("adapter/adapter_model.safetensors");
  const auto reader = SafetensorsReader::Open(path);
  std::vector<TensorData> tensors;
  std::vector<std::vector<float>> values(reader->tensors().size());
  for (size_t i = 0; i < values.size(); ++i) {
    const TensorInfo& t = reader->tensors()[i];
    values[i].resize(t.elements());
    ASSERT_TRUE(reader->ReadF32(t.name, absl::MakeSpan(values[i])).ok());
    tensors.push_back({t.name, t.shape, FileType::kF32, values[i].data()});
  }
  TrainableSpec spec = Lora();
  spec.mutable_lora()->set_embeddings(true);
  Make(config_, spec);
  const auto own = SafetensorsReader::Open(path);
  const Metadata metadata = own->metadata();
  ASSERT_TRUE(ReplaceSafetensors(path, tensors, metadata).ok());
  const auto adapter = Open(config_);
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  Model model(*adapter);
  std::vector<std::string> fresh, whole;
  for (const Param& param : adapter->whole()) whole.push_back(param.name);
  ASSERT_TRUE(model.Load(Path("base"), 0, &fresh, whole).ok());
  ASSERT_TRUE(adapter->Load(0, &model.params()).ok());
  const Mat words = model.params().value(model.backbone().word_embeddings()),
            output =
                model.params().value(FindWeight(model.params(), Role::kDecoder, config_.layers));
  EXPECT_TRUE(std::equal(words.f32(), words.f32() + words.rows * words.cols, output.f32()));
}

// The same numbers with several adapters beside one base, and after a merge.
// In DeBERTa's masked-LM head of `legacy: false` PEFT's copy of the embeddings is the output
// matrix.
TEST_F(TiedAdapterTest, RefusesEmbeddingsOfHeadsThatCallThem) {
  ModelConfig config = config_;
  config.head_calls_embeddings = true;
  MakeForeign({kWords}, true);
  ExpectRefused(Open(config).status(), Exit::kMismatch, "legacy: false, which is not supported");
  EXPECT_TRUE(Open(config_).ok()) << Open(config_).status();
  MakeForeign({}, true);  // LoRA only
  EXPECT_TRUE(Open(config).ok()) << Open(config).status();
  EXPECT_EQ(ExitOf(CheckTrainable(Lora(), config)), Exit::kSpec);
  config.head = HeadKind::kTokenTagging;
  EXPECT_TRUE(CheckTrainable(Lora(), config).ok());
}

TEST_F(TiedAdapterTest, SeveralAdaptersAndMergedModelsAgree) {
  MakeForeign({kWords}, true);
  const auto alone = LoadModel(Path("base"), Path("adapter"));
  ASSERT_TRUE(alone.ok()) << alone.status();
  const std::vector<float> logits = Logits(**alone);
  const auto adapter = Open(config_);
  Model both(config_, {*Open(config_), *Open(config_)});
  std::vector<std::string> fresh;
  ASSERT_TRUE(both.Load(Path("base"), 0, &fresh).ok());
  ASSERT_TRUE(adapter->Load(1, &both.params()).ok());
  EXPECT_EQ(Logits(both, 1), logits);

  MergeLora(Lora().lora(), &(*alone)->params());
  ASSERT_TRUE(SaveWeights(Path("merged"), (*alone)->config(), (*alone)->params()).ok());
  EXPECT_EQ(ReadJson("merged/config.json")["tie_word_embeddings"], false);
  const auto merged = LoadModel(Path("merged"), "");
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_TRUE((*merged)->config().untied);
  ExpectNear(Logits(**merged), logits);
  MakeForeign({kWords, kOutput}, true);
  const auto tied = LoadModel(Path("base"), Path("adapter"));
  ASSERT_TRUE(SaveWeights(Path("tied"), (*tied)->config(), (*tied)->params()).ok());
  EXPECT_EQ(ReadJson("tied/config.json")["tie_word_embeddings"], true);
  EXPECT_FALSE(LoadConfig(Path("tied"))->untied);
}

TEST(Trainable, ChoosesByLayer) {
  const ModelConfig post = Classifier(),
                    pre = SmallConfig(HeadKind::kMaskedLm, "roberta-prelayernorm");
  const auto layer = [](const ModelConfig& config, const char* name) {
    const Model model(config, true, Lora());
    const ParamId id = model.params().Find(name, 0);
    return id < 0 ? -9 : model.params().param(id).layer;
  };
  EXPECT_EQ(layer(post, "bert.embeddings.LayerNorm.weight"), -1);
  EXPECT_EQ(layer(post, "bert.encoder.layer.1.output.dense.weight"), 1);
  EXPECT_EQ(layer(post, "bert.encoder.layer.1.attention.self.query.lora_A.weight"), 1);
  EXPECT_EQ(layer(post, "bert.pooler.dense.weight"), 2);
  EXPECT_EQ(layer(pre, "roberta_prelayernorm.encoder.layer.1.attention.LayerNorm.bias"), 1);
  EXPECT_EQ(layer(pre, "roberta_prelayernorm.LayerNorm.weight"), 1);
  EXPECT_EQ(layer(pre, "lm_head.dense.weight"), 2);
  EXPECT_EQ(layer(pre, "lm_head.bias"), 2);
  TrainableSpec spec;
  spec.set_last_layers(1);
  Model model(post, true, spec);
  for (ParamId id = 0; id < model.params().size(); ++id) {
    const Param& p = model.params().param(id);
    EXPECT_EQ(p.trainable, p.layer >= 1) << p.name;
  }
  spec.set_last_layers(3);
  EXPECT_EQ(ExitOf(CheckTrainable(spec, post)), Exit::kSpec);
  spec.set_last_layers(2);
  EXPECT_TRUE(CheckTrainable(spec, post).ok());
}

}  // namespace
}  // namespace cloze
