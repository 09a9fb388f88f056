// Unigram, Metaspace and the steps of normalizers, with what Hugging Face's tokenizers give for
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/text/unicode/unicode.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

const std::string kFolder = CLOZE_SOURCE_DIR "/tests/golden/unigram";

Json Golden() { return Json::parse(*ReadFile(kFolder + "/tokenizer.json", 1 << 20)); }
std::string CharsmapText() {
  std::string text = *ReadFile(kFolder + "/charsmap.txt", 1 << 20);
  text.pop_back();
  return text;
}
std::string CharsmapBytes() {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(CharsmapText(), &bytes));
  return bytes;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const Json& json) {
  const TestFolder folder;
  const std::string path = JoinPath(folder.path(), "tokenizer.json");
  EXPECT_TRUE(WriteFileAtomically(path, json.dump()).ok());
  return LoadTokenizer(path, true);
}

std::unique_ptr<Tokenizer> Make(const Json& json) {
  auto tokenizer = Load(json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

// Tokens of a text without those around it, and their spans: "▁a 0-1 bc 1-3".
std::string Pieces(const Tokenizer& tokenizer, const std::string& text, bool spans = false) {
  const Encoding e = tokenizer.Encode(text, false);
  std::vector<std::string> tokens;
  for (size_t i = 0; i < e.ids.size(); ++i) {
    tokens.push_back(tokenizer.token(e.ids[i]));
    if (spans) tokens.push_back(absl::StrCat(e.chars[i].begin, "-", e.chars[i].end));
  }
  std::vector<int32_t> ids;
  tokenizer.AppendIds(text, &ids);
  EXPECT_EQ(ids, e.ids) << text;
  return absl::StrJoin(tokens, " ");
}

Json Metaspace(const std::string& scheme, bool split = true) {
  return {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", split}};
}

TEST(Unigram, WordsAsInHuggingFace) {
  const auto tokenizer = Make(Golden());
  EXPECT_EQ(Pieces(*tokenizer, "ab", true), "▁ 0-1 ab 0-2");
  EXPECT_EQ(Pieces(*tokenizer, "abc"), "▁a bc");
  EXPECT_EQ(Pieces(*tokenizer, "  abab  abc ", true), "▁ 2-3 ab 2-4 ab 4-6 ▁a 8-9 bc 9-11");
  EXPECT_EQ(Pieces(*tokenizer, "xyz", true), "▁ 0-1 <unk> 0-3");
  EXPECT_EQ(Pieces(*tokenizer, "ab xyb"), "▁ ab ▁ <unk> b");
  EXPECT_EQ(Pieces(*tokenizer, "axxb"), "▁a <unk> b");
  EXPECT_EQ(Pieces(*tokenizer, ""), "");
  EXPECT_EQ(Pieces(*tokenizer, " "), "");
  EXPECT_EQ(Pieces(*tokenizer, "a<mask>b", true), "▁a 0-1 <mask> 1-7 ▁ 7-8 b 7-8");
  EXPECT_EQ(Pieces(*tokenizer, "ab\xFFz"), Pieces(*tokenizer, "ab\uFFFDz"));
  EXPECT_EQ(tokenizer->Encode("a").ids, (std::vector<int32_t>{0, 5, 2}));
  EXPECT_EQ(tokenizer->EncodePair("a", "a").ids, (std::vector<int32_t>{0, 5, 2, 2, 5, 2}));
  const Encoding words = tokenizer->EncodeWords({"ab", " ", "abc"}, false);
  EXPECT_EQ(words.words, (std::vector<int32_t>{0, 0, 2, 2}));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("ab abc").ids), "ab abc");
  EXPECT_TRUE(tokenizer->ContinuesWord(tokenizer->id("ab")));
  EXPECT_FALSE(tokenizer->ContinuesWord(tokenizer->id("▁ab")));
}

TEST(Unigram, PiecesOfTextThatIsNoAddedToken) {
  Json json = Golden();
  json["added_tokens"].erase(4);
  EXPECT_EQ(Pieces(*Make(json), "a<mask>b"), "▁a <mask> b");
}

// Of equal sums, the path that was found first stays: that of the longest last piece.
TEST(Unigram, EqualSums) {
  Json json = Golden();
  json["model"]["vocab"][12][1] = -12.5;  // abc = a + bc
  json["pre_tokenizer"] = Metaspace("never");
  EXPECT_EQ(Pieces(*Make(json), "abc"), "abc");
  json["model"]["vocab"][12][1] = -12.6;
  EXPECT_EQ(Pieces(*Make(json), "abc"), "a bc");
}

TEST(Unigram, MetaspaceSchemes) {
  Json json = Golden();
  const auto tokens = [&](const Json& pre_tokenizer, const std::string& text) {
    json["pre_tokenizer"] = pre_tokenizer;
    return Pieces(*Make(json), text, true);
  };
  EXPECT_EQ(tokens(Metaspace("always"), "  ab   c"), "▁ 0-1 ▁ 1-2 ab 2-4 ▁ 4-5 ▁ 5-6 ▁ 6-7 c 7-8");
  EXPECT_EQ(tokens(Metaspace("always"), "ab "), "▁ 0-1 ab 0-2 ▁ 2-3");
  EXPECT_EQ(tokens(Metaspace("always"), "a<mask>a"), "▁a 0-1 <mask> 1-7 ▁a 7-8");
  EXPECT_EQ(tokens(Metaspace("first"), "a<mask>a"), "▁a 0-1 <mask> 1-7 a 7-8");
  EXPECT_EQ(tokens(Metaspace("never"), "a<mask>a a"), "a 0-1 <mask> 1-7 a 7-8 ▁a 8-10");
  EXPECT_EQ(tokens(Metaspace("never"), "a▁a"), "a 0-1 ▁a 1-3");
  EXPECT_EQ(tokens(Metaspace("always", false), "a a"), "▁a 0-1 ▁a 1-3");
  EXPECT_EQ(tokens({{"type", "Metaspace"}, {"replacement", "▁"}, {"add_prefix_space", false}}, "a"),
      "a 0-1");
  const Json punctuation = {{"type", "Punctuation"}, {"behavior", "Isolated"}};
  EXPECT_EQ(tokens({{"type", "Sequence"}, {"pretokenizers", {punctuation, Metaspace("always")}}},
                "a.,ab"),
      "▁a 0-1 ▁ 1-2 <unk> 1-2 ▁ 2-3 <unk> 2-3 ▁ 3-4 ab 3-5");
}

// In scripts without blanks each piece is a word: a masked language model hides one at a time.
TEST(Unigram, WordsOfScriptsWithoutBlanks) {
  Json json = Golden();
  for (const char* piece : {"世界", "สวัสดี", "カナ", "é"})
    json["model"]["vocab"].push_back({piece, -5.0});
  const auto tokenizer = Make(json);
  EXPECT_EQ(Pieces(*tokenizer, "世界カナé"), "▁ 世界 カナ é");
  for (const char* piece : {"世界", "สวัสดี", "カナ"})
    EXPECT_FALSE(tokenizer->ContinuesWord(tokenizer->id(piece))) << piece;
  EXPECT_TRUE(tokenizer->ContinuesWord(tokenizer->id("é")));
}

TEST(Unigram, ByteFallback) {
  Json json = Golden();
  json["model"]["byte_fallback"] = true;
  EXPECT_EQ(Pieces(*Make(json), "aé"), "▁a <unk>");
  for (const char* byte : {"<0xC3>", "<0xA9>"}) json["model"]["vocab"].push_back({byte, -20.0});
  // Not all bytes exist, so decoding does not know them either.
  const auto tokenizer = Make(json);
  EXPECT_EQ(Pieces(*tokenizer, "aéb", true), "▁a 0-1 <0xC3> 1-2 <0xA9> 1-2 b 2-3");
  EXPECT_EQ(Pieces(*tokenizer, "aéx"), "▁a <unk>");
}

TEST(Unigram, TemplatesOfAnyOrder) {
  Json json = Golden();
  const Json b = {{"Sequence", {{"id", "B"}, {"type_id", 0}}}},
             a = {{"Sequence", {{"id", "A"}, {"type_id", 1}}}},
             end = {{"SpecialToken", {{"id", "</s>"}, {"type_id", 1}}}};
  json["post_processor"]["pair"] = {b, end, a, end};
  const Encoding pair = Make(json)->EncodePair("a", "c");
  EXPECT_EQ(pair.ids, (std::vector<int32_t>{4, 10, 2, 5, 2}));
  EXPECT_EQ(pair.types, (std::vector<int32_t>{0, 0, 1, 1, 1}));
  EXPECT_EQ(pair.words, (std::vector<int32_t>{0, 0, -1, 0, -1}));
}

TEST(Unigram, RefusesByName) {
  const auto refuse = [](const std::string& pointer, const Json& value,
                          const std::string& message) {
    Json json = Golden();
    json[Json::json_pointer(pointer)] = value;
    const auto loaded = Load(json);
    ASSERT_FALSE(loaded.ok()) << message;
    EXPECT_EQ(ExitOf(loaded.status()), Exit::kData);
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(message));
  };
  refuse("/normalizer", {{"type", "Nmt"}}, "normalizer: type Nmt: expected Sequence");
  refuse(
      "/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}}, "normalizer: Replace");
  refuse(
      "/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "@"}}, "expected base64");
  refuse(
      "/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}}, "charsmap of 3");
  refuse("/pre_tokenizer", {{"type", "Digits"}}, "pre_tokenizer: type Digits: expected Metaspace");
  refuse("/pre_tokenizer/pretokenizers", Json::array(), "empty Sequence");
  refuse("/pre_tokenizer/pretokenizers/1/replacement", "_", "replacement _: expected U+2581");
  refuse("/pre_tokenizer/pretokenizers/1/prepend_scheme", "x", "prepend_scheme x");
  refuse("/model/unk_id", nullptr, "model: unk_id: missing");
  refuse("/model/unk_id", 15, "model: unk_id: 15");
  refuse("/model/vocab", Json::object(), "model: vocab: expected a list");
  refuse("/model/vocab/4", "a", "model: vocab[4]");
  refuse("/model/vocab/4/0", "a", "token 6: token a is a duplicate of token 4");
  refuse("/model/vocab/4/0", "", "token 4: empty");
  refuse("/model/vocab/4/1", 1e300, "model: vocab[4]: score 1e+300: expected a number from -1e12");
  refuse(
      "/post_processor/single/0/SpecialToken/id", "<x>", "special token <x>: expected its one id");
}

// The text and sources that `steps` give: "fi 0-3 0-3".
std::string Apply(
    const std::vector<std::shared_ptr<const TextStep>>& steps, const std::string& text) {
  NormalText tracked, plain;
  tracked.Set(text, true), plain.Set(text, false);
  for (const auto& step : steps) step->Apply(&tracked), step->Apply(&plain);
  EXPECT_EQ(tracked.text, plain.text);
  EXPECT_EQ(tracked.text.size(), tracked.source.size());
  std::string result = tracked.text;
  for (size_t at = 0; at < tracked.text.size(); at += CodePointAt(tracked.text, at).size)
    absl::StrAppend(&result, " ", tracked.source[at].begin, "-", tracked.source[at].end);
  return result;
}

TEST(TextSteps, FollowHuggingFace) {
  EXPECT_EQ(Apply({MakeLowercase()}, "AİB"), "ai\u0307b 0-1 1-3 1-3 3-4");
  EXPECT_EQ(Apply({MakeStrip(true, true)}, " \ta b\u3000"), "a b 2-3 3-4 4-5");
  EXPECT_EQ(Apply({MakeStrip(true, false)}, "  a "), "a  2-3 3-4");
  EXPECT_EQ(Apply({MakeStrip(true, true)}, " \n"), "");
  EXPECT_EQ(Apply({MakeDrop(IsCombining)}, "e\u0301\u0903a"), "ea 0-1 6-7");
  EXPECT_EQ(Apply({MakeReplace("``", "\"")}, "a``b"), "a\"b 0-1 2-3 3-4");
  EXPECT_EQ(Apply({MakeReplaceRuns(false, " ")}, "a   b \n\n"), "a b \n\n 0-1 3-4 4-5 5-6 6-7 7-8");
  EXPECT_EQ(Apply({MakeReplaceRuns(true, " ")}, "é\u00a0 b \tc\nd"),
      "é b c d 0-2 4-5 5-6 7-8 8-9 9-10 10-11");
  EXPECT_EQ(Apply({MakeNormalForm(NormalForm::kNfc)}, "ae\u0301b"), "aéb 0-1 1-2 4-5");
  EXPECT_EQ(Apply({MakeNormalForm(NormalForm::kNfd)}, "é"), "e\u0301 0-2 0-2");
  EXPECT_EQ(Apply({MakeNormalForm(NormalForm::kNfkd)}, "ﬁx"), "fix 0-3 0-3 3-4");
  EXPECT_EQ(Apply({MakeNormalForm(NormalForm::kNfkc)}, "①Ⅳ"), "1IV 0-3 3-6 3-6");
  EXPECT_EQ(Apply({MakeNormalForm(NormalForm::kNfc)}, "\u1112\u1161\u11ab"), "한 0-3");
  // Canonical order: the dot below (220) goes before the acute accent (230).
  EXPECT_EQ(
      Apply({MakeNormalForm(NormalForm::kNfd)}, "a\u0301\u0323"), "a\u0323\u0301 0-1 1-3 3-5");
  EXPECT_EQ(Apply({},
                "a\xFF"
                "b"),
      "a\uFFFDb 0-1 1-2 2-3");
}

TEST(TextSteps, CharsmapFollowsSentencePiece) {
  const auto made = MakeCharsmap(CharsmapBytes());
  ASSERT_TRUE(made.ok()) << made.status();
  const auto apply = [&](const std::string& text) { return Apply({*made}, text); };
  EXPECT_EQ(apply("ﬁx"), "fix 0-3 0-3 3-4");
  EXPECT_EQ(apply("ABCD"), "abcD 0-1 1-2 2-3 3-4");
  EXPECT_EQ(apply("\uFF21\u0308"), "A 0-3");                            // the mark is lost
  EXPECT_EQ(apply("\uFF21\u0308\u0308"), "A\u0308\u0308 0-3 3-5 5-7");  // over 5 bytes
  EXPECT_EQ(apply("A\u030A\u0301"), "a 0-1");
  EXPECT_EQ(apply("\r\nx"), "\r x 0-1 1-2 2-3");
  EXPECT_EQ(apply("…½"), "...1⁄2 0-3 0-3 0-3 3-5 3-5 3-5");
  EXPECT_EQ(apply("a\u0001b"), "ab 0-1 2-3");
  EXPECT_EQ(apply(std::string("\0A", 2)), std::string("\0a 0-1 1-2", 10));
}

// Whatever a table holds, it is refused or gives valid UTF-8.
TEST(TextSteps, DamagedCharsmaps) {
  const std::string good = CharsmapBytes();
  EXPECT_FALSE(MakeCharsmap("").ok());
  EXPECT_FALSE(MakeCharsmap(std::string(7, '\0')).ok());
  EXPECT_FALSE(MakeCharsmap(good.substr(0, good.size() - 1)).ok());
  EXPECT_FALSE(MakeCharsmap(good + "\xFF" + std::string(1, '\0')).ok());
  uint32_t random = 1;
  int used = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (int changes = 0; changes < 8; ++changes) {
      random = random * 1664525 + 1013904223;
      bad[4 + (random >> 8) % (bad.size() - 4)] = static_cast<char>(random >> 24);
    }
    const auto made = MakeCharsmap(bad);
    if (!made.ok()) continue;
    ++used;
    NormalText text;
    text.Set("ﬁ ＡＢ Å½ … \u0001 é ABC ㄱ", true);
    (*made)->Apply(&text);
    ASSERT_TRUE(IsUtf8(text.text));
    ASSERT_EQ(text.text.size(), text.source.size());
  }
  EXPECT_GT(used, 100);
}

}  // namespace
}  // namespace cloze
