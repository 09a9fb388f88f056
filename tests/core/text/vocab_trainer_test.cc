#include "core/text/learning/vocab_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using Tokens = std::vector<std::string>;

class VocabTrainer : public testing::Test {
 protected:
  VocabResult Train(const std::string& text, const VocabOptions& options) {
    EXPECT_TRUE(WriteFileAtomically(path_, text).ok());
    const auto result = TrainVocab({path_}, options,
        [&](const char*, int64_t done, int64_t total) { done_ = done, total_ = total; });
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : VocabResult();
  }

  const TestFolder folder_;
  const std::string path_ = JoinPath(folder_.path(), "text.txt");
  int64_t done_ = 0, total_ = 0;
};

// The tokens, but not the order of the "##" characters, are those of Hugging Face's trainer.
TEST_F(VocabTrainer, SameAsHuggingFace) {
  VocabOptions options;
  options.size = 60;
  const std::string text =
      "Low lower lowest, the lowest; newer newest wider widest. The new low: lower!\n"
      "a new lower low — naïve café CAFÉ cafés 你好 you're re-newed\n";
  const VocabResult result = Train(text, options);
  EXPECT_EQ(result.data.tokens,
      (Tokens{"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "!", "'", ",", "-", ".", ":", ";",
          "a", "c", "d", "e", "f", "h", "i", "l", "n", "o", "r", "s", "t", "u", "v", "w", "y", "—",
          "你", "好", "##e", "##w", "##o", "##s", "##a", "##d", "##i", "##r", "##t", "##f", "##h",
          "##u", "##v", "lo", "##we", "ne", "lowe", "##st", "ca", "##fe", "low", "newe", "lower",
          "cafe", "re", "th", "wi", "##de"}));
  EXPECT_EQ(result.bytes, static_cast<int64_t>(text.size()));
  EXPECT_EQ(done_, total_);
  EXPECT_EQ(done_, result.bytes);
  EXPECT_EQ(result.words, 35);
  EXPECT_EQ(result.dropped_words, 0);
}

std::string RandomWords(int lines) {
  std::mt19937 random(5);
  std::string text;
  for (int i = 0; i < lines; ++i) {
    for (int words = random() % 12; words > 0; --words) {
      for (int n = 1 + random() % 6; n > 0; --n)
        text += static_cast<char>('a' + random() % 6 * (random() % 3));
      text += ' ';
    }
    text += '\n';
  }
  return text;
}

TEST_F(VocabTrainer, ThreadsDoNotMatter) {
  VocabOptions options;
  options.size = 400;
  const std::string text = RandomWords(20000);
  SetThreads(1);
  const VocabResult one = Train(text, options);
  SetThreads(5);
  const VocabResult five = Train(text, options);
  options.memory_limit = 100 << 10;
  const VocabResult small = Train(text, options);
  SetThreads(2);
  const VocabResult small2 = Train(text, options);
  SetThreads(0);
  EXPECT_EQ(one.data.tokens.size(), 400u);
  EXPECT_EQ(one.data.tokens, five.data.tokens);
  EXPECT_EQ(one.words, five.words);
  EXPECT_EQ(small.data.tokens, small2.data.tokens);
  EXPECT_GT(small.dropped_words, 0);
  EXPECT_EQ(small.words + small.dropped_words, one.words);
  Tokens sorted = one.data.tokens;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
}

TEST_F(VocabTrainer, DropsTheRarestWordsWhenMemoryIsShort) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {  // once, or twice
    for (int n = 0; n <= i % 2; ++n) absl::StrAppend(&text, "w", i, " ");
  }
  for (int n = 0; n < 3; ++n) text += "one two three\n";
  VocabOptions options;
  options.memory_limit = 20 << 10;
  const VocabResult result = Train(text, options);
  EXPECT_EQ(result.dropped_words, 1500);
  EXPECT_EQ(result.words, 9);
}

TEST_F(VocabTrainer, StopsAtRarePairs) {
  VocabOptions options;
  options.min_count = 3;
  EXPECT_EQ(Train("ab ab ab cd cd\n", options).data.tokens,
      (Tokens{
          "<pad>", "<unk>", "<class>", "<sep>", "<mask>", "a", "b", "c", "d", "##b", "##d", "ab"}));
}

TEST_F(VocabTrainer, KeepsTheMostFrequentCharacters) {
  VocabOptions options;
  options.max_alphabet = 2;
  options.min_count = 100;
  EXPECT_EQ(Train("aaa bb c d\n", options).data.tokens,
      (Tokens{"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "a", "b", "##a", "##b"}));
}

TEST_F(VocabTrainer, LargeVocabulariesKeepMoreCharacters) {
  std::string text;
  for (int i = 0; i < 1500; ++i) {
    std::string c;
    AppendUtf8(0x4E00 + i, &c);
    text += c + " " + c + "\n";
  }
  VocabOptions options;
  options.size = 4000;
  EXPECT_EQ(Train(text, options).data.tokens.size(), 5 + 1500);
  options.size = 1600;
  EXPECT_EQ(Train(text, options).data.tokens.size(), 5 + 1000);
}

TEST_F(VocabTrainer, UnigramLearnsFromTextsWithoutBlanks) {
  std::string text;
  for (int i = 0; i < 2000; ++i) AppendUtf8(0x4E00 + i % 7, &text);
  VocabOptions options;
  options.kind = &kUnigramVocab;
  options.size = 40;
  const VocabResult result = Train(text + "\n", options);
  EXPECT_EQ(result.dropped_words, 0);
  EXPECT_GT(result.data.tokens.size(), 12);
}

TEST_F(VocabTrainer, LongWordsAndBadBytes) {
  VocabOptions options;
  // Few of the lines are not UTF-8.
  const VocabResult result = Train("ok " + std::string(101, 'x') + " " + std::string(1 << 20, 'y') +
                                       "\xFF\n\xC3(ok" + std::string(2000, '\n'),
      options);
  EXPECT_EQ(result.dropped_words, 2);
  EXPECT_EQ(result.data.tokens,
      (Tokens{"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "(", "k", "o", "##k", "ok"}));
  EXPECT_EQ(result.words, 3);
}

TEST_F(VocabTrainer, Errors) {
  VocabOptions options;
  const auto none = [](const char*, int64_t, int64_t) {};
  EXPECT_EQ(ExitOf(TrainVocab({path_}, options, none).status()), Exit::kNoInput);
  ASSERT_TRUE(WriteFileAtomically(path_, " \n\n").ok());
  EXPECT_EQ(ExitOf(TrainVocab({path_}, options, none).status()), Exit::kData);
  EXPECT_EQ(ExitOf(TrainVocab({}, options, none).status()), Exit::kData);
  options.size = 5;
  EXPECT_EQ(ExitOf(TrainVocab({path_}, options, none).status()), Exit::kSpec);
}

}  // namespace
}  // namespace cloze
