// A dry run allocates exactly what the pass itself does; recomputation needs less.
#include <gtest/gtest.h>

#include "core/base/threads.h"
#include "core/ops/profile.h"
#include "encoder/model.h"
#include "tests/encoder/modules/modules.h"

namespace cloze {
namespace {

using reference::ConfigOf;
using reference::kModern;
using reference::kPostNorm;
using reference::kPreNorm;
using reference::kSeed;
using reference::MakeBatch;

struct Case {
  const char* name;
  HeadKind head = HeadKind::kMaskedLm;
  const char* norm = kPostNorm;
  bool crf = false;
  TrainableSpec trainable = {};
  float dropout = 0.1f;
};

std::vector<Case> Cases() {
  TrainableSpec head_only, last_layers, lora, wide_lora;
  head_only.set_head_only(true);
  last_layers.set_last_layers(1);
  lora.mutable_lora()->set_rank(4);
  wide_lora.mutable_lora()->set_dropout(0.1f);
  for (const auto target : {LoraSpec::QUERY, LoraSpec::OUTPUT, LoraSpec::INTERMEDIATE})
    wide_lora.mutable_lora()->add_targets(target);
  const HeadKind mlm = HeadKind::kMaskedLm, text = HeadKind::kSequenceClassification,
                 tag = HeadKind::kTokenTagging;
  const auto *post = kPostNorm, *pre = kPreNorm;
  return {{"mlm"}, {"mlm pre-norm", mlm, pre}, {"mlm without dropout", mlm, post, false, {}, 0},
      {"classification", text}, {"classification pre-norm", text, pre}, {"tagging", tag},
      {"tagging crf", tag, post, true}, {"head only", text, post, false, head_only},
      {"head only, tagging crf", tag, pre, true, head_only},
      {"last layers", text, post, false, last_layers},
      {"last layers pre-norm", tag, pre, false, last_layers}, {"lora", text, post, false, lora},
      {"lora with dropout", tag, pre, true, wide_lora}, {"modern", mlm, kModern},
      {"modern, mean of the tokens", text, kModern}, {"modern, tagging crf", tag, kModern, true},
      {"modern, last layers", text, kModern, false, last_layers},
      {"modern, lora with dropout", mlm, kModern, false, wide_lora}, {"electra", mlm, "electra"},
      {"electra, last layers", text, "electra", false, last_layers}, {"albert", mlm, "albert"},
      {"albert, last layers", tag, "albert", false, last_layers},
      {"albert, lora with dropout", text, "albert", false, wide_lora}, {"mpnet", mlm, "mpnet"},
      {"mpnet, last layers", text, "mpnet", false, last_layers}, {"deberta", mlm, "deberta-v2"},
      {"deberta with convolution", text, "deberta-v2"},
      {"deberta with own projections", tag, "deberta-v2"},
      {"deberta, last layers", tag, "deberta-v2", false, last_layers},
      {"deberta, lora with dropout", text, "deberta-v2", false, wide_lora}};
}

Model MakeModel(const Case& c) {
  ModelConfig config =
      ConfigOf(c.norm, {.hidden = 64, .heads = 2, .layers = 3, .intermediate = 256, .vocab = 900},
          c.dropout, c.head);
  config.crf = c.crf;
  if (c.norm == kModern) config.pooling = Pool::kMean;
  return Model(config, true, c.trainable);
}

// A training pass's passes, as the trainer makes them.
void RunPass(Model& model, const Batch& batch, DType type, bool recompute) {
  model.arena().Reset();
  Pass pass = model.NewPass(batch, type, true, kSeed);
  pass.recompute = recompute;
  const Backbone::Saved saved = model.backbone().Forward(pass);
  const bool trained = model.backbone().requires_grad(pass);
  const Mat dy = trained ? pass.New(saved.y.rows, saved.y.cols) : Mat();
  LossOf(model.head(), model.config(), pass, saved.y, 0.5f, dy);
  if (trained) model.backbone().Backward(pass, saved, dy);
}

// The passes of an evaluation.
void RunInference(Model& model, const Batch& batch, DType type) {
  model.arena().Reset();
  const Pass pass = model.NewPass(batch, type);
  const Mat hidden = model.backbone().Infer(pass);
  if (model.config().head != HeadKind::kMaskedLm) model.head().Logits(pass, hidden);
  LossOf(model.head(), model.config(), pass, hidden, 0, {});
}

const std::vector<int32_t> kLengths = {100, 120, 77, 3, 99};

TEST(DryRun, NeedsWhatATrainingPassNeeds) {
  for (const Case& c : Cases()) {
    for (const DType type : {DType::kF32, DType::kBf16}) {
      for (const bool recompute : {false, true}) {
        for (const int threads : {1, 3}) {
          SetThreads(threads);
          Model model = MakeModel(c);
          model.Initialize(3);
          const bool shared = threads == 1;
          model.matmul().SharePacked(shared);
          const Batch batch = MakeBatch(kLengths, model.config());
          RunPass(model, batch, type, recompute);
          const auto laid_out =
              std::make_unique<Model>(model.config(), true, c.trainable, Model::Memory::kNone);
          laid_out->matmul().SharePacked(shared);
          {
            const DryRun dry;
            RunPass(*laid_out, batch, type, recompute);
          }
          EXPECT_EQ(laid_out->arena().peak(), model.arena().peak())
              << c.name << int(type) << recompute;
          EXPECT_GE(laid_out->matmul().TakeDryMemory().packed, model.matmul().packed_bytes())
              << c.name;
          EXPECT_EQ(laid_out->matmul().packed_bytes(), 0);
        }
      }
    }
  }
  SetThreads(1);
}

TEST(DryRun, NeedsWhatEvaluationNeeds) {
  for (const Case& c : Cases()) {
    Model model = MakeModel(c);
    const Batch batch = MakeBatch(kLengths, model.config());
    RunInference(model, batch, DType::kF32);
    const auto laid_out =
        std::make_unique<Model>(model.config(), true, c.trainable, Model::Memory::kNone);
    const DryRun dry;
    RunInference(*laid_out, batch, DType::kF32);
    EXPECT_EQ(laid_out->arena().peak(), model.arena().peak()) << c.name;
    EXPECT_GE(laid_out->matmul().TakeDryMemory().packed, model.matmul().packed_bytes()) << c.name;
    EXPECT_EQ(laid_out->matmul().TakeDryMemory().packed, 0) << "forgotten";
  }
}

TEST(DryRun, LeavesTheModelAsItIs) {
  Model model = MakeModel({"mlm"});
  model.Initialize(3);
  const Batch batch = MakeBatch(kLengths, model.config());
  const std::vector<float> values(model.params().values().begin(), model.params().values().end());
  {
    const DryRun dry;
    RunPass(model, batch, DType::kF32, false);
  }
  EXPECT_EQ(
      std::vector<float>(model.params().values().begin(), model.params().values().end()), values);
  for (const float g : model.params().grads()) ASSERT_EQ(g, 0);
  RunPass(model, batch, DType::kF32, false);
  EXPECT_NE(model.params().grads()[0], 0) << "a dry run ends with its scope";
}

// The gradients of all parameters after two passes, one on top of the other.
std::vector<float> Gradients(const Case& c, DType type, bool recompute, int64_t* peak) {
  Model model = MakeModel(c);
  model.Initialize(3);
  for (const int32_t length : {120, 31})
    RunPass(model, MakeBatch({length, 17, length / 2}, model.config()), type, recompute);
  *peak = model.arena().peak();
  return {model.params().grads().begin(), model.params().grads().end()};
}

TEST(Recompute, GivesTheSameBitsWithLessMemory) {
  for (const Case& c : Cases()) {
    for (const DType type : {DType::kF32, DType::kBf16}) {
      int64_t kept = 0, again = 0, threaded = 0;
      const std::vector<float> expected = Gradients(c, type, false, &kept);
      EXPECT_EQ(Gradients(c, type, true, &again), expected) << c.name;
      SetThreads(3);
      EXPECT_EQ(Gradients(c, type, true, &threaded), expected) << c.name;
      SetThreads(1);
      const bool whole = c.trainable.part_case() == TrainableSpec::PART_NOT_SET;
      // A block with a convolution is larger than the two others.
      const int64_t least = std::string(c.name).ends_with("convolution") ? 77 : 75;
      EXPECT_LE(again, whole ? kept * least / 100 : kept + kept / 50) << c.name;
    }
  }
}

}  // namespace
}  // namespace cloze
