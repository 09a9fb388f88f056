// Losses of sentence_embedding against PyTorch's in f64: vectors, loss, every gradient and twelve
// AdamW steps of a small BERT, in one pass and in several (tests/golden/sentence_embedding).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/strip.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/model_folder.h"
#include "tasks/embedding_groups.h"
#include "tasks/embedding_loss.h"
#include "tasks/packer.h"
#include "tasks/task.h"
#include "tests/reference/golden_steps.h"

namespace cloze {
namespace {

constexpr char kFolder[] = CLOZE_SOURCE_DIR "/tests/golden/sentence_embedding";

std::vector<float> Floats(const SafetensorsReader& file, const std::string& name) {
  std::vector<float> out(file.Find(name)->elements());
  EXPECT_TRUE(file.ReadF32(name, absl::MakeSpan(out)).ok()) << name;
  return out;
}

struct Case {
  const char *name, *spec;
};

class EmbeddingGolden : public testing::TestWithParam<Case> {
 protected:
  EmbeddingGolden() : model_(*LoadConfig(kFolder), /*training=*/true) {
    std::vector<std::string> fresh;
    EXPECT_TRUE(model_.Load(kFolder, 1, &fresh).ok());
    auto loaded = ParseSpec(absl::StrCat("sentence_embedding { ", GetParam().spec, " }"), "test");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    spec_ = loaded->spec.sentence_embedding();
    task_ = MakeTask(loaded->spec);
    auto file =
        SafetensorsReader::Open(absl::StrCat(kFolder, "/", GetParam().name, ".safetensors"));
    EXPECT_TRUE(file.ok()) << file.status();
    reference_ = *std::move(file);
    ReadExamples();
  }

  void ReadExamples() {
    const std::vector<float> scores = reference_->Find("scores") == nullptr
                                          ? std::vector<float>()
                                          : Floats(*reference_, "scores");
    for (int64_t i = 0; i < 6; ++i) {
      Example example;
      for (const std::string part : {"anchor", "positive", "negative"}) {
        const TensorInfo* info = reference_->Find(part + ".input_ids");
        if (info == nullptr) continue;
        const int64_t longest = info->shape[1];
        std::vector<int32_t> ids(info->elements()), mask(info->elements());
        EXPECT_TRUE(reference_->ReadI32(part + ".input_ids", absl::MakeSpan(ids)).ok());
        EXPECT_TRUE(reference_->ReadI32(part + ".attention_mask", absl::MakeSpan(mask)).ok());
        if (part == "positive") example.second = std::ssize(example.ids);
        example.rows.push_back(std::ssize(example.ids));
        example.labels.push_back(std::ssize(example.labels));
        for (int64_t t = i * longest; t < (i + 1) * longest && mask[t] != 0; ++t)
          example.ids.push_back(ids[t]);
      }
      if (!scores.empty()) example.values = {scores[i]};
      examples_.push_back(std::move(example));
    }
  }

  // The batches of a step.
  std::vector<Batch> Batches(int64_t max_tokens) {
    std::vector<Batch> batches;
    Packer packer(max_tokens, [&](Batch batch) {
      batches.push_back(std::move(batch));
      return absl::OkStatus();
    });
    for (size_t i = 0; i < examples_.size(); ++i) {
      const std::vector<Example> texts = task_->Sequences(examples_[i], 1);
      for (size_t t = 0; t < texts.size(); ++t) {
        EXPECT_TRUE(
            packer.Add(texts[t], i, JoinedTokens(absl::MakeConstSpan(texts).subspan(t))).ok());
      }
    }
    EXPECT_TRUE(packer.Finish().ok());
    return batches;
  }

  // Mean loss; adds its gradients.
  double Step(absl::Span<const Batch> batches) {
    PassOptions options = {.seed = 1};
    if (batches.size() == 1)
      return task_->Train(model_, batches[0], options) / task_->LossWeight(batches[0]);
    std::vector<std::vector<float>> outputs;
    for (const Batch& batch : batches) outputs.push_back(task_->Outputs(model_, batch, options));
    const double loss = task_->StepLoss(model_, batches, absl::MakeSpan(outputs));
    for (size_t i = 0; i < batches.size(); ++i) {
      options.output_gradients = &outputs[i];
      EXPECT_EQ(task_->Train(model_, batches[i], options), 0);
    }
    return loss;
  }

  void ExpectGradients() {
    const ParamStore& params = model_.params();
    for (ParamId id = 0; id < params.size(); ++id) {
      const Param& param = params.param(id);
      // Without the prefix of models that have a head.
      const std::vector<float> expected =
          Floats(*reference_, absl::StrCat("grad.", absl::StripPrefix(param.name, "bert.")));
      double error = 0, norm = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        error += std::pow(double{params.grad(id).f32()[i]} - expected[i], 2);
        norm += std::pow(double{expected[i]}, 2);
      }
      // Zero in exact arithmetic: the gradient of a key's bias and, as distances do not change when
      // all vectors move, that of the last bias.
      const bool key_bias = param.role == Role::kKey && param.kind == ParamKind::kBias,
                 moves_all = spec_.loss() == SentenceEmbeddingSpec::TRIPLET &&
                             param.name.ends_with("layer.1.output.LayerNorm.bias");
      EXPECT_LE(std::sqrt(error), 1e-4 * std::sqrt(norm) + (key_bias || moves_all ? 1e-6 : 1e-8))
          << param.name;
    }
  }

  Model model_;
  SentenceEmbeddingSpec spec_;
  std::unique_ptr<Task> task_;
  std::optional<SafetensorsReader> reference_;
  std::vector<Example> examples_;
};

TEST_P(EmbeddingGolden, VectorsLossAndEveryGradient) {
  const std::vector<Batch> batches = Batches(1 << 20);
  ASSERT_EQ(batches.size(), 1);
  const std::vector<float> vectors = task_->Outputs(model_, batches[0], {.seed = 1});
  const int64_t hidden = model_.config().hidden, texts = std::ssize(examples_[0].rows);
  int64_t part = 0;
  for (const std::string name : {"anchor", "positive", "negative"}) {
    if (reference_->Find(name + ".vectors") == nullptr) continue;
    const std::vector<float> expected = Floats(*reference_, name + ".vectors");
    for (int64_t i = 0; i < 6 * hidden; ++i)
      ASSERT_NEAR(vectors[(i / hidden * texts + part) * hidden + i % hidden], expected[i], 2e-5);
    ++part;
  }
  EXPECT_NEAR(Step(batches), Floats(*reference_, "loss")[0], 1e-5);
  ExpectGradients();
}

TEST_P(EmbeddingGolden, SeveralPasses) {
  const std::vector<Batch> batches = Batches(64);
  ASSERT_GT(batches.size(), 2);
  EXPECT_NEAR(Step(batches), Floats(*reference_, "loss")[0], 1e-5);
  ExpectGradients();
}

TEST_P(EmbeddingGolden, TwelveAdamWSteps) {
  std::ifstream file(absl::StrCat(kFolder, "/", GetParam().name, ".json"));
  const nlohmann::json training = nlohmann::json::parse(file);
  ExpectGoldenSteps(training, 1.0, model_.params(),
      [&](int64_t number) { return Step(Batches(number % 2 == 0 ? 1 << 20 : 64)); });
}

INSTANTIATE_TEST_SUITE_P(All, EmbeddingGolden,
    testing::Values(Case{"in_batch", ""}, Case{"in_batch_hard", ""},
        Case{"symmetric", "symmetric: true"}, Case{"cosent", "loss: COSENT"},
        Case{"matryoshka", "dimensions: 64 dimensions: 32 dimensions: 16"},
        Case{"cosine", "loss: COSINE pooling: CLASS"},
        Case{"triplet", "loss: TRIPLET pooling: MAX normalize: false"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cloze
