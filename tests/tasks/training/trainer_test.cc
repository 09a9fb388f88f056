// Whole training runs: they learn, resume with the same bits, and stop cleanly.

#include <cmath>
#include <filesystem>

#include "absl/algorithm/container.h"
#include "core/base/json.h"
#include "core/base/threads.h"
#include "core/manifest/manifest.h"
#include "encoder/folder/model_folder.h"
#include "tasks/inference/evaluate.h"
#include "tasks/run/trainer_state.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

TEST_F(TrainerTest, PretrainsPostAndPreNormAndSinusoids) {
  int run = 0;
  for (const char* kind : {"", "norm: PRE ", "positions: SINUSOIDAL ",
           "positions: SINUSOIDAL_START query_key_start: 2 ", "activation: RELU "}) {
    const std::string folder = absl::StrCat("run", run++);
    const auto summary = Train(Spec(Mlm(kind), "text.txt", folder, 120));
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_LT(summary->loss, 2) << kind;  // the uniform guess is ln(62) = 4.1
    const auto config = LoadConfig(Path(folder));
    ASSERT_TRUE(config.ok()) << config.status();
    Model model(*config, false);
    std::vector<std::string> fresh;
    ASSERT_TRUE(model.Load(Path(folder), 0, &fresh).ok());
    EXPECT_TRUE(fresh.empty());
  }
}

TEST_F(TrainerTest, ResumesWithTheSameBits) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "straight", 12)).ok());
  // Stops after one step, again and again, with changing numbers of threads.
  const int threads = Threads();
  for (int i = 1; i < 12; ++i) {
    SetThreads(i % 4 + 1);
    const auto stopped = Train(Spec(Mlm(), "text.txt", "pieces", 12), 1);
    EXPECT_EQ(ExitOf(stopped.status()), Exit::kInterrupted) << stopped.status();
  }
  const auto last = Train(Spec(Mlm(), "text.txt", "pieces", 12));
  SetThreads(threads);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_THAT(progress_, HasSubstr("resumed at step 11 of 12"));
  EXPECT_EQ(Weights("straight"), Weights("pieces"));
}

TEST_F(TrainerTest, PatienceEndsARunAndStoppingInBetweenChangesNothing) {
  const auto spec = [&](const std::string& run) { return Worsening(run); };
  const auto straight = Train(spec("straight"));
  ASSERT_TRUE(straight.ok()) << straight.status();
  EXPECT_LT(straight->steps, 200);
  EXPECT_THAT(progress_, HasSubstr("no better loss in 3 evaluations: the run ends"));
  absl::StatusOr<Trainer::Summary> pieces;
  for (int i = 0; i < 100; ++i) {
    pieces = Train(spec("pieces"), 5);  // just where an evaluation is due
    if (pieces.ok()) break;
    ASSERT_EQ(ExitOf(pieces.status()), Exit::kInterrupted) << pieces.status();
  }
  ASSERT_TRUE(pieces.ok());
  EXPECT_EQ(pieces->steps, straight->steps);
  EXPECT_EQ(Weights("pieces"), Weights("straight"));
  EXPECT_EQ(Read(Path("pieces/metrics.json")), Read(Path("straight/metrics.json")));
  const auto again = Train(spec("pieces"));  // finished: trains no further
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->steps, straight->steps);
}

// One text is right or wrong, so most evaluations have the same accuracy.
TEST_F(TrainerTest, TheLowerLossDecidesBetweenEqualMetricsAndIsProgress) {
  Write("one.tsv", "text\tlabel\nthe cat sat\tcat\n");
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", "run", 60);
  spec.spec.mutable_validation()->add_files(Path("one.tsv"));
  spec.spec.mutable_evaluation()->set_every_steps(4);
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  double accuracy = -1, loss = 0;
  int64_t step = 0, ties = 0;
  for (const Json& record : Evaluations("run")) {
    const double value = record["evaluation"]["accuracy"], its_loss = record["evaluation"]["loss"];
    const bool better = value > accuracy || (value == accuracy && its_loss <= loss);
    EXPECT_EQ(record["best"], better) << record;
    ties += value == accuracy && its_loss < loss;
    if (better) accuracy = value, loss = its_loss, step = record["step"];
  }
  EXPECT_GT(ties, 2) << "progress that the metric does not show";
  const auto metrics = ParseJson(Read(Path("run/metrics.json")), "metrics.json");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->at("step"), step);
  EXPECT_EQ(metrics->at("metrics").at("loss"), loss);
  // Patience counts it: a run ends only where neither the accuracy nor the loss improves.
  spec.spec.mutable_output()->set_directory(Path("patient"));
  spec.spec.mutable_evaluation()->set_patience(2);
  ASSERT_TRUE(Train(spec).ok());
  int64_t without = 0;
  for (const Json& record : Evaluations("patient")) {
    EXPECT_LT(without, 2) << "the run should have ended before " << record;
    without = record["best"].get<bool>() ? 0 : without + 1;
  }
  EXPECT_TRUE(without == 2 || Evaluations("patient").size() == 15) << without;
}

// No label of the validation data is known, so that there is no loss, and no evaluation is better.
TEST_F(TrainerTest, WithoutALossTheLaterOfEqualModelsIsKept) {
  Write("unseen.tsv", "text\tlabel\nthe cat sat\tbird\n");
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", "run", 12);
  spec.spec.mutable_validation()->add_files(Path("unseen.tsv"));
  spec.spec.mutable_evaluation()->set_every_steps(4);
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_THAT(Read(Path("run/metrics.json")), HasSubstr("{\"step\":12,"));
  EXPECT_EQ(Weights("run"), Weights("run/step-00000012"));
  spec.spec.mutable_output()->set_directory(Path("patient"));
  spec.spec.mutable_evaluation()->set_every_steps(2);
  spec.spec.mutable_evaluation()->set_patience(2);
  const auto patient = Train(spec);
  ASSERT_TRUE(patient.ok()) << patient.status();
  EXPECT_EQ(patient->steps, 6) << "two evaluations after the first";
}

// As `cloze evaluate` does: in f32, also if training is in bf16.
TEST_F(TrainerTest, ARunReportsWhatInferenceGives) {
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", "run", 20);
  spec.spec.mutable_validation()->add_files(Path("classes.tsv"));
  spec.spec.mutable_runtime()->set_compute(RuntimeSpec::BF16);
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  Model model(*LoadConfig(Path("run")), false);
  std::vector<std::string> fresh;
  ASSERT_TRUE(model.Load(Path("run"), 0, &fresh).ok());
  BuildOptions build;
  build.cache_dir = Path("run/cache");
  const auto inputs = LoadRunInputs(spec, build);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const auto results = Evaluate(model, *inputs->task, inputs->validation->store,
      {.batch_tokens = 64, .decode = {.fit = true}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->values, summary->best.values);
}

// A checkpoint of an earlier version may lack the loss of its best model.
TEST_F(TrainerTest, ARunOfAnEarlierVersionGoesOnWithoutTheLossOfItsBestModel) {
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", "run", 12);
  Write("one.tsv", "text\tlabel\nthe cat sat\tbird\n");
  spec.spec.mutable_validation()->add_files(Path("one.tsv"));
  spec.spec.mutable_evaluation()->set_every_steps(4);
  EXPECT_EQ(ExitOf(Train(spec, 6).status()), Exit::kInterrupted);
  const std::string checkpoint = Path("run/step-00000006");
  auto state = ReadTrainerState(checkpoint);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->best_step(), 4);
  state->clear_best();
  std::filesystem::remove(checkpoint + "/trainer.textproto");
  std::filesystem::remove(checkpoint + "/MANIFEST");
  ASSERT_TRUE(WriteTrainerState(checkpoint, *state).ok());
  ASSERT_TRUE(AddManifest(checkpoint, 6).ok());
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(progress_, HasSubstr("resumed at step 6"));
  EXPECT_THAT(Read(Path("run/metrics.json")), HasSubstr("{\"step\":12,"));
}

TEST_F(TrainerTest, PairsOfTextsChooseTheBestModel) {
  Write("pairs.tsv", "good\tbad\nthe cat the cat\tred big red big\n");
  LoadedSpec spec = Spec(Mlm(), "text.txt", "pairs", 40);
  spec.spec.mutable_validation()->add_files(Path("text.txt"));
  spec.spec.mutable_evaluation()->add_pairs(Path("pairs.tsv"));
  spec.spec.mutable_evaluation()->set_metric("pair_accuracy");
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(*summary->best.Value("pair_accuracy"), 1);
  EXPECT_EQ(summary->metric.name, "pair_accuracy");
  Write("pairs.tsv", "good\tbad\n");
  EXPECT_THAT(std::string(Train(spec).status().message()), HasSubstr("evaluation.pairs"));
  const auto wrong = CheckInputs(spec);
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_THAT(std::string(wrong[0].message()), HasSubstr("no pairs"));
}

TEST_F(TrainerTest, OtherPairsChooseTheBestModelAnew) {
  LoadedSpec spec = Spec(Mlm(), "text.txt", "run", 12);
  spec.spec.mutable_validation()->add_files(Path("text.txt"));
  spec.spec.mutable_evaluation()->add_pairs(Path("pairs.tsv"));
  spec.spec.mutable_evaluation()->set_every_steps(4);
  Write("pairs.tsv", "good\tbad\nthe cat\tred big\n");
  EXPECT_EQ(ExitOf(Train(spec, 5).status()), Exit::kInterrupted);
  EXPECT_THAT(progress_, testing::Not(HasSubstr("cut off")));
  std::string words;
  for (int i = 0; i < 200; ++i) words += "cat ";
  Write("pairs.tsv", absl::StrCat("good\tbad\nthe cat\t", words, "\n"));
  EXPECT_EQ(ExitOf(Train(spec, 1).status()), Exit::kInterrupted);
  EXPECT_THAT(progress_, HasSubstr("validation data changed"));
  EXPECT_THAT(progress_, testing::ContainsRegex("pairs: longer than .* 1 text, .* cut off"));
}

TEST_F(TrainerTest, TheMetricOfTheBestModelDoesNotChangeOnResume) {
  LoadedSpec spec = Spec(Mlm(), "text.txt", "run", 12);
  spec.spec.mutable_validation()->add_files(Path("text.txt"));
  spec.spec.mutable_evaluation()->set_every_steps(2);
  EXPECT_EQ(ExitOf(Train(spec, 6).status()), Exit::kInterrupted);
  LoadedSpec other = spec;
  other.spec.mutable_evaluation()->set_metric("accuracy");
  ExpectError(Train(other).status(), Exit::kMismatch, "is accuracy: expected loss");
  other.spec.mutable_evaluation()->set_metric("loss");  // the default by its name
  const auto summary = Train(other);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->metric.name, "loss");
}

TEST_F(TrainerTest, OtherValidationDataChooseTheBestModelAnew) {
  LoadedSpec spec = Spec(Mlm(), "text.txt", "run", 12);
  spec.spec.mutable_validation()->add_files(Path("text.txt"));
  spec.spec.mutable_evaluation()->set_every_steps(4);
  EXPECT_EQ(ExitOf(Train(spec, 5).status()), Exit::kInterrupted);
  EXPECT_EQ(ExitOf(Train(spec, 1).status()), Exit::kInterrupted);
  EXPECT_THAT(progress_, testing::Not(HasSubstr("validation data changed")));
  Write("other.txt", "a dog ran .\n\n");
  spec.spec.mutable_validation()->set_files(0, Path("other.txt"));
  EXPECT_EQ(ExitOf(Train(spec, 1).status()), Exit::kInterrupted);
  EXPECT_THAT(progress_, HasSubstr("validation data changed"));
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_THAT(progress_, testing::Not(HasSubstr("validation data changed")));
  EXPECT_THAT(progress_, HasSubstr("step 8"));
}

TEST_F(TrainerTest, AWarmupThatOutlastsTheRunIsNoted) {
  LoadedSpec spec = Spec(Mlm(), "text.txt", "run", 4);
  spec.spec.mutable_schedule()->clear_steps();
  spec.spec.mutable_schedule()->set_epochs(1);
  spec.spec.mutable_schedule()->set_warmup_steps(1000);
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_THAT(progress_, HasSubstr("schedule.warmup_steps is 1000, but the run has"));
}

TEST_F(TrainerTest, AFinishedRunAnswersForItsModel) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "last", 8)).ok());
  const std::string weights = Weights("last");
  std::filesystem::remove(Path("last/config.json"));
  std::filesystem::resize_file(Path("last/model.safetensors"), 5);
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "last", 8)).ok());  // from the last checkpoint
  EXPECT_EQ(Weights("last"), weights);
  EXPECT_TRUE(LoadConfig(Path("last")).ok());
  const LoadedSpec early = Worsening("early");
  ASSERT_TRUE(Train(early).ok());
  ASSERT_TRUE(Train(early).ok());
  std::filesystem::remove(Path("early/vocab.txt"));
  ExpectError(Train(early).status(), Exit::kMismatch, "is damaged and no checkpoint holds it");
}

// A best value of few texts is no measure for all of them.
TEST_F(TrainerTest, ANewNumberOfEvaluatedTextsChoosesTheBestModelAnew) {
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", "run", 200);
  spec.spec.mutable_validation()->add_files(Path("classes.tsv"));
  spec.spec.mutable_evaluation()->set_every_steps(5);
  spec.spec.mutable_evaluation()->set_max_examples(1);
  EXPECT_EQ(ExitOf(Train(spec, 12).status()), Exit::kInterrupted);
  spec.spec.mutable_evaluation()->clear_max_examples();
  spec.spec.mutable_evaluation()->set_patience(3);
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_THAT(progress_, HasSubstr("the next evaluation chooses the best model anew"));
  const std::string before = Read(Path("run/spec.textproto"));
  spec.spec.mutable_validation()->set_files(0, Path("other.tsv"));
  Write("other.tsv", "text\tlabel\nthe cat\tcat\n");
  ASSERT_TRUE(Train(spec).ok());
  EXPECT_THAT(progress_, HasSubstr("its metrics are those of other validation data"));
  EXPECT_EQ(Read(Path("run/spec.textproto")), before);
}

// All texts of one column are <unk>, so all predictions are equal and correlate with nothing.
TEST_F(TrainerTest, AMetricThatIsNeverANumberLosesNoResults) {
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 40; ++i) absl::StrAppend(&rows, "zq", i, "\t", i % 2, "\n");
  Write("numbers.tsv", rows);
  LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { max_tokens: 48 kind: REGRESSION }",
          "numbers.tsv", "run", 8);
  spec.spec.mutable_validation()->add_files(Path("numbers.tsv"));
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(progress_, HasSubstr("pearson was never a number"));
  ASSERT_TRUE(summary->best.Value("mse").ok());
  EXPECT_TRUE(std::isfinite(*summary->best.Value("mse")));
}

TEST_F(TrainerTest, ThreadsDoNotChangeBits) {
  const int threads = Threads();
  std::string first;
  for (const int n : {1, 2, 3, 8}) {
    SetThreads(n);
    ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", absl::StrCat("threads", n), 6)).ok());
    if (first.empty()) first = Weights("threads1");
    EXPECT_EQ(Weights(absl::StrCat("threads", n)), first) << n;
  }
  SetThreads(threads);
}

TEST_F(TrainerTest, AForkStartsTheAverageWithItsOwnWeights) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "old", 20)).ok());
  LoadedSpec spec = Spec(Mlm(), "text.txt", "new", 1);
  spec.spec.mutable_optimizer()->set_ema_decay(0.9f);
  spec.spec.mutable_optimizer()->set_learning_rate(1e-9f);
  ASSERT_TRUE(Train(spec, 1000, Path("old")).ok());
  const std::vector<float> old = Values("old"), now = Values("new");
  for (size_t i = 0; i < old.size(); ++i) ASSERT_NEAR(now[i], old[i], 1e-6) << i;
}

TEST_F(TrainerTest, AModelWithoutCheckpointsIsNotReplacedByThatOfAnotherSpec) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "run", 4)).ok());
  for (const auto& entry : std::filesystem::directory_iterator(Path("run"))) {
    if (entry.path().filename().string().starts_with("step-"))
      std::filesystem::remove_all(entry.path());
  }
  const std::string weights = Weights("run");
  LoadedSpec other = Spec(Mlm(), "text.txt", "run", 4);
  other.spec.set_seed(5);
  ExpectError(Train(other).status(), Exit::kMismatch, "the run was started with another spec");
  EXPECT_EQ(Weights("run"), weights);
  EXPECT_TRUE(Train(Spec(Mlm(), "text.txt", "run", 4)).ok());
  EXPECT_THAT(progress_, HasSubstr("holds a model but no checkpoint: this run starts anew"));
  EXPECT_EQ(Weights("run"), weights);
}

TEST_F(TrainerTest, ARunWithoutAnUpdateIsAnError) {
  Write("huge.tsv", "text\tlabel\nthe cat\t1e20\na dog\t-1e20\n");
  const LoadedSpec spec =
      Spec(NewEncoder() + " sequence_classification { kind: REGRESSION max_tokens: 48 }",
          "huge.tsv", "huge", 4);
  ExpectError(Train(spec).status(), Exit::kInternal, "all 4 steps were skipped");
  EXPECT_THAT(progress_, testing::Not(HasSubstr("-nan")));
  EXPECT_FALSE(PathExists(Path("huge/model.safetensors")));
}

TEST_F(TrainerTest, TheFolderNamesTheColumnsOfPairs) {
  Write("columns.csv", "q,text,label\nthe cat,sat,x\na dog,ran,y\n");
  LoadedSpec spec = Spec(
      NewEncoder() + " sequence_classification { max_tokens: 48 }", "columns.csv", "columns", 1);
  spec.spec.mutable_train()->set_text_field("q");
  spec.spec.mutable_train()->set_text_pair_field("text");
  ASSERT_TRUE(Train(spec).ok());
  const auto config = LoadConfig(Path("columns"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->task_fields["text_field"], "q");
  EXPECT_EQ(config->task_fields["text_pair_field"], "text");
}

TEST_F(TrainerTest, BitsPerByteOfADecoderCountTheEndsOfTexts) {
  LoadedSpec spec = Spec(
      NewEncoder("architecture: GPT2") + " causal_lm { max_tokens: 32 }", "text.txt", "decoder", 4);
  spec.spec.mutable_validation()->add_files(Path("text.txt"));
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const auto& tables = summary->best.tables;
  const auto predicted =
      absl::c_find_if(tables, [](const auto& table) { return table.first == "predicted_tokens"; });
  ASSERT_NE(predicted, tables.end());
  const std::string texts[] = {
      "the cat sat on the mat , the cat sat .", "a dog ran to a big red box . a dog ."};
  const double bytes = 30.0 * (texts[0].size() + texts[1].size()),
               nats = *summary->best.Value("loss") * std::stod(predicted->second);
  EXPECT_NEAR(*summary->best.Value("bits_per_byte"), nats / std::log(2.0) / bytes, 1e-9);
}

TEST_F(TrainerTest, AForkTrainsNoAdapterOfAnotherBase) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "old", 4)).ok());
  const LoadedSpec lora = Spec(absl::StrCat("model { start_from: \"", Path("old"),
                                   "\" } trainable { lora {} } masked_lm { max_tokens: 32 }"),
      "text.txt", "new", 4);
  ExpectError(Train(lora, 1000, Path("old")).status(), Exit::kSpec,
      "cannot be used with the weights of another run");
  EXPECT_TRUE(Train(lora).ok());
}

TEST_F(TrainerTest, CausalSequencesAreRefusedWithRelativePositions) {
  const std::string task = " masked_lm { max_tokens: 32 causal_share: 0.5 }";
  const LoadedSpec spec =
      Spec(NewEncoder("architecture: DEBERTA") + task, "text.txt", "relative", 4);
  ExpectError(Train(spec).status(), Exit::kSpec,
      "masked_lm.causal_share: cannot be used with a model with relative positions");
  EXPECT_TRUE(Train(Spec(NewEncoder() + task, "text.txt", "absolute", 4)).ok());
}

// A kill while the best model was being saved. On the swapped labels later models are worse.
TEST_F(TrainerTest, AnIncompleteBestModelIsRestoredOrReplaced) {
  const auto spec = [&](const std::string& run) {
    LoadedSpec loaded =
        Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", run, 12);
    loaded.spec.mutable_validation()->add_files(
        Path(run == "newer" ? "classes.tsv" : "swapped.tsv"));
    loaded.spec.mutable_evaluation()->set_every_steps(run == "newer" ? 2 : 4);
    loaded.spec.mutable_evaluation()->set_metric("loss");
    return loaded;
  };
  const auto finish = [&](const std::string& run) {
    const auto summary = Train(spec(run));
    EXPECT_TRUE(summary.ok()) << summary.status();
    const std::string metrics = Read(Path(run + "/metrics.json"));
    EXPECT_THAT(metrics, HasSubstr(summary.ok() ? summary->best.ToJson() : "a summary"));
  };
  std::string best;
  for (const std::string run : {"restored", "replaced", "newer"}) {
    ASSERT_EQ(ExitOf(Train(spec(run), run == "newer" ? 7 : 6).status()), Exit::kInterrupted);
    best = Weights(run + "/step-00000004");
    if (run == "newer") {  // than what the checkpoint knows
      std::filesystem::remove_all(Path(run + "/step-00000007"));
      ASSERT_THAT(Read(Path(run + "/metrics.json")), HasSubstr("\"step\":6,"));
    } else {
      std::filesystem::remove(Path(run + "/MANIFEST"));
      std::filesystem::resize_file(Path(run + "/model.safetensors"), 5);
    }
    if (run == "replaced") std::filesystem::remove_all(Path(run + "/step-00000004"));
    finish(run);
    EXPECT_EQ(Weights(run) == best, run == "restored") << run;
    EXPECT_THAT(progress_, HasSubstr(run == "replaced" ? "the next evaluation saves another"
                                                       : "restored from " + Path(run)));
  }
}

TEST_F(TrainerTest, RefusesAChangedSpecWithTheDifference) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "run", 4)).ok());
  LoadedSpec other = Spec(Mlm(), "text.txt", "run", 4);
  other.spec.mutable_optimizer()->set_learning_rate(0.001);
  const auto refused = Train(other);
  ExpectError(refused.status(), Exit::kMismatch, "learning_rate");
  Write("text.txt", "the cat sat on a dog\n\nthe mat sat\n");
  ExpectError(Train(Spec(Mlm(), "text.txt", "run", 4)).status(), Exit::kMismatch, "text.txt (");
}

TEST_F(TrainerTest, StopsWhenNumbersGoWrong) {
  LoadedSpec wild = Spec(Mlm(), "text.txt", "wild", 400);
  wild.spec.mutable_optimizer()->set_learning_rate(10);
  wild.spec.mutable_optimizer()->set_clip_norm(0);
  wild.spec.mutable_optimizer()->set_beta2(0);
  wild.spec.mutable_optimizer()->set_weight_decay(10);
  wild.spec.mutable_schedule()->set_warmup_steps(1);
  const auto result = Train(wild);
  if (!result.ok()) {  // the loss, or the weights when they are to be saved
    EXPECT_EQ(ExitOf(result.status()), Exit::kInternal) << result.status();
    EXPECT_THAT(std::string(result.status().message()),
        testing::AnyOf(HasSubstr("not finite"), HasSubstr("NaN"), HasSubstr("inf")));
  }
  if (PathExists(Path("wild") + "/model.safetensors")) {
    const auto config = LoadConfig(Path("wild"));
    Model model(*config, false);
    std::vector<std::string> fresh;
    EXPECT_TRUE(model.Load(Path("wild"), 0, &fresh).ok());  // refuses what is not finite
  }
}

TEST_F(TrainerTest, ClearErrors) {
  ExpectError(Train(Spec(Mlm(), "nothing.txt", "run", 4)).status(), Exit::kNoInput, "nothing.txt");
  Write("empty.txt", "\n\n");
  ExpectError(Train(Spec(Mlm(), "empty.txt", "run", 4)).status(), Exit::kData, "empty.txt");
  ExpectError(
      Train(Spec(NewEncoder() + " masked_lm { max_tokens: 500 }", "text.txt", "run", 4)).status(),
      Exit::kSpec, "64");
  ExpectError(Train(Spec(absl::StrCat("model { start_from: \"", Path("absent"),
                             "\" } masked_lm { max_tokens: 32 }"),
                        "text.txt", "run", 4))
                  .status(),
      Exit::kNoInput, "absent");
  LoadedSpec metric = Spec(Mlm(), "text.txt", "metric", 4);
  metric.spec.mutable_validation()->add_files(Path("text.txt"));
  metric.spec.mutable_evaluation()->set_metric("bleu");
  ExpectError(Train(metric).status(), Exit::kSpec, "evaluation.metric");
  EXPECT_FALSE(PathExists(Path("metric") + "/step-00000004"));
  LoadedSpec large = Spec(Mlm(), "text.txt", "large", 4);
  large.spec.mutable_model()->mutable_encoder()->set_hidden(16384);
  large.spec.mutable_model()->mutable_encoder()->set_layers(128);
  ExpectError(Train(large).status(), Exit::kLimit, "MB");
  std::filesystem::create_directories(Path("foreign"));
  Write("foreign/model.safetensors", "weights");
  ExpectError(
      Train(Spec(Mlm(), "text.txt", "foreign", 4)).status(), Exit::kCannotCreate, "holds a model");
  EXPECT_EQ(Read(Path("foreign/model.safetensors")), "weights");
  auto lock = RunLock::Acquire(Path("run"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  ExpectError(Train(Spec(Mlm(), "text.txt", "run", 4)).status(), Exit::kCannotCreate, "run");
}

// Everything that depends on how far the run is, and the moving average.

TEST_F(TrainerTest, RecipesResumeWithTheSameBits) {
  const auto spec = [&](const std::string& run) {
    LoadedSpec loaded = Spec(NewEncoder() +
                                 " masked_lm { max_tokens: 32 warmup_from_tokens: 8 warmup_share: "
                                 "0.7 unit: SPAN keep_share: 0.1 "
                                 "random_share: 0.1 mask_share: 0.4 final_mask_share: 0.1 "
                                 "causal_share: 0.7 causal_until: 0.9 }",
        "text.txt", run, 10);
    loaded.spec.mutable_batch()->set_warmup_from(0.25f);
    loaded.spec.mutable_optimizer()->set_ema_decay(0.9f);
    loaded.spec.mutable_optimizer()->set_clip_updates(true);
    loaded.spec.mutable_optimizer()->set_muon_rate(1);
    loaded.spec.mutable_validation()->add_files(Path("text.txt"));
    loaded.spec.mutable_evaluation()->set_every_steps(5);
    return loaded;
  };
  ExpectSameBitsAfterResumes(spec);
}

TEST_F(TrainerTest, TheAverageOfTheWeightsIsEvaluatedAndSaved) {
  LoadedSpec spec = Spec(Mlm(), "text.txt", "plain", 12);
  ASSERT_TRUE(Train(spec).ok());
  const auto train = [&](const std::string& run, float decay) {
    LoadedSpec averaged = Spec(Mlm(), "text.txt", run, 12);
    averaged.spec.mutable_optimizer()->set_ema_decay(decay);
    ASSERT_TRUE(Train(averaged).ok());
    EXPECT_EQ(Weights(run + "/step-00000012"), Weights("plain/step-00000012"))
        << "the average does not touch training";
  };
  train("some", 0.9f);
  train("hair", 1e-7f);  // (1 - 1e-7) of every new value
  EXPECT_NE(Weights("some"), Weights("plain"));
  // The average over the weights after each step, from those at the beginning, with the first
  // steps' smaller decay.
  const std::vector<float> plain = Values("plain"), hair = Values("hair");
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(plain[i], hair[i], 1e-6);
  std::vector<float> expected;
  for (int step = 0; step <= 12; ++step) {
    LoadedSpec part = Spec(Mlm(), "text.txt", "part", 12);
    if (step == 0) {
      Model model(*LoadConfig(Path("plain")), false);
      model.Initialize(1);
      expected.assign(model.params().values().begin(), model.params().values().end());
      continue;
    }
    ASSERT_EQ(Train(part, 1).ok(), step == 12);
    const std::vector<float> now =
        Values(absl::StrCat("part/step-000000", step < 10 ? "0" : "", step));
    const float rate = 1 - std::min(0.9, (1.0 + step) / (10.0 + step));
    for (size_t i = 0; i < now.size(); ++i) expected[i] += rate * (now[i] - expected[i]);
  }
  const std::vector<float> some = Values("some");
  for (size_t i = 0; i < some.size(); ++i) ASSERT_NEAR(some[i], expected[i], 1e-6) << i;
}

TEST_F(TrainerTest, ATimeBudgetEndsTheRun) {
  const auto spec = [&](const std::string& run) {
    LoadedSpec loaded = Spec(Mlm(), "text.txt", run, 0);
    loaded.spec.mutable_schedule()->set_time_budget_minutes(1);
    loaded.spec.mutable_output()->set_checkpoint_every_steps(0);
    return loaded;
  };
  const auto summary = Train(spec("timed"));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->steps, 30);  // of two seconds each
  EXPECT_THAT(progress_, HasSubstr("not bit-identical"));
  EXPECT_TRUE(PathExists(Path("timed/step-00000030")));
  EXPECT_TRUE(PathExists(Path("timed/step-00000027"))) << "a checkpoint every tenth of the time";
  // What an earlier process spent counts; the time between does not.
  EXPECT_EQ(ExitOf(Train(spec("pieces"), 10).status()), Exit::kInterrupted);
  now_ += 1000;
  const auto last = Train(spec("pieces"));
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->steps, 30);
  EXPECT_EQ(Train(spec("pieces"))->steps, 30) << "nothing is left to do";
}

}  // namespace
}  // namespace cloze
