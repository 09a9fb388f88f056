// Encoder-decoders against PyTorch's numbers in tests/golden/{marian,bart,bert2bert}: hidden
// states, logits, loss, every gradient, and folders that are saved back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/threads.h"
#include "core/tensor/safetensors.h"
#include "encoder/families/families.h"
#include "encoder/folder/model_folder.h"
#include "encoder/model.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

constexpr int64_t kSequences = 3, kSource = 17, kTarget = 11, kHidden = 64, kVocab = 120;

class EncoderDecoderTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto config = LoadConfig(folder_);
    ASSERT_TRUE(config.ok()) << config.status();
    model_ = std::make_unique<Model>(*config, true);
    std::vector<std::string> fresh;
    const absl::Status status = model_->Load(folder_, 1, &fresh);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_TRUE(fresh.empty());
    // The reference was made with 8 times Marian's fixed positions, which are not in the folder.
    ParamStore& params = model_->params();
    for (ParamId id = 0; id < params.size(); ++id) {
      const Param& param = params.param(id);
      for (int64_t i = 0;
           param.role == Role::kPositionEmbeddings && !param.trainable && i < param.size(); ++i)
        params.value(id).f32()[i] *= 8;
    }
    const auto ids = Ints("input_ids"), mask = Ints("attention_mask"),
               decoder_ids = Ints("decoder_input_ids"), labels = Ints("labels");
    for (int32_t s = 0; s < kSequences; ++s) {
      std::vector<int32_t> pair;
      for (int64_t i = 0; i < kSource && mask[s * kSource + i] != 0; ++i)
        pair.push_back(ids[s * kSource + i]);
      const auto second = static_cast<int32_t>(pair.size());
      for (int64_t i = 0; i < kTarget && labels[s * kTarget + i] >= 0; ++i) {
        batch_.rows.push_back(static_cast<int32_t>(batch_.tokens() + pair.size()));
        batch_.targets.push_back(labels[s * kTarget + i]);
        place_.push_back(s * kTarget + i);
        pair.push_back(decoder_ids[s * kTarget + i]);
      }
      batch_.Add(pair, second, s);
    }
    batch_.Pad();
  }
  std::vector<int32_t> Ints(const std::string& name) const {
    std::vector<int32_t> out(reference_.Find(name)->elements());
    EXPECT_TRUE(reference_.ReadI32(name, absl::MakeSpan(out)).ok());
    return out;
  }
  std::vector<float> Floats(const std::string& name) const {
    const TensorInfo* info = reference_.Find(name);
    EXPECT_NE(info, nullptr) << name;
    std::vector<float> out(info->elements());
    EXPECT_TRUE(reference_.ReadF32(name, absl::MakeSpan(out)).ok());
    return out;
  }
  void ExpectRow(const float* actual, const std::vector<float>& expected, int64_t row, int64_t n) {
    for (int64_t c = 0; c < n; ++c) {
      const float e = expected[row * n + c];
      ASSERT_NEAR(actual[c], e, 2e-5 * std::max(1.0f, std::abs(e))) << "row " << row;
    }
  }
  double LossAndGradients(bool recompute = false) {
    std::fill(model_->params().grads().begin(), model_->params().grads().end(), 0.0f);
    model_->arena().Reset();
    Pass pass = model_->NewPass(batch_, DType::kF32, true);
    pass.recompute = recompute;
    const auto loss = [&](Mat logits, int64_t first, float scale, Arena& arena) {
      return SoftmaxCrossEntropy(logits, batch_.targets.data() + first, scale, arena);
    };
    const double count = batch_.targets.size();
    return TrainingPass(model_->backbone(), model_->head(), pass, 1 / count, loss).loss / count;
  }

  const std::string folder_ = absl::StrCat(CLOZE_SOURCE_DIR, "/tests/golden/", GetParam());
  SafetensorsReader reference_ = *SafetensorsReader::Open(folder_ + "/reference.safetensors");
  std::unique_ptr<Model> model_;
  Batch batch_;
  std::vector<int64_t> place_;  // of our target rows in the reference
};

TEST_P(EncoderDecoderTest, HiddenStatesAndLogits) {
  const SplitBatch split(batch_);
  const Pass pass = model_->NewPass(batch_, DType::kF32);
  int seen = 0;
  const auto expect = [&](const std::string& name, const Batch& batch, int64_t longest) {
    return [&, name, longest](int index, ConstMat y) {
      const auto expected = Floats(absl::StrCat(name, "_hidden_states.", index));
      ++seen;
      for (int64_t s = 0; s < kSequences; ++s)
        for (int32_t r = batch.cu_seqlens[s]; r < batch.cu_seqlens[s + 1]; ++r)
          ExpectRow(y.f32(r), expected, s * longest + r - batch.cu_seqlens[s], kHidden);
    };
  };
  const EncoderDecoder* module = model_->backbone().encoder_decoder();
  ASSERT_NE(module, nullptr);
  const Pass source = pass.Over(split.source);
  module->encoder().Observe(source, expect("encoder", split.source, kSource));
  const SourceStates states = {module->encoder().Infer(source), split.source.cu_seqlens};
  Pass target = pass.Over(split.target);
  target.states = &states;
  module->decoder().Observe(target, expect("decoder", split.target, kTarget));
  EXPECT_EQ(seen, 6);
  const Mat logits = model_->head().Logits(pass, model_->backbone().Infer(pass));
  const auto expected = Floats("logits");
  for (size_t r = 0; r < place_.size(); ++r) ExpectRow(logits.f32(r), expected, place_[r], kVocab);
}

// Only some rows of a target, and none of another one, are wanted.
TEST_P(EncoderDecoderTest, ComputesOnlyWantedRows) {
  const std::vector<int32_t> all = batch_.rows;
  const std::vector<size_t> wanted = {2, 5, all.size() - 1};
  batch_.rows.clear();
  for (const size_t i : wanted) batch_.rows.push_back(all[i]);
  const Pass pass = model_->NewPass(batch_, DType::kF32);
  const Mat logits = model_->head().Logits(pass, model_->backbone().Infer(pass));
  for (size_t i = 0; i < wanted.size(); ++i)
    ExpectRow(logits.f32(i), Floats("logits"), place_[wanted[i]], kVocab);
}

TEST_P(EncoderDecoderTest, LossAndEveryGradient) {
  EXPECT_NEAR(LossAndGradients(), Floats("loss")[0], 1e-5);
  const ParamStore& params = model_->params();
  for (ParamId id = 0; id < params.size(); ++id) {
    const Param& param = params.param(id);
    if (!param.trainable) continue;
    // The norm of the gradient and its products with vectors of signs: reduce_gradients.py.
    const auto expected = Floats("grad." + param.name);
    const float* grad = params.grad(id).f32();
    std::vector<double> sums(5);
    for (int64_t i = 0; i < param.size(); ++i) {
      sums[0] += double{grad[i]} * grad[i];
      for (uint64_t k = 0; k < 4; ++k)
        sums[k + 1] += ((i + 1) * (2654435761 * (2 * k + 1)) >> 13 & 1) != 0 ? -grad[i] : grad[i];
    }
    sums[0] = std::sqrt(sums[0]);
    const bool key_bias = param.kind == ParamKind::kBias &&
                          (param.role == Role::kKey || param.role == Role::kCrossKey);
    for (int k = 0; k < 5; ++k)
      EXPECT_NEAR(sums[k], expected[k], 2e-4 * expected[0] + (key_bias ? 2e-5 : 1e-7))
          << param.name << " " << k;
  }
}

TEST_P(EncoderDecoderTest, RecomputesTheSameBitsAtAnyThreadCount) {
  const auto grads = [&] {
    return std::vector<float>(model_->params().grads().begin(), model_->params().grads().end());
  };
  const double loss = LossAndGradients();
  const std::vector<float> expected = grads();
  const int threads = Threads();
  for (const int count : {1, 3}) {
    SetThreads(count);
    EXPECT_EQ(LossAndGradients(count == 3), loss);
    EXPECT_EQ(grads(), expected);
  }
  SetThreads(threads);
}

TEST_P(EncoderDecoderTest, SavesTheSameTensors) {
  const TestFolder to;
  ASSERT_TRUE(SaveWeights(to.path(), model_->config(), model_->params()).ok());
  const auto config = LoadConfig(to.path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(CompareSizes(*config, model_->config()), "");
  EXPECT_EQ(config->generation.start_id, model_->config().generation.start_id);
  EXPECT_EQ(config->embeddings.scale, model_->config().embeddings.scale);
  const auto saved = SafetensorsReader::OpenFolder(to.path()),
             original = SafetensorsReader::OpenFolder(folder_);
  ASSERT_TRUE(saved.ok() && original.ok());
  for (const TensorInfo& tensor : saved->tensors())
    EXPECT_NE(original->Find(tensor.name), nullptr) << tensor.name;
  for (const TensorInfo& tensor : original->tensors()) {
    if (tensor.name.starts_with("encoder.pooler")) continue;  // is not computed
    const TensorInfo* copy = saved->Find(tensor.name);
    ASSERT_NE(copy, nullptr) << tensor.name;
    EXPECT_EQ(copy->shape, tensor.shape);
    std::vector<float> a(tensor.elements()), b(tensor.elements());
    ASSERT_TRUE(original->ReadF32(tensor.name, absl::MakeSpan(a)).ok());
    ASSERT_TRUE(saved->ReadF32(tensor.name, absl::MakeSpan(b)).ok());
    EXPECT_EQ(a, b) << tensor.name;
  }
}

TEST_P(EncoderDecoderTest, TokensOfGenerationAreInTheVocabulary) {
  const std::string json = *ReadFile(JoinPath(folder_, "config.json"), 1 << 20);
  ASSERT_TRUE(ParseConfig(json, "c").ok());
  for (const char* member : {R"("forced_bos_token_id": 120)", R"("bad_words_ids": [[120]])"}) {
    Json root = *ParseJson(json, "c");
    root.update(*ParseJson(absl::StrCat("{", member, "}"), "c"));
    const absl::Status status = ParseConfig(ToJsonText(root), "c").status();
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("expected more than 120"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, EncoderDecoderTest, testing::Values("marian", "bart", "bert2bert"),
    [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cloze
