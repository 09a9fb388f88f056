// Small data files and specs for whole training runs of a tiny encoder.
#ifndef CLOZE_TESTS_TASKS_TRAINING_TRAINER_FIXTURE_H_
#define CLOZE_TESTS_TASKS_TRAINING_TRAINER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/threads.h"
#include "core/manifest/manifest.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "tasks/training/trainer.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {

using testing::HasSubstr;

// Removes what matches `pattern` from a file of a run, and adapts the MANIFEST of the checkpoint of
// `step`, as if an earlier version had written them.
inline void Forget(
    const std::string& run, const std::string& file, const std::string& pattern, int step = 4) {
  const std::string path = JoinPath(run, file), folder = absl::StrCat(run, "/step-0000000", step);
  auto text = ReadFile(path, 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string less = std::regex_replace(*text, std::regex(pattern), "");
  ASSERT_NE(less, *text) << pattern;
  ASSERT_TRUE(WriteFileAtomically(path, less).ok());
  std::filesystem::remove(folder + "/MANIFEST");
  ASSERT_TRUE(AddManifest(folder, step).ok());
}

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
    std::string swapped = "text\tlabel\n";
    for (int i = 0; i < 60; ++i)
      swapped += i % 2 == 0 ? "the cat sat on mat\tdog\n" : "a dog ran to box\tcat\n";
    Write("text.txt", text);
    Write("classes.tsv", classes);
    Write("swapped.tsv", swapped);
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
  // A classifier whose validation data have the wrong labels, so that later models are worse, and
  // that ends by patience.
  LoadedSpec Worsening(const std::string& run) {
    LoadedSpec loaded =
        Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "classes.tsv", run, 200);
    loaded.spec.mutable_validation()->add_files(Path("swapped.tsv"));
    loaded.spec.mutable_evaluation()->set_every_steps(5);
    loaded.spec.mutable_evaluation()->set_metric("loss");
    loaded.spec.mutable_evaluation()->set_patience(3);
    return loaded;
  }
  // The evaluations in the log of a run.
  std::vector<Json> Evaluations(const std::string& run) {
    std::vector<Json> records;
    for (const absl::string_view line :
        absl::StrSplit(Read(Path(run + "/log.jsonl")), '\n', absl::SkipEmpty())) {
      const auto record = ParseJson(line, "log.jsonl");
      EXPECT_TRUE(record.ok()) << record.status();
      if (record.ok() && record->contains("evaluation")) records.push_back(*record);
    }
    return records;
  }
  std::string Mlm(const std::string& more = "") {
    return NewEncoder(more) + " masked_lm { max_tokens: 32 }";
  }

  // stop_after: stop as a signal would, after so many steps of this process.
  absl::StatusOr<Trainer::Summary> Train(
      const LoadedSpec& spec, int stop_after = 1000000, const std::string& fork = "") {
    testing::internal::CaptureStderr();
    std::atomic<bool> stop = false;
    const auto after_step = [&](int64_t) { stop = --stop_after == 0, now_ += 2; };
    const auto clock = [this] { return now_; };
    auto trainer = Trainer::Create(spec, {.preparing = nullptr,
                                             .stop = &stop,
                                             .after_step = after_step,
                                             .clock = clock,
                                             .fork = fork});
    absl::StatusOr<Trainer::Summary> summary = trainer.ok() ? (*trainer)->Run() : trainer.status();
    progress_ = testing::internal::GetCapturedStderr();
    if (summary.ok()) {
      const std::vector<Metric> known = MetricsOf(*MakeTask(spec.spec), spec.spec);
      for (const auto& [name, value] : summary->best.values)
        EXPECT_TRUE(FindMetric(known, name).ok()) << name;
    }
    return summary;
  }
  // Trains the run "straight" at once, and "pieces" with three stops and different numbers of
  // threads; expects equal bits. `spec` returns the spec of a run of at least 10 steps.
  void ExpectSameBitsAfterResumes(const std::function<LoadedSpec(const std::string& run)>& spec) {
    const auto straight = Train(spec("straight"));
    ASSERT_TRUE(straight.ok()) << straight.status();
    const int threads = Threads();
    for (int i = 0; i < 3; ++i) {
      SetThreads(i + 1);
      EXPECT_EQ(ExitOf(Train(spec("pieces"), 3).status()), Exit::kInterrupted);
    }
    const auto last = Train(spec("pieces"));
    SetThreads(threads);
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_EQ(Weights("straight"), Weights("pieces"));
    EXPECT_EQ(straight->best.values, last->best.values);
  }
  // All weights of a model folder.
  std::vector<float> Values(const std::string& folder) {
    Model model(*LoadConfig(Path(folder)), false);
    std::vector<std::string> fresh;
    EXPECT_TRUE(model.Load(Path(folder), 0, &fresh).ok());
    return {model.params().values().begin(), model.params().values().end()};
  }
  std::string Weights(const std::string& run) { return Read(Path(run) + "/model.safetensors"); }

  std::string progress_;
  double now_ = 0;  // seconds; every step takes two
};

}  // namespace cloze

#endif  // CLOZE_TESTS_TASKS_TRAINING_TRAINER_FIXTURE_H_
