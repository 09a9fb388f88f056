// Encoder-decoders in whole runs: from scratch, from one encoder and from two.
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class SequenceToSequenceTest : public TrainerTest {
 protected:
  SequenceToSequenceTest() {
    const std::string words[] = {"the", "cat", "sat", "on", "mat"};
    std::string pairs = "text\ttarget\n";  // the same words backwards
    for (int i = 0; i < 125; ++i) {
      const std::string &a = words[i % 5], &b = words[i / 5 % 5], &c = words[i / 25];
      absl::StrAppend(&pairs, a, " ", b, " ", c, "\t", c, " ", b, " ", a, "\n");
    }
    Write("pairs.tsv", pairs);
  }
  LoadedSpec Pairs(const std::string& model, const std::string& run, int steps) {
    LoadedSpec loaded =
        Spec(model + " sequence_to_sequence { max_tokens: 12 max_target_tokens: 8 }", "pairs.tsv",
            run, steps);
    loaded.spec.mutable_train()->set_text_pair_field("target");
    *loaded.spec.mutable_validation() = loaded.spec.train();
    loaded.spec.mutable_validation()->set_max_examples(40);
    return loaded;
  }
  std::string From(const std::string& run, const std::string& decoder = "") {
    return absl::StrCat("model { start_from: \"", Path(run), "\"",
        decoder.empty() ? "" : absl::StrCat(" decoder_from: \"", Path(decoder), "\""), " }");
  }
  // The values of a tensor in a folder.
  std::vector<float> Tensor(const std::string& folder, const std::string& name) {
    const auto files = SafetensorsReader::OpenFolder(Path(folder));
    EXPECT_TRUE(files.ok()) << files.status();
    const TensorInfo* info = files->Find(name);
    if (info == nullptr) return {};
    std::vector<float> values(info->elements());
    EXPECT_TRUE(files->ReadF32(name, absl::MakeSpan(values)).ok());
    return values;
  }
};

TEST_F(SequenceToSequenceTest, LearnsToTurnWordsAround) {
  LoadedSpec spec = Pairs(NewEncoder(), "run", 300);
  spec.spec.mutable_batch()->set_tokens(512);
  spec.spec.mutable_batch()->set_micro_tokens(256);
  spec.spec.mutable_model()->set_dropout(0);
  spec.spec.mutable_optimizer()->set_learning_rate(6e-3f);
  spec.spec.mutable_evaluation()->set_every_steps(150);
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const MetricResults& best = summary->best;
  EXPECT_EQ(best.values.front().first, "loss");
  EXPECT_LT(best.values.front().second, 0.02);
  EXPECT_EQ(*best.Value("exact_match"), 1);
  EXPECT_EQ(*best.Value("chrf"), 100);
  EXPECT_EQ(*best.Value("bleu"), 0);  // no target has four words
  const auto config = LoadConfig(Path("run"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head, HeadKind::kSequenceToSequence);
  EXPECT_EQ(config->generation.start_id, 2);
  EXPECT_EQ(config->end_id, 3);
  // Without its spec, and with positions for more than is read.
  EXPECT_EQ((*RestoreTask("x", *config, 64))->max_tokens(), 12 + 8);
  ModelConfig longer = *config;
  longer.task_fields["max_tokens"] = 600;
  const auto task = RestoreTask("x", longer, 64);
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_EQ((*task)->max_tokens(), 64 + 8);
}

TEST_F(SequenceToSequenceTest, ResumesWithTheSameBits) {
  const auto spec = [&](const std::string& run) {
    LoadedSpec loaded = Pairs(NewEncoder(), run, 10);
    loaded.spec.mutable_optimizer()->set_ema_decay(0.9f);
    loaded.spec.mutable_evaluation()->set_every_steps(5);
    return loaded;
  };
  ExpectSameBitsAfterResumes(spec);
}

TEST_F(SequenceToSequenceTest, StartsFromEncoders) {
  const auto encoder = [&](const std::string& run, int layers) {
    LoadedSpec spec = Spec(Mlm(), "text.txt", run, 2);
    spec.spec.mutable_model()->mutable_encoder()->set_layers(layers);
    spec.spec.set_seed(layers);
    ASSERT_TRUE(Train(spec).ok());
  };
  encoder("first", 1);
  encoder("second", 2);
  LoadedSpec both = Pairs(From("first", "second"), "both", 1);
  both.spec.mutable_optimizer()->set_learning_rate(0);
  ASSERT_TRUE(Train(both).ok());
  EXPECT_THAT(progress_, HasSubstr("new in this model: the decoder's attention to the encoder\n"));
  const std::string layer = "encoder.layer.0.output.dense.weight";
  EXPECT_EQ(Tensor("both", "encoder." + layer), Tensor("first", "bert." + layer));
  EXPECT_EQ(Tensor("both", "decoder.bert." + layer), Tensor("second", "bert." + layer));
  const std::string bias = "cls.predictions.bias";
  EXPECT_EQ(Tensor("both", "decoder." + bias), Tensor("second", bias));
  EXPECT_FALSE(
      Tensor("both", "decoder.bert.encoder.layer.1.crossattention.self.query.weight").empty());
  EXPECT_TRUE(Tensor("both", "encoder.encoder.layer.1.output.dense.weight").empty());

  LoadedSpec again = Pairs(From("both"), "again", 1);
  again.spec.mutable_optimizer()->set_learning_rate(0);
  ASSERT_TRUE(Train(again).ok());
  EXPECT_EQ(Weights("both"), Weights("again"));
  ASSERT_TRUE(Train(Pairs(From("second"), "one", 1)).ok());
  EXPECT_FALSE(Tensor("one", "encoder." + layer).empty());

  LoadedSpec frozen = Pairs(From("first", "second"), "x", 1);
  frozen.spec.mutable_trainable()->set_head_only(true);
  EXPECT_THAT(Train(frozen).status().message(), HasSubstr("trainable: the decoder's attention"));
  EXPECT_THAT(Train(Pairs(From("both", "second"), "x", 1)).status().message(),
      HasSubstr("model.decoder_from: model.start_from is an encoder-decoder"));
  EXPECT_THAT(Train(Spec(From("both") + " masked_lm { max_tokens: 32 }", "text.txt", "x", 1))
                  .status()
                  .message(),
      HasSubstr("the model is an encoder-decoder: expected sequence_to_sequence"));
}

TEST_F(SequenceToSequenceTest, NamesWhatDoesNotFit) {
  const auto message = [&](const LoadedSpec& spec) {
    return std::string(Train(spec).status().message());
  };
  LoadedSpec spec = Pairs(NewEncoder(), "x", 1);
  spec.spec.mutable_train()->clear_text_pair_field();
  EXPECT_THAT(message(spec), HasSubstr("train.text_pair_field"));
  spec = Pairs(NewEncoder(), "x", 1);
  spec.spec.mutable_train()->set_text_pair_field("french");
  EXPECT_THAT(message(spec), HasSubstr("french"));
  spec = Pairs(NewEncoder(), "x", 1);
  spec.spec.mutable_sequence_to_sequence()->set_max_target_tokens(65);
  EXPECT_THAT(message(spec), HasSubstr("65 is more than model.encoder.max_positions = 64"));
  spec = Pairs(NewEncoder("architecture: MODERN"), "x", 1);
  EXPECT_THAT(message(spec), HasSubstr("model.encoder: the decoder is of the family modernbert"));
  spec = Pairs(NewEncoder(), "x", 1);
  spec.spec.mutable_model()->set_decoder_from("y");
  EXPECT_THAT(message(spec), HasSubstr("model.decoder_from"));
  spec = Pairs(NewEncoder(), "x", 1);
  spec.spec.mutable_batch()->set_micro_tokens(16);
  EXPECT_THAT(message(spec), HasSubstr("expected room for one pair"));
}

}  // namespace
}  // namespace cloze
