#include "core/vectors/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/file.h"
#include "core/base/threads.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class VectorTrainerTest : public testing::Test {
 protected:
  absl::StatusOr<Corpus> Read(const std::string& text, const CorpusOptions& options) {
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    return ReadCorpus(
        {path_}, options, [](int64_t, int64_t) {}, [] { return false; });
  }

  // Sentences about animals and sentences about numbers.
  Corpus TwoTopics() {
    const std::vector<std::string> words = {"cat", "dog", "cow", "hen", "one", "two", "six", "ten"};
    std::string text;
    const Philox philox(1, Purpose::kShuffle);
    for (int line = 0; line < 3000; ++line) {
      for (int i = 0; i < 8; ++i)
        absl::StrAppend(&text, words[4 * (line % 2) + philox(line, i, 0)[0] % 4], " ");
      text += "\n";
    }
    return *Read(text, {});
  }

  static std::vector<float> All(const Corpus& corpus, const VectorOptions& options) {
    VectorTrainer trainer(corpus, options);
    EXPECT_TRUE(trainer.Run([](const VectorProgress&) { return true; }));
    std::vector<float> all(corpus.words.size() * options.dim);
    for (size_t i = 0; i < corpus.words.size(); ++i)
      trainer.Vector(static_cast<int32_t>(i), &all[i * options.dim]);
    return all;
  }

  const TestFolder folder_;
  const std::string path_ = JoinPath(folder_.path(), "text.txt");
};

TEST_F(VectorTrainerTest, BlankLinesTakeNoMemory) {
  const auto corpus = Read("a b\n" + std::string(1'000'000, '\n') + "b a\n", {.min_count = 1});
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->ends, ElementsAre(2, 4));
  EXPECT_LT(corpus->ends.capacity(), 100);
}

// Every combination of method and n-grams.
std::vector<VectorOptions> Kinds() {
  std::vector<VectorOptions> kinds;
  for (const bool cbow : {false, true}) {
    for (const int max_n : {0, 4}) {
      VectorOptions options;
      options.cbow = cbow;
      options.dim = 20;
      options.subsample = 0;
      options.subwords.max_n = max_n;
      options.subwords.buckets = 50;
      kinds.push_back(options);
    }
  }
  return kinds;
}

TEST_F(VectorTrainerTest, ReadsWords) {
  const std::string text = "The Caf\xC3\xA9, the\tcat.\r\n\nthe cat cafe\n";
  auto corpus = Read(text, {.min_count = 2});
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->words, ElementsAre("the", "cafe", "cat"));
  EXPECT_THAT(corpus->counts, ElementsAre(3, 2, 2));
  EXPECT_THAT(corpus->text, ElementsAre(0, 1, 0, 2, 0, 2, 1));
  EXPECT_THAT(corpus->ends, ElementsAre(4, 7));
  corpus = Read(text, {.splits_at_space = true, .min_count = 1});
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->words, ElementsAre("the", "Caf\xC3\xA9,", "The", "cafe", "cat", "cat."));
  EXPECT_THAT(corpus->ends, ElementsAre(4, 7));
  corpus = Read(text, {.min_count = 3});
  EXPECT_EQ(ExitOf(corpus.status()), Exit::kData);
  EXPECT_THAT(corpus.status().message(), HasSubstr("at least 3 times"));
  std::string long_line;
  for (int i = 0; i < 2500; ++i) absl::StrAppend(&long_line, i % 2, " ");
  corpus = Read(long_line, {});
  EXPECT_THAT(corpus->ends, ElementsAre(1000, 2000, 2500));
}

TEST_F(VectorTrainerTest, HasTheSameBitsForAnyNumberOfThreads) {
  const Corpus corpus = TwoTopics();
  const int threads = Threads();
  for (VectorOptions options : Kinds()) {
    options.epochs = 1;
    options.subsample = 0.1;
    std::vector<std::vector<float>> results;
    for (const int count : {1, 2, 5}) {
      SetThreads(count);
      results.push_back(All(corpus, options));
    }
    options.seed = 2;
    const std::vector<float> other = All(corpus, options);
    SetThreads(threads);
    EXPECT_EQ(results[0], results[1]) << options.cbow << options.subwords.max_n;
    EXPECT_EQ(results[0], results[2]) << options.cbow << options.subwords.max_n;
    EXPECT_NE(results[0], other);
  }
}

TEST_F(VectorTrainerTest, PutsWordsOfATopicTogether) {
  const Corpus corpus = TwoTopics();
  const auto topic = [&](size_t word) {
    return std::string("cat dog cow hen").find(corpus.words[word]) != std::string::npos;
  };
  for (const VectorOptions& options : Kinds()) {
    SCOPED_TRACE(absl::StrCat("cbow ", options.cbow, ", max_n ", options.subwords.max_n));
    const std::vector<float> all = All(corpus, options);
    const auto cosine = [&](size_t a, size_t b) {
      double ab = 0, aa = 0, bb = 0;
      for (int c = 0; c < options.dim; ++c) {
        const float x = all[a * options.dim + c], y = all[b * options.dim + c];
        ab += x * y, aa += x * x, bb += y * y;
      }
      return ab / std::sqrt(aa * bb);
    };
    for (size_t a = 0; a < 8; ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (topic(a) == topic(b))
          EXPECT_GT(cosine(a, b), 0.6) << corpus.words[a] << " " << corpus.words[b];
        else
          EXPECT_LT(cosine(a, b), 0.4) << corpus.words[a] << " " << corpus.words[b];
      }
    }
  }
}

TEST_F(VectorTrainerTest, StartsFromChanceReadsAllAndStops) {
  const Corpus corpus = TwoTopics();
  for (const VectorOptions& options : Kinds()) {
    VectorTrainer trainer(corpus, options);
    std::vector<VectorProgress> seen;
    ASSERT_TRUE(trainer.Run([&](const VectorProgress& now) {
      seen.push_back(now);
      return true;
    }));
    EXPECT_NEAR(seen[0].loss, 6 * std::log(2), 1e-5);
    EXPECT_LT(seen[seen.size() - 2].loss, seen[0].loss - 0.3);
    EXPECT_EQ(seen.back().words, 5 * 24000);
    EXPECT_EQ(seen.back().total, 5 * 24000);
    EXPECT_FALSE(VectorTrainer(corpus, options).Run([](const VectorProgress&) { return false; }));
  }
}

}  // namespace
}  // namespace cloze
