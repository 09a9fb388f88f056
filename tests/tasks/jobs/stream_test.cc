// Runs on streams, which are read once, and runs that began with the split of earlier versions.
#include <unistd.h>

#include <deque>
#include <regex>

#include "core/manifest/manifest.h"
#include "tasks/jobs/data_check.h"
#include "tasks/jobs/sweep.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class StreamTest : public TrainerTest {
 protected:
  StreamTest() {
    for (int i = 0; i < 40; ++i) {
      absl::StrAppend(&cats_, "the cat sat on mat ", i, " .\n\n");
      absl::StrAppend(&dogs_, "a dog ran to box ", i, " , a dog .\n\n");
    }
    Write("cats.txt", cats_);
    Write("dogs.txt", dogs_);
  }
  // Trains on `train` and validates on `validation`.
  LoadedSpec Run(const std::string& run, const std::string& train, const std::string& validation) {
    LoadedSpec loaded = Spec(Mlm(), "text.txt", run, 8);
    loaded.spec.mutable_train()->set_files(0, train);
    loaded.spec.mutable_validation()->add_files(validation);
    for (DataSpec* data : {loaded.spec.mutable_train(), loaded.spec.mutable_validation()})
      data->set_format(DataSpec::TEXT);
    return loaded;
  }
  // The same of pipes that hold these texts.
  LoadedSpec Pipes(
      const std::string& run, const std::string& train, const std::string& validation) {
    for (const std::string& text : {train, validation}) pipes_.emplace_back(text);
    return Run(run, pipes_[pipes_.size() - 2].path(), pipes_.back().path());
  }
  std::string Metrics(const std::string& run) { return Read(Path(run) + "/metrics.json"); }
  std::vector<std::string> Stores(const std::string& cache) { return *ListDirectory(Path(cache)); }

  std::string cats_, dogs_;
  std::deque<TextPipe> pipes_;
};

TEST_F(StreamTest, EachPartOfEachRunReadsItsOwn) {
  const auto shared = [&](LoadedSpec spec) {
    spec.spec.mutable_output()->set_cache_directory(Path("shared"));
    return spec;
  };
  ASSERT_TRUE(Train(Run("files", Path("cats.txt"), Path("dogs.txt"))).ok());
  ASSERT_TRUE(Train(Run("others", Path("dogs.txt"), Path("cats.txt"))).ok());
  ASSERT_TRUE(Train(shared(Pipes("pipes", cats_, dogs_))).ok());
  EXPECT_THAT(progress_, testing::Not(HasSubstr("read again")));
  EXPECT_THAT(progress_, testing::Not(HasSubstr("warning: the validation")));
  EXPECT_EQ(Weights("pipes"), Weights("files"));
  EXPECT_EQ(Metrics("pipes"), Metrics("files"));
  ASSERT_TRUE(Train(shared(Pipes("second", dogs_, cats_))).ok());
  EXPECT_EQ(Weights("second"), Weights("others"));
  EXPECT_EQ(Metrics("second"), Metrics("others"));
  ASSERT_TRUE(Train(shared(Pipes("same", cats_, cats_))).ok());
  EXPECT_THAT(progress_, HasSubstr("warning: the validation data are the training data"));
  // A new run with the weights of another reads its own, too.
  ASSERT_TRUE(Train(shared(Pipes("fork", dogs_, cats_)), 1000, Path("pipes")).ok());
  ASSERT_TRUE(
      Train(Run("fork files", Path("dogs.txt"), Path("cats.txt")), 1000, Path("files")).ok());
  EXPECT_EQ(Weights("fork"), Weights("fork files"));
}

TEST_F(StreamTest, ARunResumesFromWhatItHasRead) {
  ASSERT_TRUE(Train(Run("files", Path("cats.txt"), Path("dogs.txt"))).ok());
  for (const auto& [train, validation] :
      {std::pair(cats_, dogs_), std::pair(dogs_, cats_), std::pair(std::string(), std::string())}) {
    const std::string run = absl::StrCat("run", pipes_.size());
    EXPECT_EQ(ExitOf(Train(Pipes(run, cats_, dogs_), 4).status()), Exit::kInterrupted);
    const auto resumed = Train(Pipes(run, train, validation));
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_THAT(progress_, HasSubstr("train: the stream that this run has read is used"));
    EXPECT_THAT(progress_, HasSubstr("validation: the stream that this run has read is used"));
    EXPECT_EQ(Weights(run), Weights("files"));
    EXPECT_EQ(Metrics(run), Metrics("files"));
  }
}

TEST_F(StreamTest, WithoutItsStoreARunNeedsTheSameStream) {
  ASSERT_TRUE(Train(Run("files", Path("cats.txt"), Path("dogs.txt"))).ok());
  EXPECT_EQ(ExitOf(Train(Pipes("run", cats_, dogs_), 4).status()), Exit::kInterrupted);
  std::filesystem::remove_all(Path("run/cache"));
  ExpectError(
      Train(Pipes("run", "", dogs_)).status(), Exit::kData, "0 usable examples (the run has no");
  ExpectError(Train(Pipes("run", dogs_, dogs_)).status(), Exit::kMismatch, "(a stream)");
  const auto resumed = Train(Pipes("run", cats_, dogs_));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_THAT(progress_, HasSubstr("the stream is read again"));
  EXPECT_EQ(Weights("run"), Weights("files"));
  EXPECT_EQ(Metrics("run"), Metrics("files"));
}

// Earlier versions named a store of a stream without its content, and did not record that of the
// validation data.
TEST_F(StreamTest, RunsOfEarlierVersionsResume) {
  ASSERT_TRUE(Train(Run("files", Path("cats.txt"), Path("dogs.txt"))).ok());
  LoadedSpec spec = Pipes("run", cats_, dogs_);
  spec.spec.mutable_validation()->set_max_examples(1000);  // its store has another key
  EXPECT_EQ(ExitOf(Train(spec, 4).status()), Exit::kInterrupted);
  for (const std::string& name : Stores("run/cache")) {
    const std::string content = name.substr(name.rfind('-'));
    std::filesystem::rename(Path("run/cache/" + name),
        Path("run/cache/" + name.substr(0, name.size() - content.size())));
  }
  Forget(Path("run"), "step-00000004/trainer.textproto", "validation_store: .*\n");
  Forget(Path("run"), "step-00000004/trainer.textproto", "-[0-9a-f]{16}(?![0-9a-f])");
  LoadedSpec again = Pipes("run", "", "");
  again.spec.mutable_validation()->set_max_examples(1000);
  const auto resumed = Train(again);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(Weights("run"), Weights("files"));
}

TEST_F(StreamTest, RepeatedRunsShareAStream) {
  const auto spec = [&](LoadedSpec loaded) {
    loaded.spec.set_repeat(2);
    return loaded;
  };
  const auto repeat = [&](const LoadedSpec& loaded, int stop_after) {
    testing::internal::CaptureStderr();
    std::atomic<bool> stop = false;
    auto summary = TrainRepeatedly(
        loaded, {.stop = &stop, .after_step = [&](int64_t) { stop = --stop_after == 0; }});
    progress_ = testing::internal::GetCapturedStderr();
    return summary;
  };
  ASSERT_TRUE(repeat(spec(Run("files", Path("cats.txt"), Path("dogs.txt"))), 1000).ok());
  // The second start begins the second run, without a stream.
  EXPECT_EQ(ExitOf(repeat(spec(Pipes("run", cats_, dogs_)), 6).status()), Exit::kInterrupted);
  const auto rest = repeat(spec(Pipes("run", "", "")), 1000);
  ASSERT_TRUE(rest.ok()) << rest.status();
  for (const char* folder : {"", "/seed-1", "/seed-2"})
    EXPECT_EQ(Weights(absl::StrCat("run", folder)), Weights(absl::StrCat("files", folder)));
}

TEST_F(StreamTest, WhatReadsAStreamTwiceIsRefusedFirst) {
  ExpectError(
      TrainSweep(Pipes("run", cats_, dogs_), {"optimizer.learning_rate=1e-3,1e-4"}, {}).status(),
      Exit::kSpec, "can be read only once, but each run of the sweep reads it: expected a file");
  ExpectError(Train(Run("run", "-", "-")).status(), Exit::kSpec,
      "can be read only once, but train names it as well");
  const TextPipe pipe(cats_);
  ASSERT_EQ(::symlink(pipe.path().c_str(), Path("link").c_str()), 0);
  ExpectError(
      Train(Run("run", pipe.path(), Path("link"))).status(), Exit::kSpec, "train names it as well");
  LoadedSpec pairs = Run("run", Path("cats.txt"), Path("dogs.txt"));
  pairs.spec.mutable_evaluation()->add_pairs("-");
  ExpectError(Train(pairs).status(), Exit::kSpec, "but it is read at each start");
  EXPECT_EQ(CheckInputs(pairs).size(), 1);
  LoadedSpec vectors = Run("run", Path("cats.txt"), Path("dogs.txt"));
  vectors.spec.mutable_model()->mutable_encoder()->set_word_vectors("-");
  ExpectError(Train(vectors).status(), Exit::kSpec, "but it is read at each start");
  EXPECT_FALSE(PathExists(Path("run")));
}

class ShareTest : public TrainerTest {
 protected:
  // Classes of which a share is held out; some labels have few texts.
  LoadedSpec Classes(const std::string& run) {
    std::string rows = "text\tlabel\n";
    for (int i = 0; i < 90; ++i)
      absl::StrAppend(&rows, i % 2 == 0 ? "the cat sat " : "a dog ran ", i, "\t",
          i % 20 == 0  ? absl::StrCat("rare ", i / 40)
          : i % 2 == 0 ? "cat"
                       : "dog",
          "\n");
    Write("rows.tsv", rows);
    LoadedSpec loaded =
        Spec(NewEncoder() + " sequence_classification { max_tokens: 48 }", "rows.tsv", run, 8);
    loaded.spec.mutable_validation()->set_share(0.2f);
    HoldOut(&loaded.spec);
    return loaded;
  }
  static LoadedSpec WithRule(LoadedSpec loaded, int rule) {
    loaded.spec.mutable_train()->set_share_rule(rule);
    loaded.spec.mutable_validation()->set_share_rule(rule);
    return loaded;
  }
  int64_t ValidationOf(const LoadedSpec& loaded) {
    const auto check = CheckData(loaded, Path("scratch"), nullptr);
    EXPECT_TRUE(check.ok()) << check.status();
    return check.ok() ? (*check)["validation"]["examples"].get<int64_t>() : -1;
  }
};

TEST_F(ShareTest, RunsOfEarlierVersionsKeepTheirSplit) {
  const int64_t before = ValidationOf(WithRule(Classes("none"), 1)),
                now = ValidationOf(Classes("none"));
  ASSERT_NE(before, now);
  ASSERT_TRUE(Train(WithRule(Classes("straight"), 1)).ok());
  EXPECT_EQ(ExitOf(Train(WithRule(Classes("run"), 1), 4).status()), Exit::kInterrupted);
  // As an earlier version recorded it.
  for (const char* file : {"step-00000004/trainer.textproto", "spec.textproto"})
    Forget(Path("run"), file, "share_rule: 1");
  EXPECT_EQ(ValidationOf(Classes("run")), before);  // `data check` uses the rule of the run
  const auto resumed = Train(Classes("run"));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(Weights("run"), Weights("straight"));
  EXPECT_THAT(Read(Path("run/spec.textproto")), HasSubstr("share_rule: 1"));
  // A new run does not.
  ASSERT_TRUE(Train(Classes("new")).ok());
  EXPECT_THAT(Read(Path("new/spec.textproto")), HasSubstr("share_rule: 2"));
  EXPECT_THAT(progress_, HasSubstr(absl::StrCat("validation: ", now, " examples")));
}

}  // namespace
}  // namespace cloze
