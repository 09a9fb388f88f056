#include "encoder/folder/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/tensor/safetensors.h"
#include "encoder/modules/encoder.h"
#include "encoder/modules/head.h"
#include "tests/core/tensor/half_values.h"
#include "tests/encoder/small_config.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ModelConfig MaskedLm() { return SmallConfig(HeadKind::kMaskedLm); }

// The parameters of a model, as its modules declare them.
struct Params {
  explicit Params(const ModelConfig& config)
      : encoder(NewEncoder(&store, config)),
        head(NewHead(&store, config, encoder.word_embeddings())) {
    store.Allocate(false);
    for (ParamId id = 0; id < store.size(); ++id) InitializeParam(id, 1, 0.02f, &store);
    for (float& x : store.values()) x += 0.25f;  // so that a vector in the wrong place shows
  }
  std::vector<float> value(const std::string& name) const {
    const Param& p = store.param(store.Find(name));
    return {store.values().begin() + p.offset, store.values().begin() + p.offset + p.size()};
  }
  ParamStore store;
  Encoder encoder;
  Head head;
};

class ModelFolderTest : public ::testing::Test {
 protected:
  // Writes the tensors of `params` again after `edit` has changed the list.
  template <typename Edit>
  void Rewrite(const Params& params, Edit edit) {
    std::vector<TensorData> tensors;
    for (ParamId id = 0; id < params.store.size(); ++id) {
      const Param& p = params.store.param(id);
      tensors.push_back(
          {p.name, p.vector ? std::vector<int64_t>{p.cols} : std::vector<int64_t>{p.rows, p.cols},
              FileType::kF32, params.store.values().data() + p.offset});
    }
    edit(&tensors);
    ASSERT_TRUE(ReplaceSafetensors(JoinPath(folder_, "model.safetensors"), tensors).ok());
  }

  const TestFolder own_;
  const std::string folder_ = own_.path();
};

TensorData* Tensor(std::vector<TensorData>* tensors, const std::string& name) {
  for (TensorData& t : *tensors) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

TEST_F(ModelFolderTest, SavesAndLoadsEveryKind) {
  for (const char* family : {"bert", "roberta-prelayernorm"}) {
    for (const auto head : {HeadKind::kNone, HeadKind::kMaskedLm, HeadKind::kSequenceClassification,
             HeadKind::kTokenTagging}) {
      for (const bool pooler : {false, true}) {
        ModelConfig config = SmallConfig(head, family);
        config.pooler = pooler;
        const Params saved(config);
        ASSERT_TRUE(SaveWeights(folder_, config, saved.store).ok());
        const auto read = LoadConfig(folder_);
        ASSERT_TRUE(read.ok()) << read.status();
        Params loaded(*read);
        for (float& x : loaded.store.values()) x = -1;
        LoadReport report;
        ASSERT_TRUE(LoadWeights(folder_, *read, &loaded.store, &report).ok());
        EXPECT_THAT(report.missing, IsEmpty());
        EXPECT_THAT(report.ignored, IsEmpty());
        ASSERT_EQ(loaded.store.size(), saved.store.size());
        for (ParamId id = 0; id < saved.store.size(); ++id) {
          const std::string& name = saved.store.param(id).name;
          EXPECT_EQ(loaded.value(name), saved.value(name)) << name;
        }
      }
    }
  }
}

TEST_F(ModelFolderTest, ReadsOldSpellings) {
  const ModelConfig config = MaskedLm();
  const Params saved(config);
  const std::vector<int64_t> ids = {0, 1, 2};
  Rewrite(saved, [&](std::vector<TensorData>* tensors) {
    const TensorData words = *Tensor(tensors, "bert.embeddings.word_embeddings.weight"),
                     bias = *Tensor(tensors, "cls.predictions.bias");
    for (TensorData& t : *tensors) {
      t.name = absl::StrReplaceAll(
          t.name, {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}});
      if (absl::StartsWith(t.name, "bert.")) t.name = t.name.substr(5);
    }
    tensors->push_back({"cls.predictions.decoder.weight", words.shape, FileType::kF32, words.data});
    tensors->push_back({"cls.predictions.decoder.bias", bias.shape, FileType::kF32, bias.data});
    tensors->push_back({"bert.embeddings.position_ids", {1, 3}, FileType::kI64, ids.data()});
    tensors->push_back({"cls.seq_relationship.weight", {1}, FileType::kF32, bias.data});
  });
  Params loaded(config);
  for (float& x : loaded.store.values()) x = -1;
  LoadReport report;
  const absl::Status status = LoadWeights(folder_, config, &loaded.store, &report);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_THAT(report.ignored, ElementsAre("cls.seq_relationship.weight"));
  for (ParamId id = 0; id < saved.store.size(); ++id)
    EXPECT_EQ(loaded.value(saved.store.param(id).name), saved.value(saved.store.param(id).name));
}

TEST_F(ModelFolderTest, ReadsTheBiasWhereOnlyTheDecoderHasIt) {
  const Params saved(MaskedLm());
  Rewrite(saved, [](std::vector<TensorData>* tensors) {
    Tensor(tensors, "cls.predictions.bias")->name = "cls.predictions.decoder.bias";
  });
  Params loaded(MaskedLm());
  loaded.store.values()[loaded.store.param(loaded.store.Find("cls.predictions.bias")).offset] = -9;
  LoadReport report;
  ASSERT_TRUE(LoadWeights(folder_, MaskedLm(), &loaded.store, &report).ok());
  EXPECT_THAT(report.missing, IsEmpty());
  EXPECT_EQ(loaded.value("cls.predictions.bias"), saved.value("cls.predictions.bias"));
}

TEST_F(ModelFolderTest, ReadsSixteenBitWeights) {
  const ModelConfig config = MaskedLm();
  const Params saved(config);
  for (const FileType type : {FileType::kF16, FileType::kBf16}) {
    std::vector<std::vector<uint16_t>> bits;
    Rewrite(saved, [&](std::vector<TensorData>* tensors) {
      for (TensorData& t : *tensors) {
        int64_t n = 1;
        for (const int64_t dimension : t.shape) n *= dimension;
        bits.push_back(
            SixteenBits({static_cast<const float*>(t.data), static_cast<size_t>(n)}, type));
        t.type = type;
        t.data = bits.back().data();
      }
    });
    Params loaded(config);
    LoadReport report;
    ASSERT_TRUE(LoadWeights(folder_, config, &loaded.store, &report).ok());
    const float pass = type == FileType::kF16 ? 0x1p-11f : 0x1p-8f;
    bool differs = false;
    for (size_t i = 0; i < saved.store.values().size(); ++i) {
      const float x = saved.store.values()[i], y = loaded.store.values()[i];
      EXPECT_NEAR(x, y, std::fabs(x) * pass);
      differs |= x != y;
    }
    EXPECT_TRUE(differs);
  }
}

TEST_F(ModelFolderTest, ListsEveryDisagreement) {
  const ModelConfig config = MaskedLm();
  const Params saved(config);
  const std::vector<int64_t> ids(8);
  Rewrite(saved, [&](std::vector<TensorData>* tensors) {
    Tensor(tensors, "bert.encoder.layer.1.output.dense.weight")->shape = {16, 8};
    *Tensor(tensors, "bert.embeddings.LayerNorm.bias") = {
        "bert.embeddings.LayerNorm.bias", {8}, FileType::kI64, ids.data()};
    Tensor(tensors, "bert.encoder.layer.0.attention.self.key.bias")->name = "elsewhere";
    Tensor(tensors, "cls.predictions.transform.LayerNorm.bias")->name =
        "cls.predictions.transform.LayerNorm.gamma";
  });
  Params loaded(config);
  LoadReport report;
  const absl::Status status = LoadWeights(folder_, config, &loaded.store, &report);
  EXPECT_EQ(ExitOf(status), Exit::kMismatch);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("4 tensors do not fit the model"));
  EXPECT_THAT(message,
      HasSubstr("bert.encoder.layer.1.output.dense.weight: expected shape [8, 16], found [16, 8]"));
  EXPECT_THAT(message, HasSubstr("bert.embeddings.LayerNorm.bias: type I64"));
  EXPECT_THAT(message,
      HasSubstr("bert.encoder.layer.0.attention.self.key.bias: missing: expected shape [8]"));
  EXPECT_THAT(message, HasSubstr("the same tensor as"));
}

TEST_F(ModelFolderTest, RefusesAnOutputLayerThatIsNotTied) {
  const ModelConfig config = MaskedLm();
  const Params saved(config);
  std::vector<float> other = saved.value("bert.embeddings.word_embeddings.weight");
  other[5] += 0.5f;
  Rewrite(saved, [&](std::vector<TensorData>* tensors) {
    tensors->push_back({"cls.predictions.decoder.weight", {40, 8}, FileType::kF32, other.data()});
  });
  Params loaded(config);
  LoadReport report;
  const absl::Status status = LoadWeights(folder_, config, &loaded.store, &report);
  EXPECT_EQ(ExitOf(status), Exit::kMismatch);
  EXPECT_THAT(std::string(status.message()),
      HasSubstr(
          "cls.predictions.decoder.weight: differs from bert.embeddings.word_embeddings.weight"));
  // Without that head it does not matter.
  Params tagger(SmallConfig(HeadKind::kTokenTagging));
  ASSERT_TRUE(
      LoadWeights(folder_, SmallConfig(HeadKind::kTokenTagging), &tagger.store, &report).ok());
  EXPECT_THAT(report.missing, UnorderedElementsAre("classifier.weight", "classifier.bias"));
  EXPECT_THAT(report.ignored, ::testing::Contains("cls.predictions.decoder.weight"));
}

TEST_F(ModelFolderTest, NamesWhatIsNewForAnotherTask) {
  const Params saved(MaskedLm());
  ASSERT_TRUE(SaveWeights(folder_, MaskedLm(), saved.store).ok());
  const ModelConfig config = SmallConfig(HeadKind::kSequenceClassification);
  Params loaded(config);
  const std::vector<float> before = loaded.value("classifier.weight");
  LoadReport report;
  ASSERT_TRUE(LoadWeights(folder_, config, &loaded.store, &report).ok());
  EXPECT_THAT(
      report.missing, UnorderedElementsAre("bert.pooler.dense.weight", "bert.pooler.dense.bias",
                          "classifier.weight", "classifier.bias"));
  EXPECT_EQ(report.ignored.size(), 5);
  EXPECT_EQ(loaded.value("classifier.weight"), before);
}

TEST_F(ModelFolderTest, RefusesConfigsLargerThanTheWeights) {
  const Params saved(MaskedLm());
  ASSERT_TRUE(SaveWeights(folder_, MaskedLm(), saved.store).ok());
  ModelConfig huge = MaskedLm();
  huge.vocab = 90'000'000, huge.hidden = 16384;
  ASSERT_TRUE(WriteFileAtomically(JoinPath(folder_, "config.json"), FormatConfig(huge)).ok());
  EXPECT_EQ(ExitOf(LoadConfig(folder_).status()), Exit::kMismatch);
  ::unlink(JoinPath(folder_, "config.json").c_str());
  EXPECT_EQ(ExitOf(LoadConfig(folder_).status()), Exit::kNoInput);
}

TEST_F(ModelFolderTest, RefusesLayersThatTheConfigHasNot) {
  ModelConfig config = MaskedLm();
  config.layers = 2;
  Params two(config);
  ASSERT_TRUE(SaveWeights(folder_, config, two.store).ok());
  config.layers = 1;
  Params one(config);
  LoadReport report;
  EXPECT_THAT(std::string(LoadWeights(folder_, config, &one.store, &report).message()),
      HasSubstr("layer.1.attention.self.query.weight: expected none after the layers that "
                "config.json has, 1"));
}

TEST_F(ModelFolderTest, NeverSavesNan) {
  Params params(MaskedLm());
  ASSERT_TRUE(SaveWeights(folder_, MaskedLm(), params.store).ok());
  params.store.values()[3] = NAN;
  EXPECT_EQ(ExitOf(SaveWeights(folder_, MaskedLm(), params.store)), Exit::kInternal);
  EXPECT_EQ(ListDirectory(folder_)->size(), 2);
  LoadReport report;
  EXPECT_TRUE(LoadWeights(folder_, MaskedLm(), &params.store, &report)
                  .ok());  // the old file is still there
}

TEST(GoldenFolders, LoadWithoutRest) {
  const std::string root = CLOZE_SOURCE_DIR "/tests/golden";
  for (const char* name : {"masked_lm", "masked_lm_relu", "masked_lm_pre_norm",
           "sequence_classification", "token_tagging", "modernbert_masked_lm",
           "modernbert_sequence_classification_mean", "modernbert_token_tagging"}) {
    const auto config = LoadConfig(JoinPath(root, name));
    ASSERT_TRUE(config.ok()) << config.status();
    Params params(*config);
    LoadReport report;
    const absl::Status status = LoadWeights(JoinPath(root, name), *config, &params.store, &report);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_THAT(report.missing, IsEmpty()) << name;
    EXPECT_THAT(report.ignored, IsEmpty()) << name;
  }
}

// Folders of GPT-2 hold weights of linear layers transposed.
TEST_F(ModelFolderTest, Gpt2ComesBackAsItWas) {
  const std::string golden = CLOZE_SOURCE_DIR "/tests/golden/gpt2_causal_lm";
  const auto config = LoadConfig(golden);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->end_id, 3);
  Params params(*config);
  LoadReport report;
  ASSERT_TRUE(LoadWeights(golden, *config, &params.store, &report).ok());
  ASSERT_TRUE(SaveWeights(folder_, *config, params.store).ok());
  EXPECT_EQ(FormatConfig(*LoadConfig(folder_)), FormatConfig(*config));
  const auto before = SafetensorsReader::OpenFolder(golden),
             after = SafetensorsReader::OpenFolder(folder_);
  ASSERT_EQ(before->tensors().size(), after->tensors().size());
  for (const TensorInfo& tensor : before->tensors()) {
    ASSERT_EQ(after->Find(tensor.name)->shape, tensor.shape) << tensor.name;
    std::vector<float> a(tensor.elements()), b(tensor.elements());
    ASSERT_TRUE(before->ReadF32(tensor.name, absl::MakeSpan(a)).ok());
    ASSERT_TRUE(after->ReadF32(tensor.name, absl::MakeSpan(b)).ok());
    EXPECT_EQ(a, b) << tensor.name;
  }
}

}  // namespace
}  // namespace cloze
