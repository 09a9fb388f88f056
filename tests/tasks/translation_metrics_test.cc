#include "tasks/translation_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_join.h"

namespace cloze {
namespace {

using Texts = std::vector<std::string>;

template <typename Metric>
Metric Count(const Texts& generated, const Texts& references) {
  Metric metric;
  for (size_t i = 0; i < generated.size(); ++i) metric.Add(generated[i], references[i]);
  return metric;
}
template <typename Metric>
double Score(const Texts& generated, const Texts& references) {
  return Count<Metric>(generated, references).Score();
}

// Expected words: the regular expressions of sacreBLEU's tokenizer_re.py, run by Python.
TEST(TranslationMetricsTest, Tokenizes13a) {
  const auto tokens = [](const std::string& text) { return absl::StrJoin(Tokenize13a(text), " "); };
  EXPECT_EQ(tokens("2019-03-05, 1,000.50 (A/B) don't &quot;x&quot; e.g. é, ..., <skipped>end-"),
      "2019 - 03 - 05 , 1,000.50 ( A / B ) don't \" x \" e . g . é , . . . , end-");
  EXPECT_EQ(
      tokens("a,,b..c 3.,4 x.5 [y]{z}~^_`"), "a , , b . . c 3 . , 4 x . 5 [ y ] { z } ~ ^ _ `");
  EXPECT_EQ(tokens("¿Qué?\u00a0«a»\u3000b."), "¿Qué ? «a» b .");
  EXPECT_EQ(tokens("&amp;lt; 5% $3.5-4"), "< 5 % $ 3.5 - 4");
  EXPECT_EQ(tokens(" -\n "), "");
  EXPECT_EQ(tokens("hy-<skipped>\nphen &amp;quot;"), "hyphen & quot ;");
}

const Texts kGenerated = {
    "The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."};

TEST(TranslationMetricsTest, Bleu) {
  // The counts and the score of sacreBLEU's test_bleu.py.
  const Bleu counted =
      Count<Bleu>({"am I am a character sequence"}, {"I am a symbol string sequence a a"});
  EXPECT_EQ(counted.right, (std::array<int64_t, 4>{4, 2, 1, 0}));
  EXPECT_EQ(counted.all, (std::array<int64_t, 4>{6, 5, 4, 3}));
  EXPECT_NEAR((Bleu{{9, 7, 5, 3}, {10, 8, 6, 4}, 11, 11}).Score(), 83.75922397, 1e-7);
  EXPECT_EQ(Score<Bleu>({"", "", ""}, kGenerated), 0);
  EXPECT_NEAR(Score<Bleu>({"this is a test"}, {"this is a test"}), 100, 1e-9);
  // Its functions, run by Python: one reference, smoothing, outputs that are too short.
  EXPECT_NEAR(Score<Bleu>(kGenerated,
                  {"The dog bit the man.", "It was not unexpected.", "The man bit him first."}),
      45.06750632106114, 1e-9);
  EXPECT_NEAR(Score<Bleu>({"this is a test"}, {"that was some test"}), 15.97357760615681, 1e-9);
  EXPECT_EQ(Score<Bleu>({"a test"}, {"a test"}), 0);
}

// sacreBLEU strips the end of a line before it joins words that a hyphen and a line end cut.
TEST(TranslationMetricsTest, BleuIgnoresSpaceAtTheEnd) {
  const double score = Score<Bleu>({"a b c d e f"}, {"a b c d e f -"});
  EXPECT_NEAR(score, 100 * std::exp(1 - 7 / 6.0), 1e-9);
  for (const char* end : {"\n", " \n", "\u2028", "\x1c\u3000"})
    EXPECT_EQ(Score<Bleu>({"a b c d e f"}, {std::string("a b c d e f -") + end}), score);
  EXPECT_NEAR(Score<Bleu>({"a b c d ef"}, {"a b c d e-\nf"}), 100, 1e-9);
}

TEST(TranslationMetricsTest, LongOutputsHaveNoBonus) {
  // sacreBLEU: precisions 4/6, 3/5, 2/4 and 1/3, no brevity penalty.
  EXPECT_NEAR(Score<Bleu>({"a b c d x y"}, {"a b c d"}),
      100 * std::pow(4 / 6.0 * 3 / 5 * 2 / 4 * 1 / 3, 0.25), 1e-9);
}

TEST(TranslationMetricsTest, ChrF) {
  // test_chrf.py.
  EXPECT_NEAR(Score<ChrF>({"a b c"}, {"abc"}), 100, 1e-9);
  EXPECT_NEAR(Score<ChrF>({"a", "b"}, {"a", "c"}), 50, 1e-9);
  EXPECT_NEAR(Score<ChrF>({"aa"}, {"ab"}), 25, 1e-9);
  EXPECT_EQ(Score<ChrF>({""}, {"reference"}), 0);
  // Orders that a reference lacks do not count: 3 characters of the output are not wrong.
  EXPECT_NEAR(Score<ChrF>({"abc", "xyz"}, {"ab", "xyz"}), 96.875, 1e-9);
  // Its functions, run by Python.
  EXPECT_NEAR(Score<ChrF>(kGenerated, {"The dog had bit the man.", "No one was surprised.",
                                          "The man had bitten the dog."}),
      51.70106133373036, 1e-9);
  EXPECT_NEAR(
      Score<ChrF>({"Co nás nejvíc trápí, protože lékaři si vybírají, kdo bude žít a kdo zemře."},
          {"Nejvíce smutní jsme z toho, že musíme rozhodovat o tom, kdo bude žít a kdo zemře."}),
      39.14081690316368, 1e-9);
}

}  // namespace
}  // namespace cloze
