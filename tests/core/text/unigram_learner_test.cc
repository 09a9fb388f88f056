#include "core/text/learning/unigram_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

VocabOptions UnigramOptions(int32_t size) {
  VocabOptions options;
  options.kind = &kUnigramVocab;
  options.size = size;
  options.normalizer.lowercase = options.normalizer.strip_accents = false;
  return options;
}

VocabResult TrainOn(const std::string& text, const VocabOptions& options) {
  const TestFolder folder;
  const std::string path = JoinPath(folder.path(), "text.txt");
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  const auto result = TrainVocab({path}, options, [](const char*, int64_t, int64_t) {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : VocabResult();
}

// Words of one to six of eight syllables.
std::string Syllables(int words) {
  const char* syllables[] = {"bak", "lom", "tur", "nif", "ged", "sop", "wax", "hyl"};
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < words; ++i) {
    for (int n = 1 + random() % 6; n > 0; --n) text += syllables[random() % 8];
    text += i % 8 == 7 ? ".\n" : " ";
  }
  return text;
}

std::vector<std::string> TokensOf(const VocabResult& result, const std::string& text) {
  const auto tokenizer = Tokenizer::Create(result.data);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::vector<std::string> tokens;
  for (const int32_t id : (*tokenizer)->Encode(text, false).ids)
    tokens.push_back((*tokenizer)->token(id));
  return tokens;
}

TEST(UnigramLearner, FindsSyllables) {
  const VocabResult result = TrainOn(Syllables(4000), UnigramOptions(80));
  EXPECT_EQ(result.words, 4000);
  const std::vector<std::string>& tokens = result.data.tokens;
  for (size_t id = 5; id < tokens.size(); ++id) {
    const int64_t letters = CountCodePoints(tokens[id]) - absl::StartsWith(tokens[id], "▁");
    EXPECT_TRUE(letters <= 1 || letters % 3 == 0) << tokens[id];
  }
  const std::vector<double>& scores = SchemeOf<UnigramScheme>(result.data).scores;
  ASSERT_EQ(scores.size(), tokens.size());
  EXPECT_GE(scores.size(), 60u);
  EXPECT_LE(scores.size(), 80u);
  EXPECT_TRUE(std::is_sorted(scores.begin() + 5, scores.end(), std::greater<>()));
}

// With characters only, each word has one segmentation.
TEST(UnigramLearner, ScoresOfCharactersFollowFromTheirCounts) {
  const CountedWords words = {{"▁ab", 30}, {"▁a", 50}, {"▁b", 20}};
  VocabOptions options;
  options.min_count = 1000;  // only characters
  const Pieces pieces = LearnUnigram(words, 10, options, [](const char*, int64_t, int64_t) {});
  ASSERT_EQ(pieces.size(), 3u);
  std::map<std::string, double> counts = {{"▁", 100}, {"a", 80}, {"b", 50}};
  // Digamma(n) = -Euler's constant + the harmonic number of n - 1.
  const auto digamma = [](double n) {
    double sum = -0.57721566490153286;
    for (int i = 1; i < n; ++i) sum += 1.0 / i;
    return sum;
  };
  EXPECT_EQ(pieces[0].first, "▁");
  for (const auto& [piece, score] : pieces)
    EXPECT_NEAR(score, digamma(counts[piece]) - digamma(230), 1e-9) << piece;
}

TEST(UnigramLearner, ThreadsDoNotMatter) {
  std::mt19937 random(7);
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    for (int n = 1 + random() % 9; n > 0; --n)
      text += static_cast<char>('a' + random() % 6 * (random() % 3));
    text += i % 10 == 9 ? '\n' : ' ';
  }
  SetThreads(1);
  const VocabResult one = TrainOn(text, UnigramOptions(300));
  SetThreads(5);
  const VocabResult five = TrainOn(text, UnigramOptions(300));
  SetThreads(0);
  EXPECT_EQ(one.data.tokens.size(), 300u);
  EXPECT_EQ(one.data.tokens, five.data.tokens);
  EXPECT_EQ(SchemeOf<UnigramScheme>(one.data).scores, SchemeOf<UnigramScheme>(five.data).scores);
}

TEST(UnigramLearner, PiecesStayInsideClasses) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "我们学习3000个汉字。我们学习 don't，stop 3000。\n";
  const VocabResult result = TrainOn(text, UnigramOptions(200));
  bool chinese = false;
  for (size_t id = 5; id < result.data.tokens.size(); ++id) {
    std::string token = result.data.tokens[id];
    EXPECT_EQ(token.find("▁", 1), std::string::npos) << token;
    for (const char* mixed : {"习3", "0个", "。我", "'t", "，s", "0。"})
      EXPECT_EQ(token.find(mixed), std::string::npos) << token;
    chinese = chinese || token == "我们学习";
  }
  EXPECT_TRUE(chinese);
}

// A character on each of 3000 lines once: the alphabet is longer than the vocabulary asked for.
TEST(UnigramLearner, KeepsFrequentCharacters) {
  std::string text;
  for (char32_t c = 0x4E00; c < 0x4E00 + 3000; ++c) {
    AppendUtf8(c, &text);
    text += "\n";
  }
  EXPECT_GE(TrainOn(text, UnigramOptions(100)).data.tokens.size(), 2990u);
}

TEST(UnigramLearner, HostileText) {
  std::string text = std::string("a\0b ", 4) + "\xFF\xC3 x\r\r ▁▁ ▁a▁ \xC2\xA0 \xE2\x80\xA8\n";
  const VocabResult result = TrainOn(
      text + std::string(5000, 'z') + "\n" + text + std::string(2000, '\n'), UnigramOptions(60));
  EXPECT_EQ(result.dropped_words, 0);  // the long word is cut
  for (const double score : SchemeOf<UnigramScheme>(result.data).scores)
    EXPECT_TRUE(std::isfinite(score));
  EXPECT_TRUE(Tokenizer::Create(result.data).ok());
}

TEST(UnigramLearner, SavedAndLoadedWithOptions) {
  VocabOptions options = UnigramOptions(60);
  options.normalizer.lowercase = options.normalizer.strip_accents = true;
  const VocabResult result = TrainOn("Café CAFÉ ﬁn 한국 한국 café\n", options);
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(TokensOf(result, "CAFÉ"), Tokens{"▁cafe"});
  EXPECT_EQ(TokensOf(result, "한국"), Tokens{"▁한국"});
  const auto tokenizer = Tokenizer::Create(result.data);
  const TestFolder folder;
  ASSERT_TRUE(SaveTokenizer(**tokenizer, folder.path(), 512).ok());
  const auto loaded = LoadTokenizer(folder.path(), true);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE((*loaded)->SameIds(**tokenizer));
  for (const double score :
      SchemeOf<UnigramScheme>(result.data).scores)  // short enough for every parser
    EXPECT_LT(std::abs(score * 1e6 - std::round(score * 1e6)), 1e-6) << score;
  EXPECT_EQ((*loaded)->Encode("Fin café", true).ids, (*tokenizer)->Encode("Fin café", true).ids);
  EXPECT_EQ((*loaded)->Encode("x").ids.front(), 0);
  EXPECT_EQ((*loaded)->Encode("x").ids.back(), 2);
}

}  // namespace
}  // namespace cloze
