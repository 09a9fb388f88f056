// Our numbers against PyTorch's: hidden states, attention, logits, loss, every gradient, and twelve
// AdamW steps of small models in tests/golden.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/tensor/safetensors.h"
#include "encoder/families/families.h"
#include "encoder/folder/model_folder.h"
#include "encoder/modules/encoder.h"
#include "tests/encoder/modules/loss.h"
#include "tests/reference/golden_steps.h"

namespace cloze {
namespace {

constexpr char kGolden[] = CLOZE_SOURCE_DIR "/tests/golden/";

std::vector<float> Floats(const SafetensorsReader& file, const std::string& name) {
  const TensorInfo* info = file.Find(name);
  EXPECT_NE(info, nullptr) << name;
  std::vector<float> out(info->elements());
  EXPECT_TRUE(file.ReadF32(name, absl::MakeSpan(out)).ok());
  return out;
}

std::vector<int32_t> Ints(const SafetensorsReader& file, const std::string& name) {
  std::vector<int32_t> out(file.Find(name)->elements());
  EXPECT_TRUE(file.ReadI32(name, absl::MakeSpan(out)).ok());
  return out;
}

ModelConfig ConfigOf(const std::string& folder) {
  std::ifstream file(folder + "/config.json");
  const std::string json(std::istreambuf_iterator<char>(file), {});
  auto config = ParseConfig(json, folder);
  EXPECT_TRUE(config.ok()) << config.status();
  if (config->head == HeadKind::kReplacedTokens) config->problem_type = kMultiLabel;
  return *std::move(config);
}

// A ragged batch of PyTorch's as ours: padding dropped; `place` maps our rows to (sequence *
// longest + position).
struct Packed {
  Batch batch;
  std::vector<int64_t> place;
};

// With `next`, the target of a row is the label of the next one.
Packed Pack(const SafetensorsReader& file, const std::string& prefix, bool sequence_labels,
    bool next = false) {
  const auto ids = Ints(file, prefix + "input_ids"), mask = Ints(file, prefix + "attention_mask"),
             labels = Ints(file, prefix + "labels");
  const int64_t batch = file.Find(prefix + "input_ids")->shape[0],
                longest = file.Find(prefix + "input_ids")->shape[1];
  Packed p;
  for (int64_t s = 0; s < batch; ++s) {
    std::vector<int32_t> sequence;
    for (int64_t i = 0; i < longest && mask[s * longest + i] != 0; ++i) {
      const bool last = i + 1 == longest;
      const int64_t label = sequence_labels ? (i == 0 ? labels[s] : -100)
                            : !next         ? labels[s * longest + i]
                                            : (last ? -100 : labels[s * longest + i + 1]);
      if (label != -100)
        p.batch.rows.push_back(static_cast<int32_t>(p.place.size())),
            p.batch.targets.push_back(static_cast<int32_t>(label)),
            p.batch.values.push_back(static_cast<float>(label));
      sequence.push_back(static_cast<int32_t>(ids[s * longest + i]));
      p.place.push_back(s * longest + i);
    }
    p.batch.Add(sequence, sequence.size(), s);
  }
  p.batch.Pad();
  return p;
}

class Golden : public testing::TestWithParam<const char*> {
 protected:
  Golden()
      : config_(ConfigOf(folder_)), encoder_(NewEncoder(&params_, config_)),
        head_(NewHead(&params_, config_, encoder_.word_embeddings())) {
    params_.Allocate(true);
    LoadReport report;
    const absl::Status status = LoadWeights(folder_, config_, &params_, &report);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(report.missing.empty() && report.ignored.empty());
  }

  SafetensorsReader Open(const std::string& name) {
    auto file = SafetensorsReader::Open(folder_ + "/" + name);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  Packed Pack(const SafetensorsReader& file, const std::string& prefix) const {
    return cloze::Pack(file, prefix, sequence(), config_.head == HeadKind::kCausalLm);
  }
  bool sequence() const { return config_.head == HeadKind::kSequenceClassification; }
  Pass NewPass(const Batch& batch, bool training) {
    return {params_, matmul_, arena_, batch, 1, training, DType::kF32};
  }

  // Mean loss of the batch and the gradients of the sum divided by the number of targets.
  double LossAndGradients(const Batch& batch, bool recompute = false,
      const absl::FunctionRef<void(int)>* complete = nullptr) {
    arena_.Reset();
    Pass pass = NewPass(batch, true);
    pass.recompute = recompute;
    pass.complete = complete;
    const Encoder::Saved saved = encoder_.Forward(pass);
    Mat dy = pass.New(saved.y.rows, saved.y.cols);
    const LossSum loss = LossOf(head_, config_, pass, saved.y, 1.0f / batch.targets.size(), dy);
    encoder_.Backward(pass, saved, dy);
    return loss.loss / batch.targets.size();
  }

  std::string folder_ = std::string(kGolden) + GetParam();
  ModelConfig config_;
  ParamStore params_;
  Encoder encoder_;
  Head head_;
  Arena arena_;
  Matmul matmul_;
};

// Ranks exchange them while the backward pass goes on.
TEST_P(Golden, TellsWhenGradientsAreComplete) {
  std::vector<std::vector<float>> kept;  // the last gradients
  const auto keep = [&](int layer) {
    const int64_t first = FirstGradientFrom(layer, params_);
    kept.emplace_back(params_.grads().begin() + first, params_.grads().end());
  };
  const absl::FunctionRef<void(int)> complete = keep;
  LossAndGradients(Pack(Open("reference.safetensors"), "").batch, false, &complete);
  ASSERT_EQ(kept.size(), config_.sharing.groups == 0 ? config_.layers : 0);
  for (const std::vector<float>& some : kept) {
    const auto all = params_.grads().last(some.size());
    ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  }
}

TEST_P(Golden, HiddenStatesAttentionAndLogits) {
  const SafetensorsReader reference = Open("reference.safetensors");
  const Packed p = Pack(reference, "");
  const Pass pass = NewPass(p.batch, false);
  const int64_t hidden = config_.hidden, longest = reference.Find("input_ids")->shape[1];
  std::vector<std::vector<float>> probs(config_.layers);
  std::vector<float*> pointers;
  int64_t squares = 0;
  for (int64_t s = 0; s < p.batch.sequences(); ++s)
    squares += std::pow(p.batch.cu_seqlens[s + 1] - p.batch.cu_seqlens[s], 2);
  for (auto& layer : probs) layer.resize(squares * config_.heads), pointers.push_back(layer.data());
  int seen = 0;
  const auto observe = [&](int index, ConstMat y) {
    const auto expected = Floats(reference, "hidden_states." + std::to_string(index));
    ++seen;
    for (size_t r = 0; r < p.place.size(); ++r) {
      for (int64_t c = 0; c < hidden; ++c)
        // Numbers above 1 have larger rounding errors.
        ASSERT_NEAR(y.f32(r)[c], expected[p.place[r] * hidden + c],
            1e-5 * std::max(1.0f, std::abs(expected[p.place[r] * hidden + c])))
            << index << " row " << r;
    }
  };
  encoder_.Observe(pass, observe, pointers);
  EXPECT_EQ(seen, config_.layers + 1);
  // The folder of the discriminator has none.
  const int layers = config_.head == HeadKind::kReplacedTokens ? 0 : config_.layers;
  for (int layer = 0; layer < layers; ++layer) {
    const auto expected = Floats(reference, "attentions." + std::to_string(layer));
    const float* at = probs[layer].data();
    for (int64_t s = 0; s < p.batch.sequences(); ++s) {
      const int64_t n = p.batch.cu_seqlens[s + 1] - p.batch.cu_seqlens[s];
      for (int64_t i = 0; i < config_.heads * n * n; ++i, ++at) {
        const int64_t head = i / n / n, query = i / n % n, key = i % n;
        ASSERT_NEAR(
            *at, expected[((s * config_.heads + head) * longest + query) * longest + key], 1e-5);
      }
    }
  }
  Batch wanted = p.batch;
  std::vector<int32_t>& rows = wanted.rows;
  rows.clear();
  for (size_t r = 0; r < p.place.size(); ++r) {
    if (!sequence() || p.place[r] % longest == 0) rows.push_back(static_cast<int32_t>(r));
  }
  const Pass logits_step = NewPass(wanted, false);
  const Mat logits = head_.Logits(logits_step, encoder_.Infer(logits_step));
  const auto expected = Floats(reference, "logits");
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t row = sequence() ? static_cast<int64_t>(i) : p.place[rows[i]];
    for (int64_t c = 0; c < logits.cols; ++c)
      ASSERT_NEAR(logits.f32(i)[c], expected[row * logits.cols + c], 1e-5);
  }
}

TEST_P(Golden, LossAndEveryGradient) {
  const SafetensorsReader reference = Open("reference.safetensors");
  const Packed p = Pack(reference, "");
  EXPECT_NEAR(LossAndGradients(p.batch), Floats(reference, "loss")[0], 1e-5);
  for (ParamId id = 0; id < params_.size(); ++id) {
    const std::string& name = params_.param(id).name;
    // The gradient of the tied matrix may have the name of the decoder's copy.
    const bool own = reference.Find("grad." + name) != nullptr;
    const ParamKey key = own ? ParamKey(params_.param(id))
                             : KeyOf(config_.Key(Role::kDecoder, -1), ParamKind::kWeight);
    const auto expected = Floats(reference, "grad." + key.name);
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const Param& p = params_.param(id);
      const int64_t at = p.transposed ? i % p.rows * p.cols + i / p.rows : i;
      error += std::pow(double{params_.grad(id).f32()[at]} - expected[i], 2);
      norm += std::pow(double{expected[i]}, 2);
    }
    // The gradient of a key's bias is zero in exact arithmetic: what is left of it is rounding.
    const Param& param = params_.param(id);
    const bool key_bias = param.role == Role::kKey && param.kind == ParamKind::kBias;
    const double floor = key_bias ? 1e-6 : 1e-8;
    EXPECT_LE(std::sqrt(error), 1e-4 * std::sqrt(norm) + floor) << name;
  }
}

TEST_P(Golden, RecomputesTheSameBits) {
  const Packed p = Pack(Open("reference.safetensors"), "");
  const double loss = LossAndGradients(p.batch);
  const std::vector<float> grads(params_.grads().begin(), params_.grads().end());
  std::fill(params_.grads().begin(), params_.grads().end(), 0.0f);
  EXPECT_EQ(LossAndGradients(p.batch, true), loss);
  EXPECT_EQ(std::vector<float>(params_.grads().begin(), params_.grads().end()), grads);
}

TEST_P(Golden, TwelveAdamWSteps) {
  if (config_.head == HeadKind::kReplacedTokens) GTEST_SKIP() << "has no training run";
  const SafetensorsReader batches = Open("training_batches.safetensors");
  std::ifstream file(folder_ + "/training.json");
  const nlohmann::json training = nlohmann::json::parse(file);
  ExpectGoldenSteps(training, training["clip_grad_norm"], params_, [&](int64_t number) {
    return LossAndGradients(Pack(batches, "step" + std::to_string(number) + ".").batch);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Golden,
    testing::Values("masked_lm", "masked_lm_relu", "masked_lm_pre_norm", "sequence_classification",
        "token_tagging", "roberta_masked_lm", "roberta_sequence_classification",
        "roberta_token_tagging", "distilbert_masked_lm", "distilbert_sequence_classification",
        "distilbert_token_tagging", "modernbert_masked_lm",
        "modernbert_sequence_classification_cls", "modernbert_sequence_classification_mean",
        "modernbert_token_tagging", "electra_generator", "electra_discriminator",
        "electra_sequence_classification", "electra_token_tagging", "albert_masked_lm",
        "albert_sequence_classification", "xlm_roberta_masked_lm",
        "xlm_roberta_sequence_classification", "mpnet_masked_lm", "mpnet_sequence_classification",
        "deberta_v3_masked_lm", "deberta_v3_sequence_classification", "deberta_v3_token_tagging",
        "deberta_v2_conv", "nomic_bert_masked_lm", "nomic_bert_sequence_classification",
        "gpt2_causal_lm"),
    [](const auto& info) { return std::string(info.param); });

// 32 bits for index i: tests/golden/make_mini.py.
uint32_t Mixed(absl::string_view name, uint32_t i) {
  uint32_t seed = 2166136261;
  for (const char c : name) seed = (seed ^ static_cast<uint8_t>(c)) * 16777619;
  uint32_t x = i * 0x9E3779B1 + seed;
  x = (x ^ (x >> 16)) * 0x85EBCA6B;
  x = (x ^ (x >> 13)) * 0xC2B2AE35;
  return x ^ (x >> 16);
}

// A model of a real size, whose weights follow from a rule.
TEST(Mini, HiddenStatesAndLogits) {
  const std::string folder = absl::StrCat(kGolden, "mini");
  const ModelConfig config = ConfigOf(folder);
  ParamStore params;
  const Encoder encoder = NewEncoder(&params, config);
  const Head head = NewHead(&params, config, encoder.word_embeddings());
  params.Allocate(false);
  for (ParamId id = 0; id < params.size(); ++id) {
    const Param& param = params.param(id);
    const float one = param.name.ends_with("LayerNorm.weight") ? 1 : 0;
    for (int64_t i = 0; i < param.size(); ++i)
      params.value(id).f32()[i] = (Mixed(param.name, i) >> 8) * 0x1p-26f - 0.125f + one;
  }
  params.Changed();
  const auto reference = SafetensorsReader::Open(folder + "/reference.safetensors");
  ASSERT_TRUE(reference.ok()) << reference.status();
  const std::vector<int32_t> ids = Ints(*reference, "input_ids"), rows = Ints(*reference, "rows");
  Batch batch;
  int64_t begin = 0, sequence = 0;
  for (const int32_t n : Ints(*reference, "lengths")) {
    batch.Add(absl::MakeSpan(ids).subspan(begin, n), n, sequence++);
    begin += n;
  }
  batch.rows = rows;
  batch.Pad();
  for (int64_t i = 0; i < begin; ++i) ASSERT_EQ(ids[i], Mixed("input_ids", i) % config.vocab);
  Arena arena;
  Matmul matmul;
  const Pass pass = {params, matmul, arena, batch, 1, false, DType::kF32};
  const auto expect = [&](const std::string& name, auto row) {
    const std::vector<float> expected = Floats(*reference, name);
    const int64_t cols = expected.size() / rows.size();
    for (size_t r = 0; r < rows.size(); ++r) {
      for (int64_t c = 0; c < cols; ++c)
        ASSERT_NEAR(row(r)[c], expected[r * cols + c], 2e-4) << name << " row " << rows[r];
    }
  };
  int seen = 0;
  encoder.Observe(pass,
      [&](int index, ConstMat y) {
        ++seen;
        expect(absl::StrCat("hidden_states.", index), [&](size_t r) { return y.f32(rows[r]); });
      },
      {});
  EXPECT_EQ(seen, 5);
  const Mat logits = head.Logits(pass, encoder.Infer(pass));
  ASSERT_EQ(logits.cols, config.vocab);
  expect("logits", [&](size_t r) { return logits.f32(r); });
}

}  // namespace
}  // namespace cloze
