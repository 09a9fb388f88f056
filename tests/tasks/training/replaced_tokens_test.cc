// ELECTRA's pretraining: a generator and a discriminator in one run.
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class ReplacedTokensTest : public TrainerTest {
 protected:
  LoadedSpec Pretraining(const std::string& run, int steps, const std::string& more = "",
      const std::string& encoder = "architecture: ELECTRA embedding: 16") {
    LoadedSpec loaded = Spec(NewEncoder(encoder) +
                                 " masked_lm { max_tokens: 32 mask_share: 0.4 final_mask_share: "
                                 "0.2 replaced_tokens { generator_size: 0.5 " +
                                 more + "} }",
        "text.txt", run, steps);
    loaded.spec.mutable_validation()->add_files(Path("text.txt"));
    return loaded;
  }
  std::string Generator(const std::string& run) {
    return Read(Path(run) + "/" + WeightsFile("generator"));
  }
  double Value(const MetricResults& results, const std::string& name) {
    const auto value = results.Value(name);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.value_or(-1);
  }
};

TEST_F(ReplacedTokensTest, ResumeWithTheSameBits) {
  const auto spec = [&](const std::string& run) {
    LoadedSpec loaded = Pretraining(run, 10);
    loaded.spec.mutable_optimizer()->set_ema_decay(0.9f);
    loaded.spec.mutable_evaluation()->set_every_steps(5);
    return loaded;
  };
  ExpectSameBitsAfterResumes(spec);
  EXPECT_EQ(Generator("straight"), Generator("pieces"));
}

TEST_F(ReplacedTokensTest, BothModelsLearn) {
  LoadedSpec spec = Pretraining("run", 600);
  spec.spec.mutable_optimizer()->set_learning_rate(6e-3f);
  spec.spec.mutable_evaluation()->set_every_steps(100);
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const MetricResults& best = summary->best;
  EXPECT_LT(Value(best, "generator_loss"), 3.0);  // ln 50 = 3.9 at the start
  EXPECT_LT(Value(best, "replaced_loss"), 0.15);
  EXPECT_GT(Value(best, "accuracy"), 0.95);
  EXPECT_GT(Value(best, "generator_accuracy"), 0.4);
  EXPECT_GT(Value(best, "f1"), 0.9);
  EXPECT_NEAR(
      Value(best, "loss"), Value(best, "generator_loss") + 50 * Value(best, "replaced_loss"), 1e-9);
}

// A generator that shares embeddings has the sizes of the model and half of its layers; another has
// half of the sizes.
TEST_F(ReplacedTokensTest, ModernEncodersLearn) {
  const std::string modern = "architecture: MODERN";
  LoadedSpec spec = Pretraining("shared", 600, "", modern);
  spec.spec.mutable_optimizer()->set_learning_rate(6e-3f);
  spec.spec.mutable_evaluation()->set_every_steps(200);
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_LT(Value(summary->best, "generator_loss"), 3.0);
  EXPECT_GT(Value(summary->best, "f1"), 0.8);
  const auto own = Train(Pretraining("own", 8, "share_embeddings: false", modern));
  ASSERT_TRUE(own.ok()) << own.status();
  for (const char* run : {"shared", "own"}) {
    const auto config = LoadConfig(Path(run));
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->head, HeadKind::kReplacedTokens);
    const auto json = ParseJson(Read(Path(run) + "/" + "generator_config.json"), "config");
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_EQ((*json)["num_hidden_layers"], run == std::string("shared") ? 1 : 2);
    EXPECT_EQ((*json)["hidden_size"], run == std::string("shared") ? 32 : 16);
  }
}

// The generator's files are a masked language model with the loss that the run has measured.
TEST_F(ReplacedTokensTest, WritesAGeneratorThatLoads) {
  for (const bool shares : {true, false}) {
    const std::string run = shares ? "shared" : "own";
    LoadedSpec spec = Pretraining(run, 8, shares ? "" : "share_embeddings: false");
    const auto summary = Train(spec);
    ASSERT_TRUE(summary.ok()) << summary.status();
    const auto model = LoadConfig(Path(run));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->head, HeadKind::kReplacedTokens);
    const std::string folder = Path(run + "-generator");
    std::filesystem::create_directories(folder);
    for (const auto& [from, to] : {std::pair(WeightsFile("generator"), "model.safetensors"),
             {"generator_config.json", "config.json"}, {"tokenizer.json", "tokenizer.json"},
             {"tokenizer_config.json", "tokenizer_config.json"}}) {
      std::filesystem::copy_file(Path(run) + "/" + from, folder + "/" + to);
    }
    LoadedSpec same = Spec(
        "model { start_from: \"" + folder + "\" } masked_lm { max_tokens: 32 mask_share: 0.2 }",
        "text.txt", run + "-again", 1);
    same.spec.mutable_optimizer()->set_learning_rate(0);
    same.spec.mutable_validation()->add_files(Path("text.txt"));
    const auto alone = Train(same);
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_NEAR(Value(alone->best, "loss"), Value(summary->best, "generator_loss"), 1e-5);
    const bool equal = LoadConfig(folder)->hidden == 16;
    EXPECT_TRUE(equal);
  }
  EXPECT_NE(Generator("shared"), Generator("own"));
}

// A run from the folder of another one continues both models.
TEST_F(ReplacedTokensTest, StartsFromARun) {
  ASSERT_TRUE(Train(Pretraining("first", 8)).ok());
  LoadedSpec spec = Pretraining("second", 1);
  spec.spec.mutable_model()->clear_encoder();
  spec.spec.mutable_model()->set_start_from(Path("first"));
  spec.spec.mutable_optimizer()->set_learning_rate(0);
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_EQ(Weights("first"), Weights("second"));
  EXPECT_EQ(Generator("first"), Generator("second"));
}

TEST_F(ReplacedTokensTest, GradientsDoNotDependOnMicroBatches) {
  const auto gradients = [&](const std::string& run, int micro) {
    LoadedSpec spec = Pretraining(run, 1);
    spec.spec.mutable_batch()->set_micro_tokens(micro);
    spec.spec.mutable_model()->set_dropout(0);
    spec.spec.mutable_model()->set_attention_dropout(0);
    std::vector<float> found;
    testing::internal::CaptureStderr();
    auto trainer = Trainer::Create(spec, {.on_gradients = [&](int64_t, absl::Span<float> all) {
      found.assign(all.begin(), all.end());
    }});
    EXPECT_TRUE(trainer.ok() && (*trainer)->Run().ok());
    testing::internal::GetCapturedStderr();
    return found;
  };
  const std::vector<float> whole = gradients("whole", 128), parts = gradients("parts", 32);
  ASSERT_EQ(whole.size(), parts.size());
  double largest = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    largest = std::max(largest, std::abs(double{whole[i]}));
    ASSERT_NEAR(whole[i], parts[i], 2e-4) << i;
  }
  EXPECT_GT(largest, 0.1);
}

TEST_F(ReplacedTokensTest, OtherFamiliesAreRefused) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "bert", 1)).ok());
  LoadedSpec spec = Pretraining("run", 1);
  spec.spec.mutable_model()->clear_encoder();
  spec.spec.mutable_model()->set_start_from(Path("bert"));
  const absl::Status status = Train(spec).status();
  EXPECT_EQ(ExitOf(status), Exit::kSpec);
  EXPECT_THAT(std::string(status.message()), HasSubstr("family bert: expected electra"));
}

}  // namespace
}  // namespace cloze
