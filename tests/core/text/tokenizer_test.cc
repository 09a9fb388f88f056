#include "core/text/tokenizer/tokenizer.h"
#include "core/text/tokenizer/schemes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "core/base/threads.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

using Ids = std::vector<int32_t>;
using Tokens = std::vector<std::string>;

Tokens Vocab() {
  return {"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "hello", "world", "cafe", "un",
      "##believ", "##able", "!", ",", ".", "a", "##a", "b", "##b", "你", "<", "mask", ">", "##s",
      "e", "##e", "=", "\xE1\x84\x92", "##\xE1\x85\xA1", "##\xE1\x86\xAB"};
}

std::unique_ptr<Tokenizer> Make(NormalizerOptions options = {}) {
  auto tokenizer = Tokenizer::Create({.tokens = Vocab(), .scheme = BertScheme(options)});
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

Tokens TokensOf(const Tokenizer& tokenizer, const Encoding& encoding) {
  Tokens tokens;
  for (const int32_t id : encoding.ids) tokens.push_back(tokenizer.token(id));
  return tokens;
}

std::vector<std::string> Slices(const std::string& text, const Encoding& encoding) {
  std::vector<std::string> slices;
  for (const Span& span : encoding.bytes)
    slices.push_back(text.substr(span.begin, span.end - span.begin));
  return slices;
}

TEST(Tokenizer, TokensAndOffsets) {
  const auto tokenizer = Make();
  const std::string text = "Hello,  UNbelievable CAFÉ!你a";
  const Encoding encoding = tokenizer->Encode(text);
  EXPECT_EQ(TokensOf(*tokenizer, encoding), (Tokens{"<class>", "hello", ",", "un", "##believ",
                                                "##able", "cafe", "!", "你", "a", "<sep>"}));
  EXPECT_EQ(Slices(text, encoding),
      (Tokens{"", "Hello", ",", "UN", "believ", "able", "CAFÉ", "!", "你", "a", ""}));
  EXPECT_EQ(encoding.words, (Ids{-1, 0, 1, 2, 2, 2, 3, 4, 5, 6, -1}));
  EXPECT_EQ(encoding.chars[6].begin, 21);
  EXPECT_EQ(encoding.chars[6].end, 25);
  EXPECT_EQ(encoding.chars[9].begin, 27);
  EXPECT_EQ(tokenizer->Decode(encoding.ids), "hello , unbelievable cafe ! 你 a");
}

TEST(Tokenizer, SpecialTokensInTheText) {
  const auto tokenizer = Make();
  const std::string text = "a<mask>b <MASK> <mask";
  const Encoding encoding = tokenizer->Encode(text, false);
  EXPECT_EQ(
      TokensOf(*tokenizer, encoding), (Tokens{"a", "<mask>", "b", "<", "mask", ">", "<", "mask"}));
  EXPECT_EQ(encoding.words, (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Slices(text, encoding)[1], "<mask>");
}

TEST(Tokenizer, CombiningAndDroppedCharacters) {
  const auto tokenizer = Make();
  const std::string text =
      "c\xC2\xAD"
      "af\x01"
      "e\xCC\x81 \xED\x95\x9C";  // soft hyphen, control, combining acute; a Hangul syllable
  const Encoding encoding = tokenizer->Encode(text, false);
  ASSERT_EQ(TokensOf(*tokenizer, encoding),
      (Tokens{"cafe", "\xE1\x84\x92", "##\xE1\x85\xA1", "##\xE1\x86\xAB"}));
  EXPECT_EQ(Slices(text, encoding), (Tokens{"c\xC2\xAD"
                                            "af\x01"
                                            "e",
                                        "\xED\x95\x9C", "\xED\x95\x9C", "\xED\x95\x9C"}));
  EXPECT_EQ(encoding.chars[0].end, 6);
  EXPECT_EQ(encoding.words, (Ids{0, 1, 1, 1}));
}

TEST(Tokenizer, Cased) {
  const auto tokenizer = Make({.strip_accents = false, .lowercase = false});
  EXPECT_EQ(TokensOf(*tokenizer, tokenizer->Encode("hello Hello café", false)),
      (Tokens{"hello", "<unk>", "<unk>"}));
}

TEST(Tokenizer, LongWordsAreUnknownInLinearTime) {
  const auto tokenizer = Make();
  EXPECT_EQ(tokenizer->Encode(std::string(100, 'a'), false).ids.size(), 100u);
  EXPECT_EQ(tokenizer->Encode(std::string(101, 'a'), false).ids, Ids{tokenizer->special().unk});
  const std::string text(20 << 20, 'a');
  const auto start = std::chrono::steady_clock::now();
  const Encoding encoding = tokenizer->Encode(text, false);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  ASSERT_EQ(encoding.ids.size(), 1u);
  EXPECT_EQ(encoding.bytes[0].end, 20 << 20);
  EXPECT_EQ(encoding.chars[0].end, 20 << 20);
  const std::string brackets(4 << 20, '<');
  EXPECT_EQ(tokenizer->Encode(brackets, false).ids.size(), brackets.size());
}

TEST(Tokenizer, SplitWords) {
  const auto tokenizer = Make();
  const std::vector<std::string> words = {"Hello,", "\x01 ", "", "café", "<mask>"};
  const Encoding encoding = tokenizer->EncodeWords(words);
  EXPECT_EQ(
      TokensOf(*tokenizer, encoding), (Tokens{"<class>", "hello", ",", "cafe", "<mask>", "<sep>"}));
  EXPECT_EQ(encoding.words, (Ids{-1, 0, 0, 3, 4, -1}));
  EXPECT_EQ(encoding.bytes[2].begin, 5);
  EXPECT_EQ(encoding.bytes[3].end, 5);
  EXPECT_EQ(encoding.chars[3].end, 4);
}

// Room for the texts and what Hugging Face leaves of them.
TEST(Tokenizer, TruncatesTheLongerText) {
  const auto tokenizer = Make();
  const auto text = [](int n) {
    std::string s;
    for (int i = 0; i < n; ++i) s += "a ";
    return s;
  };
  const int cases[][5] = {{5, 3, 3, 2, 3}, {5, 4, 3, 3, 2}, {5, 6, 4, 3, 2}, {9, 12, 2, 7, 2},
      {9, 2, 12, 2, 7}, {9, 5, 4, 5, 4}, {9, 7, 6, 5, 4}, {4, 0, 9, 0, 4}, {1, 5, 1, 1, 0},
      {1, 5, 0, 1, 0}, {0, 3, 3, 0, 0}};
  for (const auto& [room, a, b, kept_a, kept_b] : cases) {
    Encoding encoding = tokenizer->EncodePair(text(a), text(b));
    EXPECT_EQ(Truncate(&encoding, room + 3), a + b - kept_a - kept_b);
    Ids types(2 + kept_a, 0);
    types.resize(3 + kept_a + kept_b, 1);
    EXPECT_EQ(encoding.types, types) << room << " " << a << " " << b;
    EXPECT_EQ(encoding.ids[1 + kept_a], tokenizer->special().sep);
    EXPECT_EQ(encoding.ids.back(), tokenizer->special().sep);
  }
  Encoding single = tokenizer->Encode(text(9));
  EXPECT_EQ(Truncate(&single, 5), 6);
  EXPECT_EQ(TokensOf(*tokenizer, single), (Tokens{"<class>", "a", "a", "a", "<sep>"}));
  EXPECT_EQ(Truncate(&single, 5), 0);
  EXPECT_EQ(Truncate(&single, 0), 3);
  EXPECT_EQ(TokensOf(*tokenizer, single), (Tokens{"<class>", "<sep>"}));
  Encoding bare = tokenizer->Encode(text(9), false);
  EXPECT_EQ(Truncate(&bare, 4), 5);
  EXPECT_EQ(bare.bytes.size(), 4u);
}

// Bytes and code points of all sorts, with pieces of the vocabulary among them.
std::string RandomText(std::mt19937* random) {
  const Tokens vocab = Vocab();
  std::string text;
  for (int parts = (*random)() % 12; parts > 0; --parts) {
    switch ((*random)() % 5) {
      case 0: text += vocab[(*random)() % vocab.size()]; break;
      case 1: AppendUtf8((*random)() % 0x3100, &text); break;
      case 2: AppendUtf8(0x10000 + (*random)() % 0x100000, &text); break;
      case 3: text += static_cast<char>((*random)()); break;
      default:
        text +=
            " \t\xC3\xA9"
            "E"[(*random)() % 5];
        break;
    }
  }
  return text;
}

void CheckEncoding(const Tokenizer& tokenizer, const std::string& text) {
  const Encoding encoding = tokenizer.Encode(text, false);
  Ids ids;
  tokenizer.AppendIds(text, &ids);
  ASSERT_EQ(ids, encoding.ids);
  Pipeline stages;
  SetBertText(SchemeOf<WordPieceScheme>(tokenizer.data()).options, &stages);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Span bytes = encoding.bytes[i], chars = encoding.chars[i];
    ASSERT_TRUE(0 <= bytes.begin && bytes.begin < bytes.end &&
                bytes.end <= static_cast<int64_t>(text.size()));
    ASSERT_EQ(chars.begin, CountCodePoints(text.substr(0, bytes.begin)));
    ASSERT_EQ(chars.end, CountCodePoints(text.substr(0, bytes.end)));
    const int32_t step = encoding.words[i] - (i == 0 ? -1 : encoding.words[i - 1]);
    ASSERT_TRUE(step == 1 || (step == 0 && encoding.bytes[i - 1].begin <= bytes.begin &&
                                 encoding.bytes[i - 1].end <= bytes.end));
    if (i > 0 && step == 1) {
      ASSERT_LE(encoding.bytes[i - 1].end, bytes.begin);
    }
    // The bytes of a token hold it.
    const std::string slice = text.substr(bytes.begin, bytes.end - bytes.begin);
    std::string normal, piece = tokenizer.token(ids[i]);
    stages.normalizer->Append(slice, 1000, &normal, nullptr);
    if (piece.size() > 2 && piece.substr(0, 2) == "##") piece = piece.substr(2);
    ASSERT_TRUE(slice == piece || ids[i] == tokenizer.special().unk ||
                normal.find(piece) != std::string::npos)
        << slice << " " << piece;
  }
}

TEST(Tokenizer, OffsetsOfAnyBytes) {
  std::mt19937 random(7);
  for (const NormalizerOptions options :
      {NormalizerOptions{}, NormalizerOptions{true, true, false, false},
          NormalizerOptions{false, false, true, false},
          NormalizerOptions{false, true, false, true}}) {
    const auto tokenizer = Make(options);
    for (int i = 0; i < 1000; ++i) {
      const std::string text = RandomText(&random);
      CheckEncoding(*tokenizer, text);
      if (testing::Test::HasFatalFailure()) FAIL() << testing::PrintToString(text);
      const Encoding pair = tokenizer->EncodePair(text, text);
      const Encoding one = tokenizer->Encode(text);
      ASSERT_EQ(pair.ids.size(), 2 * one.ids.size() - 1);
      Encoding cut = pair;
      const int64_t limit = random() % 12;
      const int64_t removed = Truncate(&cut, limit);
      ASSERT_EQ(removed, static_cast<int64_t>(pair.ids.size() - cut.ids.size()));
      ASSERT_LE(static_cast<int64_t>(cut.ids.size()), std::max<int64_t>(limit, 3));
    }
  }
}

TEST(Tokenizer, ThreadsAndTokenizersShareNothing) {
  const auto lower = Make(), cased = Make({.strip_accents = false, .lowercase = false});
  std::mt19937 random(9);
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int i = 0; i < 2000; ++i) {
    texts.push_back(RandomText(&random) + " Hello CAFÉ");
    const Tokenizer& tokenizer = i % 2 == 0 ? *lower : *cased;
    expected.push_back(tokenizer.Encode(texts.back(), false).ids);
  }
  const auto fresh_lower = Make(), fresh_cased = Make({.strip_accents = false, .lowercase = false});
  SetThreads(4);
  std::vector<Ids> got(texts.size());
  ParallelFor(static_cast<int64_t>(texts.size()),
      [&](int64_t i) { (i % 2 == 0 ? *fresh_lower : *fresh_cased).AppendIds(texts[i], &got[i]); });
  SetThreads(0);
  EXPECT_EQ(got, expected);
}

TEST(Tokenizer, LooksUpTokens) {
  const auto tokenizer = Make();
  for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
    EXPECT_EQ(tokenizer->id(tokenizer->token(id)), id);
    EXPECT_EQ(tokenizer->is_special(id), id < 5);
  }
  EXPECT_EQ(tokenizer->id("hell"), -1);
  EXPECT_EQ(tokenizer->id(""), -1);
  EXPECT_EQ(tokenizer->Encode("").ids, (Ids{2, 3}));
  const SpecialIds& special = tokenizer->special();
  EXPECT_EQ((Ids{special.pad, special.unk, special.cls, special.sep, special.mask}),
      (Ids{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace cloze
