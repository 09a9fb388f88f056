// Whole training runs of a tiny encoder: they learn, resume with the same bits, and stop cleanly.
#include "tasks/reports/repeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/threads.h"
#include "core/tensor/safetensors.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "tasks/reports/verify.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::HasSubstr;

class TrainerTest : public FilesTest {
 protected:
  TrainerTest() {
    std::filesystem::create_directories(Path("vocab"));
    EXPECT_TRUE(SaveTokenizer(*SmallTokenizer(), Path("vocab"), 64).ok());
    std::string text, classes = "text\tlabel\n", tags;
    for (int i = 0; i < 60; ++i) {
      const bool cat = i % 2 == 0;
      absl::StrAppend(&text, cat ? "the cat sat on the mat , the cat sat .\n\n"
                                 : "a dog ran to a big red box . a dog .\n\n");
      absl::StrAppend(&classes, cat ? "the cat sat on mat " : "a dog ran to box ", i, "\t",
          cat ? "cat" : "dog", "\n");
      absl::StrAppend(
          &tags, cat ? "the\tD\ncat\tN\nsat\tV\n\n" : "a\tD\ndog\tN\nran\tV\nfar\tA\n\n");
    }
    Write("text.txt", text);
    Write("classes.tsv", classes);
    Write("tags.conll", tags);
  }

  LoadedSpec Spec(
      const std::string& task, const std::string& data, const std::string& run, int steps) {
    auto loaded = ParseSpec(
        absl::StrCat(task, " train { files: \"", Path(data),
            "\" } batch { tokens: 128 micro_tokens: 64 } optimizer { learning_rate: 0.003 }",
            " schedule { steps: ", steps, " } output { directory: \"", Path(run),
            "\" checkpoint_every_steps: 4 log_every_steps: 100 }"),
        "test");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *loaded;
  }
  std::string NewEncoder(const std::string& more = "") {
    return absl::StrCat("model { tokenizer: \"", Path("vocab"),
        "\" encoder { layers: 2 hidden: 32 heads: 2 intermediate: 64 max_positions: 64 preset: "
        "CUSTOM ",
        more, "} }");
  }
  std::string Mlm(const std::string& more = "") {
    return NewEncoder(more) + " masked_lm { max_tokens: 32 }";
  }

  // stop_after: stop as a signal would, after so many steps of this process.
  absl::StatusOr<Trainer::Summary> Train(const LoadedSpec& spec, int stop_after = 1000000) {
    testing::internal::CaptureStderr();
    std::atomic<bool> stop = false;
    const auto after_step = [&](int64_t) { stop = --stop_after == 0, now_ += 2; };
    const auto clock = [this] { return now_; };
    auto trainer = Trainer::Create(
        spec, {.preparing = nullptr, .stop = &stop, .after_step = after_step, .clock = clock});
    absl::StatusOr<Trainer::Summary> summary = trainer.ok() ? (*trainer)->Run() : trainer.status();
    progress_ = testing::internal::GetCapturedStderr();
    return summary;
  }
  std::string Weights(const std::string& run) { return Read(Path(run) + "/model.safetensors"); }

  std::string progress_;
  double now_ = 0;  // seconds; every step takes two
};

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

TEST_F(TrainerTest, FinetunesBothTasksFromARunAndFromNothing) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "mlm", 20)).ok());
  int run = 0;
  for (const std::string& model :
      {NewEncoder(), absl::StrCat("model { start_from: \"", Path("mlm"), "\" }")}) {
    for (const auto& [task, data] : {std::pair("sequence_classification", "classes.tsv"),
             std::pair("token_tagging", "tags.conll")}) {
      LoadedSpec spec = Spec(
          absl::StrCat(model, task, " { max_tokens: 48 }"), data, absl::StrCat("run", run++), 40);
      spec.spec.mutable_validation()->add_files(Path(data));
      const auto summary = Train(spec);
      ASSERT_TRUE(summary.ok()) << summary.status();
      EXPECT_EQ(summary->metric, "accuracy");
      EXPECT_EQ(*summary->best.Value("accuracy"), 1.0) << data;
    }
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

TEST_F(TrainerTest, ChainsLearnResumeAndLoad) {
  // The same word is B or I by its place alone, and no label stands before the first.
  std::string tags;
  for (int i = 0; i < 40; ++i)
    tags += i % 2 == 0 ? "the\tO\ncat\tB-X\ncat\tI-X\n\n" : "a\tO\ndog\tB-Y\n\n";
  Write("spans.conll", tags);
  const std::string task = NewEncoder() + " token_tagging { max_tokens: 24 crf: true }";
  LoadedSpec spec = Spec(task, "spans.conll", "crf", 30);
  spec.spec.mutable_validation()->add_files(Path("spans.conll"));
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->metric, "span_f1");
  EXPECT_EQ(*summary->best.Value("span_f1"), 1.0);
  EXPECT_THAT(progress_, HasSubstr("loss"));
  ASSERT_TRUE(Train(Spec(task, "spans.conll", "straight", 8)).ok());
  EXPECT_EQ(ExitOf(Train(Spec(task, "spans.conll", "pieces", 8), 5).status()), Exit::kInterrupted);
  ASSERT_TRUE(Train(Spec(task, "spans.conll", "pieces", 8)).ok());
  EXPECT_EQ(Weights("straight"), Weights("pieces"));
  const auto config = LoadConfig(Path("crf"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->crf);
  EXPECT_EQ(config->window, 24);
  Model model(*config, false);
  std::vector<std::string> fresh;
  ASSERT_TRUE(model.Load(Path("crf"), 0, &fresh).ok());
  EXPECT_TRUE(fresh.empty());
  // A tagger without a chain goes on from one with it, and the other way round.
  const std::string from_crf =
      absl::StrCat("model { start_from: \"", Path("crf"), "\" } token_tagging { max_tokens: 24 ");
  ASSERT_TRUE(Train(Spec(from_crf + "}", "spans.conll", "plain", 2)).ok());
  EXPECT_FALSE(LoadConfig(Path("plain"))->crf);
  const std::string from_plain = absl::StrCat(
      "model { start_from: \"", Path("plain"), "\" } token_tagging { max_tokens: 24 crf: true }");
  ASSERT_TRUE(Train(Spec(from_plain, "spans.conll", "again", 2)).ok());
  EXPECT_THAT(progress_,
      HasSubstr("new in this model: crf.start_transitions, crf.transitions, crf.end_transitions"));
}

// What a folder's tensors hold, by name.
std::map<std::string, std::vector<float>> TensorsOf(const std::string& path) {
  std::map<std::string, std::vector<float>> values;
  const auto reader = SafetensorsReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  for (const TensorInfo& t : reader->tensors()) {
    values[t.name].resize(t.elements());
    EXPECT_TRUE(reader->ReadF32(t.name, absl::MakeSpan(values[t.name])).ok());
  }
  return values;
}

TEST_F(TrainerTest, TrainsOnlyWhatTheSpecSays) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "mlm", 20)).ok());
  const auto before = TensorsOf(Path("mlm/model.safetensors"));
  const std::string start = absl::StrCat(
      "model { start_from: \"", Path("mlm"), "\" } sequence_classification { max_tokens: 48 } ");
  for (const std::string part : {"head_only: true", "last_layers: 1"}) {
    const std::string run = part.substr(0, 4);
    const auto summary = Train(Spec(start + "trainable { " + part + " }", "classes.tsv", run, 120));
    ASSERT_TRUE(summary.ok()) << summary.status();
    const double most =
        run == "last" ? 0.5 : 0.7;  // a head alone has little to go by in so small a model
    EXPECT_LT(summary->loss, most) << part;
    for (const auto& [name, values] : TensorsOf(Path(run) + "/model.safetensors")) {
      const bool trained = name.find("pooler") != std::string::npos ||
                           name.find("classifier") != std::string::npos ||
                           (run == "last" && name.find("layer.1.") != std::string::npos);
      if (!trained) {
        EXPECT_EQ(values, before.at(name)) << part << " " << name;
      } else if (before.count(name) > 0) {
        EXPECT_NE(values, before.at(name)) << part << " " << name;
      }
    }
  }
  ExpectError(Train(Spec(start + "trainable { last_layers: 3 }", "classes.tsv", "no", 4)).status(),
      Exit::kSpec, "the model has 2");
  ExpectError(Train(Spec(NewEncoder() + "sequence_classification {} trainable { lora {} }",
                        "classes.tsv", "no", 4))
                  .status(),
      Exit::kSpec, "trainable.lora: needs an existing model");
}

TEST_F(TrainerTest, LoraWritesAnAdapterAndResumesWithTheSameBits) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "mlm", 20)).ok());
  const std::string start = absl::StrCat("model { start_from: \"", Path("mlm"),
      "\" } sequence_classification { max_tokens: 48 } ",
      "trainable { lora { rank: 4 dropout: 0.1 targets: [QUERY, VALUE, OUTPUT] } }");
  const auto straight = Train(Spec(start, "classes.tsv", "straight", 120));
  ASSERT_TRUE(straight.ok()) << straight.status();
  EXPECT_LT(straight->loss, 0.5);
  EXPECT_THAT(progress_, HasSubstr("training "));
  for (const int stop : {1, 4, 9}) {
    SetThreads(stop % 3 + 1);
    EXPECT_EQ(ExitOf(Train(Spec(start, "classes.tsv", "pieces", 120), stop).status()),
        Exit::kInterrupted);
  }
  ASSERT_TRUE(Train(Spec(start, "classes.tsv", "pieces", 120)).ok());
  const std::string weights = "/adapter_model.safetensors";
  EXPECT_EQ(Read(Path("straight") + weights), Read(Path("pieces") + weights));
  EXPECT_FALSE(PathExists(Path("straight/model.safetensors")));
  const std::string checkpoint = Path("straight/step-00000120");
  EXPECT_FALSE(PathExists(checkpoint + "/model.safetensors"));
  EXPECT_EQ(TensorsOf(checkpoint + "/optimizer.safetensors").size(),
      2 * TensorsOf(checkpoint + weights).size());
  const auto config = LoadConfig(Path("mlm"));
  ASSERT_TRUE(config.ok());
  const auto adapter = Adapter::Open(Path("straight"), *config);
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ(adapter->config().labels, std::vector<std::string>({"cat", "dog"}));
  // A base that changed meanwhile is noticed.
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "other", 4)).ok());
  std::filesystem::copy(Path("other/model.safetensors"), Path("mlm"),
      std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove_all(Path("pieces/step-00000120"));
  ExpectError(
      Train(Spec(start, "classes.tsv", "pieces", 120)).status(), Exit::kMismatch, "another base");
}

TEST_F(TrainerTest, LayerDecayLowersTheRateOfLowerLayers) {
  ParamStore store;
  for (int layer = -1; layer <= 1; ++layer) store.AddMatrix({.layer = layer}, 1, 4);
  store.Allocate(true);
  OptimizerSpec spec;
  spec.set_layer_decay(0.5);
  spec.set_weight_decay(0);
  Optimizer optimizer(&store, spec);
  for (float& g : store.grads()) g = 1;
  optimizer.Step(0.1, 0.5);
  for (ParamId id = 0; id < 3; ++id)
    EXPECT_NEAR(store.value(id).f32()[0], -0.1 * std::pow(0.5, 2 - id), 1e-6) << id;
}

TEST_F(TrainerTest, LearnsSeveralLabelsNumbersPairsAndWindows) {
  std::string several = "text\tlabel\n", number = "text\tother\tlabel\n", rare = "text\tlabel\n";
  for (int i = 0; i < 60; ++i) {
    const bool cat = i % 2 == 0, sat = i % 3 == 0;
    absl::StrAppend(&several, cat ? "the cat " : "a dog ", sat ? "sat on" : "ran to", "\t",
        cat ? "cat" : "", sat ? " ,sat" : "", "\n");
    absl::StrAppend(&number, cat ? "the cat" : "a dog", "\t", sat ? "sat on" : "ran to", "\t",
        cat + 0.5 * sat, "\n");
    absl::StrAppend(&rare, "the mat . the mat . the mat . the mat . the ", cat ? "cat" : "dog",
        "\t", cat ? "cat" : "dog", "\n");
  }
  Write("several.tsv", several);
  Write("number.tsv", number);
  Write("rare.tsv", rare);
  const auto run = [&](const std::string& task, const std::string& data, const std::string& pair) {
    LoadedSpec spec =
        Spec(NewEncoder() + " sequence_classification { " +
                 (task.find("max_tokens") < 99 ? "" : "max_tokens: 48 ") + task + " }",
            data, data + task.substr(0, 9), 160);
    spec.spec.mutable_validation()->add_files(Path(data));
    for (DataSpec* d : {spec.spec.mutable_train(), spec.spec.mutable_validation()})
      d->set_text_pair_field(pair);
    const auto summary = Train(spec);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? *summary : Trainer::Summary();
  };
  const auto multi = run("kind: MULTI_LABEL", "several.tsv", "");
  EXPECT_EQ(multi.metric, "micro_f1");
  EXPECT_EQ(*multi.best.Value("accuracy"), 1.0);
  const auto regression = run("kind: REGRESSION", "number.tsv", "other");
  EXPECT_EQ(regression.metric, "pearson");
  EXPECT_GT(*regression.best.Value("pearson"), 0.95);
  EXPECT_LT(regression.loss, 0.1);  // of the last step; the best correlation comes earlier
  EXPECT_TRUE(LoadConfig(Path("number.tsvkind: REG"))->reading.pairs);
  EXPECT_EQ(*run("long_texts: WINDOWS max_tokens: 10", "rare.tsv", "").best.Value("accuracy"), 1.0);
  EXPECT_THAT(progress_, HasSubstr("read in several windows: 60 texts"));
  EXPECT_EQ(
      *run("balance_classes: true label_smoothing: 0.1", "classes.tsv", "").best.Value("accuracy"),
      1.0);
  EXPECT_THAT(progress_, HasSubstr("class weights: cat 1, dog 1"));
}

TEST_F(TrainerTest, WeightsOfLabelsDecideBetweenThemInTagging) {
  std::string tags;
  for (int i = 0; i < 40; ++i) tags += i % 4 == 0 ? "the\tD\ncat\tA\n\n" : "the\tD\ncat\tN\n\n";
  Write("often.conll", tags);
  const auto accuracy = [&](const std::string& weights) {
    LoadedSpec spec =
        Spec(NewEncoder() + " token_tagging { max_tokens: 24 labels: [ 'A', 'D', 'N' ] " + weights +
                 " }",
            "often.conll", "run" + weights.substr(0, 9), 60);
    spec.spec.mutable_validation()->add_files(Path("often.conll"));
    const auto summary = Train(spec);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? *summary->best.Value("accuracy") : 0;
  };
  EXPECT_NEAR(accuracy(""), 70 / 80.0, 1e-6);
  EXPECT_NEAR(accuracy("class_weights: [ 9, 1, 1 ] label_smoothing: 0.1"), 50 / 80.0, 1e-6);
  accuracy("balance_classes: true");
  EXPECT_THAT(progress_, HasSubstr("class weights: A 2.66667, D 0.666667, N 0.888889"));
}

TEST_F(TrainerTest, PatienceEndsARunAndStoppingInBetweenChangesNothing) {
  const auto spec = [&](const std::string& run) {
    LoadedSpec loaded =
        Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", run, 200);
    loaded.spec.mutable_validation()->add_files(Path("classes.tsv"));
    loaded.spec.mutable_evaluation()->set_every_steps(5);
    loaded.spec.mutable_evaluation()->set_patience(3);
    return loaded;
  };
  const auto straight = Train(spec("straight"));
  ASSERT_TRUE(straight.ok()) << straight.status();
  EXPECT_EQ(*straight->best.Value("accuracy"), 1.0);
  EXPECT_LT(straight->steps, 200);
  EXPECT_THAT(progress_, HasSubstr("no better accuracy in 3 evaluations: the run ends"));
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
  EXPECT_EQ(summary->metric, "loss");
}

TEST_F(TrainerTest, AFinishedRunAnswersForItsModel) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "last", 8)).ok());
  const std::string weights = Weights("last");
  std::filesystem::remove(Path("last/config.json"));
  std::filesystem::resize_file(Path("last/model.safetensors"), 5);
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "last", 8)).ok());  // from the last checkpoint
  EXPECT_EQ(Weights("last"), weights);
  EXPECT_TRUE(LoadConfig(Path("last")).ok());
  LoadedSpec early = Spec(
      NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", "early", 200);
  early.spec.mutable_validation()->add_files(Path("classes.tsv"));
  early.spec.mutable_evaluation()->set_every_steps(5);
  early.spec.mutable_evaluation()->set_patience(3);
  ASSERT_TRUE(Train(early).ok());
  ASSERT_TRUE(Train(early).ok());
  std::filesystem::remove(Path("early/vocab.txt"));
  ExpectError(Train(early).status(), Exit::kMismatch, "is damaged and no checkpoint holds it");
}

TEST_F(TrainerTest, RepeatsWithSeedsAndKeepsTheBest) {
  const auto spec = [&](const std::string& run) {
    LoadedSpec loaded =
        Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", run, 8);
    loaded.spec.mutable_validation()->add_files(Path("classes.tsv"));
    loaded.spec.mutable_evaluation()->set_metric("loss");
    loaded.spec.set_seed(5);
    loaded.spec.set_repeat(3);
    return loaded;
  };
  const auto repeat = [&](const std::string& run, int stop_after) {
    testing::internal::CaptureStderr();
    std::atomic<bool> stop = false;
    auto summary = TrainRepeatedly(
        spec(run), {.preparing = nullptr, .stop = &stop, .after_step = [&](int64_t) {
                      stop = --stop_after == 0;
                    }});
    progress_ = testing::internal::GetCapturedStderr();
    return summary;
  };
  const auto straight = repeat("straight", 1000);
  ASSERT_TRUE(straight.ok()) << straight.status();
  ASSERT_EQ(straight->runs.size(), 3);
  double sum = 0, least = 1e9;
  for (const auto& run : straight->runs) sum += run.value, least = std::min(least, run.value);
  EXPECT_DOUBLE_EQ(straight->mean, sum / 3);
  EXPECT_GT(straight->deviation, 0);
  EXPECT_EQ(straight->runs[straight->best].value, least);
  const std::string best = absl::StrCat("straight/seed-", straight->runs[straight->best].seed);
  EXPECT_EQ(Weights("straight"), Weights(best));
  EXPECT_EQ(Read(Path("straight/metrics.json")), Read(Path(best + "/metrics.json")));
  EXPECT_TRUE(LoadConfig(Path("straight")).ok());
  EXPECT_THAT(Read(Path("straight/repeat.json")), HasSubstr("\"deviation\""));
  const auto verdicts = VerifyRun(Path("straight"));
  ASSERT_TRUE(verdicts.ok()) << verdicts.status();
  EXPECT_GE(verdicts->size(), 7);  // the best model, and of each seed its model and checkpoints
  for (const Verdict& verdict : *verdicts)
    EXPECT_TRUE(verdict.status.ok()) << verdict.folder << ": " << verdict.status;
  int stops = 0;
  absl::StatusOr<RepeatSummary> pieces;
  while (!(pieces = repeat("pieces", 5)).ok()) {
    ASSERT_EQ(ExitOf(pieces.status()), Exit::kInterrupted) << pieces.status();
    ASSERT_LT(++stops, 10);
  }
  EXPECT_GT(stops, 2);
  EXPECT_EQ(Read(Path("pieces/repeat.json")), Read(Path("straight/repeat.json")));
  EXPECT_EQ(Weights("pieces"), Weights("straight"));
  LoadedSpec single = spec("straight");
  single.spec.clear_repeat();
  ExpectError(Train(single).status(), Exit::kCannotCreate, "holds runs of a spec with `repeat`");
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "single", 4)).ok());
  ExpectError(
      TrainRepeatedly(spec("single"), {}).status(), Exit::kCannotCreate, "holds a single run");
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
                                 "random_share: 0.1 }",
        "text.txt", run, 10);
    loaded.spec.mutable_batch()->set_warmup_from(0.25f);
    loaded.spec.mutable_optimizer()->set_ema_decay(0.9f);
    loaded.spec.mutable_validation()->add_files(Path("text.txt"));
    loaded.spec.mutable_evaluation()->set_every_steps(5);
    return loaded;
  };
  const auto straight = Train(spec("straight"));
  ASSERT_TRUE(straight.ok()) << straight.status();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(ExitOf(Train(spec("pieces"), 3).status()), Exit::kInterrupted);
  const auto last = Train(spec("pieces"));
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(Weights("straight"), Weights("pieces"));
  EXPECT_EQ(straight->best.values, last->best.values);
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
  const auto values = [&](const std::string& folder) {
    Model model(*LoadConfig(Path(folder)), false);
    std::vector<std::string> fresh;
    EXPECT_TRUE(model.Load(Path(folder), 0, &fresh).ok());
    return std::vector<float>(model.params().values().begin(), model.params().values().end());
  };
  const std::vector<float> plain = values("plain"), hair = values("hair");
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
        values(absl::StrCat("part/step-000000", step < 10 ? "0" : "", step));
    const float rate = 1 - std::min(0.9, (1.0 + step) / (10.0 + step));
    for (size_t i = 0; i < now.size(); ++i) expected[i] += rate * (now[i] - expected[i]);
  }
  const std::vector<float> some = values("some");
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
  EXPECT_THAT(progress_, HasSubstr("depends on the clock"));
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
