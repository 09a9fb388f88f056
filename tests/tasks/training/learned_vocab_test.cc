// Runs that learn their vocabulary.
#include "tasks/training/learned_vocab.h"

#include <filesystem>

#include "core/base/file.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class LearnedVocabTest : public TrainerTest {
 protected:
  // The spec of a run without a tokenizer.
  LoadedSpec Bare(
      const std::string& task, const std::string& data, const std::string& run, int steps = 12) {
    LoadedSpec spec = Spec(NewEncoder() + task, data, run, steps);
    spec.spec.mutable_model()->clear_tokenizer();
    return spec;
  }
  LoadedSpec Classes(const std::string& run) {
    return Bare(" sequence_classification { max_tokens: 48 }", "classes.tsv", run);
  }
};

TEST_F(LearnedVocabTest, RunsOfAllTasksLearnOne) {
  Write("pairs.tsv", "text\tother\nthe cat sat\ta dog ran\na dog ran\tthe cat sat\n");
  int run = 0;
  for (const auto& [task, data] :
      {std::pair(" sequence_classification { max_tokens: 48 }", "classes.tsv"),
          std::pair(" token_tagging { max_tokens: 24 }", "tags.conll"),
          std::pair(" masked_lm { max_tokens: 32 }", "text.txt"),
          std::pair(
              " sequence_to_sequence { max_tokens: 32 max_target_tokens: 32 }", "pairs.tsv")}) {
    const std::string folder = absl::StrCat("run", run++);
    LoadedSpec spec = Bare(task, data, folder, 2);
    if (spec.spec.has_sequence_to_sequence())
      spec.spec.mutable_train()->set_text_pair_field("other");
    ASSERT_TRUE(Train(spec).ok()) << task << progress_;
    EXPECT_THAT(progress_, HasSubstr("vocabulary: ")) << task;
    const auto learned = LoadTokenizer(Path(folder + "/vocab"), false),
               saved = LoadTokenizer(Path(folder), false);
    ASSERT_TRUE(learned.ok() && saved.ok()) << learned.status() << saved.status();
    EXPECT_TRUE((*learned)->SameIds(**saved)) << task;
    if (spec.spec.has_sequence_to_sequence()) {
      EXPECT_STREQ((*learned)->data().scheme->type(), "Unigram");
    } else {
      EXPECT_GE((*learned)->id("cat"), 0) << task;
    }
  }
}

TEST_F(LearnedVocabTest, StoppedRunsEndWithTheSameBits) {
  ExpectSameBitsAfterResumes([&](const std::string& run) { return Classes(run); });
}

TEST_F(LearnedVocabTest, ARunDoesWithoutItsFolderAndInAnother) {
  ASSERT_TRUE(Train(Classes("straight")).ok());
  EXPECT_EQ(ExitOf(Train(Classes("run"), 5).status()), Exit::kInterrupted);
  std::filesystem::remove_all(Path("run/vocab"));
  EXPECT_EQ(ExitOf(Train(Classes("run"), 2).status()), Exit::kInterrupted);
  EXPECT_TRUE(PathExists(Path("run/vocab/tokenizer.json"))) << "restored from the checkpoint";
  std::filesystem::rename(Path("run"), Path("moved"));
  ASSERT_TRUE(Train(Classes("moved")).ok()) << progress_;
  EXPECT_EQ(Weights("moved"), Weights("straight"));
}

TEST_F(LearnedVocabTest, ARunThatCannotBeginLeavesNothing) {
  LoadedSpec spec = Classes("run");
  spec.spec.mutable_validation()->add_files(Path("classes.tsv"));
  spec.spec.mutable_evaluation()->set_metric("nonsense");
  EXPECT_EQ(ExitOf(Train(spec).status()), Exit::kSpec);
  EXPECT_FALSE(PathExists(Path("run")));
}

TEST_F(LearnedVocabTest, AnotherVocabularyIsNotReplaced) {
  std::filesystem::create_directories(Path("run"));
  std::filesystem::copy(Path("vocab"), Path("run/vocab"));
  const std::string before = Read(Path("run/vocab/tokenizer.json"));
  const absl::Status status = Train(Classes("run")).status();
  EXPECT_EQ(ExitOf(status), Exit::kCannotCreate) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("set model.tokenizer to use it"));
  EXPECT_EQ(Read(Path("run/vocab/tokenizer.json")), before);
  // What a killed run has left is the same, and stays.
  EXPECT_EQ(ExitOf(Train(Classes("killed"), 1).status()), Exit::kInterrupted);
  std::filesystem::create_directories(Path("again"));
  std::filesystem::copy(Path("killed/vocab"), Path("again/vocab"));
  EXPECT_TRUE(Train(Classes("again")).ok()) << progress_;
}

TEST_F(LearnedVocabTest, HeldOutTextsAreNotLearnedFrom) {
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 200; ++i)
    absl::StrAppend(&rows, "the word", i * 7919 % 1000, " stands\t", i % 2, "\n");
  Write("rows.tsv", rows);
  TaskSpec spec = Bare(" sequence_classification { max_tokens: 48 }", "rows.tsv", "run").spec;
  std::string all, less;
  ASSERT_TRUE(LearnTokenizer(spec, {}, &all).ok());
  spec.mutable_validation()->set_share(0.5);
  HoldOut(&spec);
  ASSERT_TRUE(LearnTokenizer(spec, {}, &less).ok());
  EXPECT_NE(all, less);
}

TEST_F(LearnedVocabTest, KindAndSizeFollowTheTexts) {
  const auto options = [&](const std::string& task, int64_t bytes, double unspaced) {
    const auto loaded = ParseSpec(task, "test");
    EXPECT_TRUE(loaded.ok());
    return VocabOptionsFor(loaded->spec, bytes, unspaced);
  };
  EXPECT_EQ(options("token_tagging {}", 1, 0).kind, &kWordPieceVocab);
  EXPECT_FALSE(options("token_tagging {}", 1, 0).normalizer.lowercase);
  EXPECT_TRUE(options("sequence_classification {}", 1, 0).normalizer.lowercase);
  EXPECT_FALSE(options("sequence_classification {}", 1, 0).normalizer.strip_accents);
  EXPECT_EQ(options("token_tagging {}", 1, 0.9).kind, &kUnigramVocab);
  EXPECT_FALSE(
      options("sequence_classification {} model { lowercase: false }", 1, 0).normalizer.lowercase);
  EXPECT_LT(options("masked_lm {}", 1e5, 0).size, options("masked_lm {}", 1e7, 0).size);
  EXPECT_LE(options("masked_lm {}", int64_t{1} << 50, 0).size, 16384);
}

TEST_F(LearnedVocabTest, AStreamIsRefused) {
  LoadedSpec spec = Classes("run");
  spec.spec.mutable_train()->set_files(0, "-");
  spec.spec.mutable_train()->set_format(DataSpec::TSV);
  const absl::Status status = Train(spec).status();
  EXPECT_EQ(ExitOf(status), Exit::kSpec) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("learned in a first pass"));
  EXPECT_FALSE(PathExists(Path("run")));
}

}  // namespace
}  // namespace cloze
