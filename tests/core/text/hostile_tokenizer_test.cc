// tokenizer.json files with Unigram models that nobody wrote in good faith.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::HasSubstr;

// A model of few pieces: `normalizer` is JSON, `piece` a piece with its score, "\"a\", -4".
std::string ModelText(const std::string& normalizer, const std::string& piece) {
  return absl::StrCat(R"({"normalizer": )", normalizer, R"(, "pre_tokenizer": {"type": "Metaspace",
      "replacement": "▁", "prepend_scheme": "always"}, "post_processor": {"type": "BertProcessing",
      "cls": ["<s>", 0], "sep": ["</s>", 2]}, "model": {"type": "Unigram", "unk_id": 3, "vocab": [
      ["<s>", 0], ["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["▁", -3], [)",
      piece, "]]}}");
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadText(const std::string& json) {
  const TestFolder folder;
  const std::string path = JoinPath(folder.path(), "hostile.json");
  EXPECT_TRUE(WriteFileAtomically(path, json).ok());
  return LoadTokenizer(path, true);
}

TEST(HostileTokenizer, ScoresThatAreNoNumbers) {
  ASSERT_TRUE(LoadText(ModelText("null", "\"a\", -4")).ok());
  for (const char* score : {"NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e13", "null",
           "\"nan\"", "[]", "true"}) {
    const auto loaded = LoadText(ModelText("null", absl::StrCat("\"a\", ", score)));
    EXPECT_EQ(ExitOf(loaded.status()), Exit::kData) << score << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("hostile.json")) << score;
  }
}

TEST(HostileTokenizer, IdsOfAnotherVocabulary) {
  const std::string good = ModelText("null", "\"a\", -4");
  for (const char* id : {"1", "4", "99", "-1", "\"0\"", "null"}) {
    const auto loaded = LoadText(absl::StrReplaceAll(
        good, {{R"(["<s>", 0], "sep")", absl::StrCat(R"(["<s>", )", id, R"(], "sep")")}}));
    EXPECT_EQ(ExitOf(loaded.status()), Exit::kData) << id;
    EXPECT_THAT(std::string(loaded.status().message()),
        HasSubstr("post_processor: special token <s>: expected its one id"));
  }
}

TEST(HostileTokenizer, NormalizersThatAreNoList) {
  const auto loaded =
      LoadText(ModelText(R"({"type": "Sequence", "normalizers": "Lowercase"})", "\"a\", -4"));
  EXPECT_THAT(std::string(loaded.status().message()),
      HasSubstr("normalizer: normalizers: expected a list"));
}

TEST(HostileTokenizer, TemplatesOfWrongTypes) {
  const auto load = [](const std::string& token, const std::string& special_tokens) {
    const std::string item =
        absl::StrCat(R"({"SpecialToken": {"id": ")", token, R"(", "type_id": 0}})");
    return LoadText(absl::StrReplaceAll(ModelText("null", "\"/~\", -4"),
        {{R"("post_processor": {"type": "BertProcessing",
      "cls": ["<s>", 0], "sep": ["</s>", 2]})",
            absl::StrCat(R"("post_processor": {"type": "TemplateProcessing", "single": [)", item,
                R"(, {"Sequence": {"id": "A", "type_id": 0}}, )", item, R"(], "pair": [)", item,
                R"(, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": )",
                "1}}, ", item, R"(], "special_tokens": )", special_tokens, "}")}}));
  };
  for (const char* special_tokens : {"{\"<s>\": {\"ids\": 0}}", "{\"<s>\": {\"ids\": {\"a\": 0}}}",
           "{\"<s>\": {\"ids\": [[0]]}}", "{\"<s>\": [0]}", "[0]", "7"}) {
    const auto loaded = load("<s>", special_tokens);
    EXPECT_EQ(ExitOf(loaded.status()), Exit::kData) << special_tokens << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("post_processor"));
  }
  EXPECT_EQ(ExitOf(load("99999999999999999999999999", "[0]").status()), Exit::kData);
  EXPECT_EQ(load("<s>", "{\"<s>\": {\"ids\": [0]}}").status(), absl::OkStatus());
  EXPECT_EQ(load("/~", "{\"/~\": {\"ids\": [5]}}").status(), absl::OkStatus());
}

TEST(HostileTokenizer, PiecesThatAreNotUtf8) {
  for (const char* piece : {"\xFF", "a\xC3", "\xED\xA0\x80", "\\ud800", "\\udc00x", "\\n",
           "\\u0085", "\xF4\x90\x80\x80", "\xC0\x80"}) {
    const auto loaded = LoadText(ModelText("null", absl::StrCat("\"", piece, "\", -4")));
    if (loaded.ok()) {
      EXPECT_TRUE(IsUtf8((*loaded)->token(5))) << piece;
    } else {
      EXPECT_EQ(ExitOf(loaded.status()), Exit::kData) << piece;
    }
  }
  EXPECT_FALSE(LoadText(ModelText("null", "\"\xFF\", -4")).ok());
  EXPECT_FALSE(LoadText(ModelText("null", "\"\\ud800\", -4")).ok());
  EXPECT_FALSE(LoadText(ModelText("null", "\"\\n\", -4")).ok());
}

// A charsmap whose array maps "A" to the replacement at `value` of the pool; the root's unit is
// `root` unless that is 0.
std::string CharsmapNormalizer(uint32_t value, uint32_t root, const std::string& pool) {
  constexpr uint32_t kLeaf = 1 << 8, kValue = 1u << 31;
  std::vector<uint32_t> units(256, 0);
  units[0] = root != 0 ? root : 1 << 10;
  units[1 ^ 'A'] = 'A' | kLeaf | 2 << 10;
  units[1 ^ 'A' ^ 2] = value | kValue;
  const uint32_t bytes = units.size() * sizeof(uint32_t);
  std::string table(sizeof(bytes) + bytes, '\0');
  std::memcpy(table.data(), &bytes, sizeof(bytes));
  std::memcpy(table.data() + sizeof(bytes), units.data(), bytes);
  return absl::StrCat(R"({"type": "Precompiled", "precompiled_charsmap": ")",
      absl::Base64Escape(table + pool), "\"}");
}

TEST(HostileTokenizer, ArraysThatPointOutside) {
  const std::string pool("b\0c\0", 4);
  const auto ids = [&](uint32_t value, uint32_t root) {
    const auto loaded = LoadText(ModelText(CharsmapNormalizer(value, root, pool), "\"b\", -4"));
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? (*loaded)->Encode("A", false).ids : std::vector<int32_t>();
  };
  EXPECT_EQ(ids(0, 0), (std::vector<int32_t>{4, 5}));  // sound: A becomes b
  EXPECT_EQ(ids(2, 0), (std::vector<int32_t>{4, 3}));  // c, which is unknown
  for (const uint32_t outside : {4u, 1000u, 0x7FFFFFFFu})
    EXPECT_EQ(ids(outside, 0), (std::vector<int32_t>{4, 3})) << outside;
  // Offsets far behind the array, with and without the bit that shifts them by eight.
  for (const uint32_t root : {0x7FFFFC00u, 0xFFFFFE00u, 0x3FFu << 10, 0xFFFFFFFFu})
    EXPECT_EQ(ids(0, root), (std::vector<int32_t>{4, 3})) << root;
  EXPECT_FALSE(LoadText(ModelText(CharsmapNormalizer(0, 0, "b"), "\"b\", -4")).ok());
  EXPECT_FALSE(LoadText(ModelText(CharsmapNormalizer(0, 0, ""), "\"b\", -4")).ok());
  EXPECT_FALSE(
      LoadText(ModelText(CharsmapNormalizer(0, 0, std::string("\xFF\0", 2)), "\"b\", -4")).ok());
}

// Half of them are found after the text is normalized. All start alike.
TEST(HostileTokenizer, ManyAddedTokens) {
  constexpr int kCount = 200'000;
  TokenizerData data = *NewUnigram({{"▁", -2}, {"t", -3}}, {});
  const auto first = static_cast<int32_t>(data.tokens.size());
  for (int32_t i = 0; i < kCount; ++i) {
    data.tokens.push_back(absl::StrCat("ttt", i));
    data.added.push_back(first + i);
    if (i % 2 == 1) data.normalized.push_back(first + i);
  }
  const auto tokenizer = Tokenizer::Create(std::move(data));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("ttt199998", false).ids, (std::vector<int32_t>{first + 199998}));
  EXPECT_EQ((*tokenizer)->Encode("ttt199999", false).ids, (std::vector<int32_t>{first + 199999}));
  const std::string run(100'000, 't');
  EXPECT_EQ((*tokenizer)->Encode(run, false).ids.size(), run.size() + 1);
}

}  // namespace
}  // namespace cloze
