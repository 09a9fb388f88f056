// Tiny training runs on a memory file system, for tests of what survives.
#ifndef CLOZE_TESTS_DURABILITY_RUNS_H_
#define CLOZE_TESTS_DURABILITY_RUNS_H_

#include <string>

#include "absl/strings/str_format.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "tasks/training/trainer.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {

class RunsTest : public FilesTest {
 protected:
  RunsTest() {
    if (::access("/dev/shm", W_OK) == 0) {  // where fsync costs nothing
      std::filesystem::remove_all(folder_);
      folder_ = absl::StrCat("/dev/shm/cloze-",
          testing::UnitTest::GetInstance()->current_test_info()->name(), "-", ::getpid());
      std::filesystem::create_directories(folder_);
    }
    std::filesystem::create_directories(Path("vocab"));
    EXPECT_TRUE(SaveTokenizer(*SmallTokenizer(), Path("vocab"), 64).ok());
    std::string text, classes = "text\tlabel\n";
    for (int i = 0; i < 40; ++i) {
      const bool cat = i % 2 == 0;
      absl::StrAppend(&text, cat ? "the cat sat on the mat , the cat sat .\n\n"
                                 : "a dog ran to a big red box . a dog .\n\n");
      absl::StrAppend(&classes, cat ? "the cat sat on mat " : "a dog ran to box ", i, "\t",
          cat ? "cat" : "dog", "\n");
    }
    Write("text.txt", text);
    Write("classes.tsv", classes);
    SetThreads(1);
  }

  // A run of a small encoder: masked_lm, or a classifier with validation. `more` is text of a spec.
  LoadedSpec Spec(const std::string& run, bool classify, int steps, const std::string& more = "",
      int hidden = 16) {
    const std::string data = Path(classify ? "classes.tsv" : "text.txt");
    const auto loaded =
        ParseSpec(absl::StrCat("model { tokenizer: '", Path("vocab"),
                      "' encoder { preset: CUSTOM layers: 1 heads: 1 hidden: ", hidden,
                      " intermediate: 16 max_positions: 32 } } ",
                      classify ? "sequence_classification { max_tokens: 32 }"
                               : "masked_lm { max_tokens: 32 }",
                      " train { files: '", data, "' } ",
                      classify ? absl::StrCat("validation { files: '", data,
                                     "' } evaluation { every_steps: 2 metric: 'loss' }")
                               : "",
                      " batch { tokens: 96 micro_tokens: 48 } schedule { steps: ", steps,
                      " } output { directory: '", Path(run),
                      "' checkpoint_every_steps: 1 log_every_steps: 1 } ", more),
            "test");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *loaded;
  }

  absl::StatusOr<Trainer::Summary> Train(const LoadedSpec& spec, Trainer::Options options = {}) {
    testing::internal::CaptureStderr();
    auto trainer = Trainer::Create(spec, options);
    absl::StatusOr<Trainer::Summary> summary = trainer.ok() ? (*trainer)->Run() : trainer.status();
    said_ = testing::internal::GetCapturedStderr();
    return summary;
  }

  // The bits that a run ends with: its model, and weights and moments of its checkpoint of step
  // `steps`.
  std::string Bits(const std::string& run, int steps) {
    const std::string last = absl::StrFormat("%s/step-%08d/", Path(run), steps);
    return Read(Path(run) + "/model.safetensors") + Read(Path(run) + "/metrics.json") +
           Read(last + "model.safetensors") + Read(last + "optimizer.safetensors");
  }

  std::string said_;
};

}  // namespace cloze

#endif  // CLOZE_TESTS_DURABILITY_RUNS_H_
