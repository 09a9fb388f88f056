// Whole training runs of a tiny encoder: they learn, resume with the same bits, and stop cleanly.
#include "tasks/training/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/threads.h"
#include "core/tensor/safetensors.h"
#include "encoder/adapter.h"
#include "encoder/model_folder.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::HasSubstr;

class TrainerTest : public FilesTest {
 protected:
  TrainerTest() {
    std::filesystem::create_directories(Path("vocab"));
    EXPECT_TRUE(SmallTokenizer()->Save(Path("vocab"), 64).ok());
    std::string text, classes = "text\tlabel\n", tags;
    for (int i = 0; i < 60; ++i) {
      const bool cat = i % 2 == 0;
      absl::StrAppend(&text, cat ? "the cat sat on the mat , the cat sat .\n\n" : "a dog ran to a big red box . a dog .\n\n");
      absl::StrAppend(&classes, cat ? "the cat sat on mat " : "a dog ran to box ", i, "\t", cat ? "cat" : "dog", "\n");
      absl::StrAppend(&tags, cat ? "the\tD\ncat\tN\nsat\tV\n\n" : "a\tD\ndog\tN\nran\tV\nfar\tA\n\n");
    }
    Write("text.txt", text);
    Write("classes.tsv", classes);
    Write("tags.conll", tags);
  }

  LoadedSpec Spec(const std::string& task, const std::string& data, const std::string& run, int steps) {
    auto loaded = ParseSpec(
        absl::StrCat(task, " train { files: \"", Path(data),
                     "\" } batch { tokens: 128 micro_tokens: 64 } optimizer { learning_rate: 0.003 }", " schedule { steps: ", steps,
                     " } output { directory: \"", Path(run), "\" checkpoint_every_steps: 4 log_every_steps: 100 }"),
        "test");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *loaded;
  }
  std::string NewEncoder(const std::string& more = "") {
    return absl::StrCat("model { tokenizer: \"", Path("vocab"),
                        "\" encoder { layers: 2 hidden: 32 heads: 2 intermediate: 64 max_positions: 64 preset: CUSTOM ", more, "} }");
  }
  std::string Mlm(const std::string& more = "") { return NewEncoder(more) + " masked_lm { max_tokens: 32 }"; }

  // stop_after: stop as a signal would, after so many steps of this process.
  absl::StatusOr<Trainer::Summary> Train(const LoadedSpec& spec, int stop_after = 1000000) {
    testing::internal::CaptureStderr();
    std::atomic<bool> stop = false;
    auto trainer = Trainer::Create(spec, {.preparing = nullptr, .stop = &stop, .after_step = [&](int64_t) { stop = --stop_after == 0; }});
    absl::StatusOr<Trainer::Summary> summary = trainer.ok() ? (*trainer)->Run() : trainer.status();
    progress_ = testing::internal::GetCapturedStderr();
    return summary;
  }
  std::string Weights(const std::string& run) { return Read(Path(run) + "/model.safetensors"); }

  std::string progress_;
};

TEST_F(TrainerTest, PretrainsPostAndPreNormAndSinusoids) {
  int run = 0;
  for (const char* kind : {"", "norm: PRE ", "positions: SINUSOIDAL ", "activation: RELU "}) {
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
  for (const std::string& model : {NewEncoder(), absl::StrCat("model { start_from: \"", Path("mlm"), "\" }")}) {
    for (const auto& [task, data] : {std::pair("sequence_classification", "classes.tsv"), std::pair("token_tagging", "tags.conll")}) {
      LoadedSpec spec = Spec(absl::StrCat(model, task, " { max_tokens: 48 }"), data, absl::StrCat("run", run++), 40);
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
  const std::string start = absl::StrCat("model { start_from: \"", Path("mlm"), "\" } sequence_classification { max_tokens: 48 } ");
  for (const std::string part : {"head_only: true", "last_layers: 1"}) {
    const std::string run = part.substr(0, 4);
    const auto summary = Train(Spec(start + "trainable { " + part + " }", "classes.tsv", run, 40));
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_LT(summary->loss, 0.5) << part;
    for (const auto& [name, values] : TensorsOf(Path(run) + "/model.safetensors")) {
      const bool trained = name.find("pooler") != std::string::npos || name.find("classifier") != std::string::npos ||
                           (run == "last" && name.find("layer.1.") != std::string::npos);
      if (!trained) EXPECT_EQ(values, before.at(name)) << part << " " << name;
      if (trained && before.count(name) > 0) EXPECT_NE(values, before.at(name)) << part << " " << name;
    }
  }
  ExpectError(Train(Spec(start + "trainable { last_layers: 3 }", "classes.tsv", "no", 4)).status(), Exit::kSpec, "the model has 2");
  ExpectError(Train(Spec(NewEncoder() + "sequence_classification {} trainable { lora {} }", "classes.tsv", "no", 4)).status(), Exit::kSpec,
              "trainable.lora: is an addition to a model that exists");
}

TEST_F(TrainerTest, LoraWritesAnAdapterAndResumesWithTheSameBits) {
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "mlm", 20)).ok());
  const std::string start = absl::StrCat("model { start_from: \"", Path("mlm"), "\" } sequence_classification { max_tokens: 48 } ",
                                         "trainable { lora { rank: 4 dropout: 0.1 targets: [QUERY, VALUE, OUTPUT] } }");
  const auto straight = Train(Spec(start, "classes.tsv", "straight", 40));
  ASSERT_TRUE(straight.ok()) << straight.status();
  EXPECT_LT(straight->loss, 0.5);
  EXPECT_THAT(progress_, HasSubstr("training "));
  for (const int stop : {1, 4, 9}) {
    SetThreads(stop % 3 + 1);
    EXPECT_EQ(ExitOf(Train(Spec(start, "classes.tsv", "pieces", 40), stop).status()), Exit::kInterrupted);
  }
  ASSERT_TRUE(Train(Spec(start, "classes.tsv", "pieces", 40)).ok());
  const std::string weights = "/adapter_model.safetensors";
  EXPECT_EQ(Read(Path("straight") + weights), Read(Path("pieces") + weights));
  EXPECT_FALSE(PathExists(Path("straight/model.safetensors")));
  const std::string checkpoint = Path("straight/step-00000040");
  EXPECT_FALSE(PathExists(checkpoint + "/model.safetensors"));
  EXPECT_EQ(TensorsOf(checkpoint + "/optimizer.safetensors").size(), 2 * TensorsOf(checkpoint + weights).size());
  const auto config = LoadConfig(Path("mlm"));
  ASSERT_TRUE(config.ok());
  const auto adapter = Adapter::Open(Path("straight"), *config);
  ASSERT_TRUE(adapter.ok()) << adapter.status();
  EXPECT_EQ(adapter->config().labels, std::vector<std::string>({"cat", "dog"}));
  // A base that changed meanwhile is noticed.
  ASSERT_TRUE(Train(Spec(Mlm(), "text.txt", "other", 4)).ok());
  std::filesystem::copy(Path("other/model.safetensors"), Path("mlm"), std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove_all(Path("pieces/step-00000040"));
  ExpectError(Train(Spec(start, "classes.tsv", "pieces", 40)).status(), Exit::kMismatch, "another base");
}

TEST_F(TrainerTest, LayerDecayLowersTheRateOfLowerLayers) {
  ParamStore store;
  for (const char* name : {"0", "1", "2"}) store.AddMatrix(name, 1, 4);
  store.Allocate(true);
  OptimizerSpec spec;
  spec.set_layer_decay(0.5);
  spec.set_weight_decay(0);
  Optimizer optimizer(
      &store, spec, [](const std::string& name) { return std::stoi(name) - 1; }, 1);
  for (float& g : store.grads()) g = 1;
  optimizer.Step(0.1, 0.5);
  for (ParamId id = 0; id < 3; ++id) EXPECT_NEAR(store.value(id).f32()[0], -0.1 * std::pow(0.5, 2 - id), 1e-6) << id;
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
  ExpectError(Train(Spec(Mlm(), "text.txt", "run", 4)).status(), Exit::kMismatch, "training data");
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
    EXPECT_THAT(std::string(result.status().message()), testing::AnyOf(HasSubstr("not finite"), HasSubstr("NaN"), HasSubstr("inf")));
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
  ExpectError(Train(Spec(NewEncoder() + " masked_lm { max_tokens: 500 }", "text.txt", "run", 4)).status(), Exit::kSpec, "64");
  ExpectError(Train(Spec(absl::StrCat("model { start_from: \"", Path("absent"), "\" } masked_lm { max_tokens: 32 }"), "text.txt", "run", 4))
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
  ExpectError(Train(Spec(Mlm(), "text.txt", "foreign", 4)).status(), Exit::kCannotCreate, "holds a model");
  EXPECT_EQ(Read(Path("foreign/model.safetensors")), "weights");
  auto lock = RunLock::Acquire(Path("run"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  ExpectError(Train(Spec(Mlm(), "text.txt", "run", 4)).status(), Exit::kCannotCreate, "run");
}

}  // namespace
}  // namespace cloze
