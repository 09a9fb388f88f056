// Spans and ids of tokenizer.json files with unusual settings, as tokenizers 0.23.1 gives them, and
// settings with which it gives other ids than the file says, which are refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json RuleToken(int id, const std::string& content, const std::vector<const char*>& flags = {}) {
  Json token = {{"id", id}, {"content", content}, {"single_word", false}, {"lstrip", false},
      {"rstrip", false}, {"normalized", false}, {"special", false}};
  for (const char* flag : flags) token[flag] = true;
  return token;
}

Json RuleTrim(bool trims, bool keeps_first) {
  return {{"type", "RobertaProcessing"}, {"sep", {"</s>", 1}}, {"cls", {"<s>", 0}},
      {"trim_offsets", trims}, {"add_prefix_space", keeps_first}};
}

Json RuleFile(const Json& model, const Json& pre_tokenizer, const Json& normalizer) {
  return {{"version", "1.0"}, {"added_tokens", Json::array()}, {"normalizer", normalizer},
      {"pre_tokenizer", pre_tokenizer}, {"post_processor", RuleTrim(true, false)},
      {"decoder", nullptr}, {"model", model}};
}

// Tokens <s> </s> <unk> a b c, then `more`.
Json RuleVocab(const std::vector<std::string>& more = {}) {
  Json vocab = {{"<s>", 0}, {"</s>", 1}, {"<unk>", 2}, {"a", 3}, {"b", 4}, {"c", 5}};
  for (const std::string& token : more) vocab[token] = vocab.size();
  return vocab;
}

Json WordPieceFile() {
  return RuleFile(
      {{"type", "WordPiece"}, {"unk_token", "<unk>"}, {"continuing_subword_prefix", "##"},
          {"max_input_chars_per_word", 100}, {"vocab", RuleVocab()}},
      {{"type", "BertPreTokenizer"}},
      {{"type", "BertNormalizer"}, {"clean_text", true}, {"handle_chinese_chars", true},
          {"strip_accents", nullptr}, {"lowercase", true}});
}

Json ByteBpeFile(bool prefix) {
  return RuleFile({{"type", "BPE"}, {"unk_token", "<unk>"}, {"vocab", RuleVocab({"\xC4\xA0"})},
                      {"merges", Json::array()}},
      {{"type", "ByteLevel"}, {"add_prefix_space", prefix}, {"trim_offsets", true}}, nullptr);
}

Json UnigramFile(const char* scheme) {
  Json vocab = Json::array();
  for (const char* token : {"<s>", "</s>", "<unk>", "a", "b", "c", "\xE2\x96\x81"})
    vocab.push_back({token, vocab.size() < 3 ? 0.0 : -1.0});
  return RuleFile({{"type", "Unigram"}, {"unk_id", 2}, {"vocab", vocab}},
      {{"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}, {"prepend_scheme", scheme},
          {"split", true}},
      nullptr);
}

// Tokens with their spans, "a 0-1 b 1-2"; or the error.
std::string RuleSpans(const Json& json, const std::string& text) {
  const TestFolder folder;
  const std::string path = JoinPath(folder.path(), "tokenizer.json");
  EXPECT_TRUE(WriteFileAtomically(path, json.dump()).ok());
  const auto tokenizer = LoadTokenizer(path, true);
  if (!tokenizer.ok()) return std::string(tokenizer.status().message());
  const Encoding e = (*tokenizer)->Encode(text, false);
  std::vector<int32_t> ids;
  (*tokenizer)->AppendIds(text, &ids);
  EXPECT_EQ(ids, e.ids) << text;
  std::vector<std::string> all;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [begin, end] = e.chars[i];
    all.push_back(absl::StrCat((*tokenizer)->token(ids[i]), " ", begin, "-", end));
    const absl::string_view before(text.data(), e.bytes[i].begin),
        whole(text.data(), e.bytes[i].end);
    EXPECT_EQ(CountCodePoints(before), begin) << text;
    EXPECT_EQ(CountCodePoints(whole), end) << text;
  }
  return absl::StrJoin(all, " ");
}

TEST(ReferenceRules, SpacesOfAddedTokensAreTrimmedInEveryKind) {
  for (Json json : {WordPieceFile(), ByteBpeFile(false), UnigramFile("never")}) {
    json["added_tokens"] = Json::array({RuleToken(0, "<s>", {"lstrip", "rstrip"})});
    // U+2009 has three bytes.
    EXPECT_EQ(RuleSpans(json,
                  "a\xE2\x80\x89 <s>\xE2\x80\x89"
                  "b"),
        "a 0-1 <s> 3-6 b 7-8");
    json["post_processor"] = RuleTrim(false, false);
    EXPECT_EQ(RuleSpans(json,
                  "a\xE2\x80\x89 <s>\xE2\x80\x89"
                  "b"),
        "a 0-1 <s> 1-7 b 7-8");
  }
}

TEST(ReferenceRules, AnAddedTokenKeepsOneSpaceAtTheStart) {
  Json json = WordPieceFile();
  json["added_tokens"] = Json::array({RuleToken(0, "<s>", {"lstrip"})});
  json["post_processor"] = RuleTrim(true, true);
  EXPECT_EQ(RuleSpans(json, " <s>a"), "<s> 0-4 a 4-5");
  EXPECT_EQ(RuleSpans(json, "  <s>a"), "<s> 2-5 a 5-6");
  EXPECT_EQ(RuleSpans(json, "a <s>"), "a 0-1 <s> 2-5");
}

TEST(ReferenceRules, UnknownSpacesOfUnigramAreTrimmed) {
  EXPECT_EQ(RuleSpans(UnigramFile("never"), "a\v\xE2\x81\x9F"), "a 0-1 <unk> 3-3");
}

TEST(ReferenceRules, APrefixIsNoPartOfTheText) {
  Json json = ByteBpeFile(true);
  json["added_tokens"] = Json::array({RuleToken(0, "<s>")});
  EXPECT_EQ(RuleSpans(json, "<s>a b"), "<s> 0-3 \xC4\xA0 3-3 a 3-4 \xC4\xA0 5-5 b 5-6");
}

TEST(ReferenceRules, DroppedBytesHaveNoPlace) {
  Json json = ByteBpeFile(false);
  json["model"]["unk_token"] = nullptr;
  EXPECT_EQ(RuleSpans(json,
                "(\xC3\xA9"
                "ca b"),
      "c 1-2 a 1-2 \xC4\xA0 5-5 b 5-6");
}

TEST(ReferenceRules, AddedTokensAreNoTokensOfTheModel) {
  Json json = ByteBpeFile(false);
  json["added_tokens"] = Json::array({RuleToken(7, ".", {"single_word"})});
  EXPECT_EQ(RuleSpans(json, "a.a ."), "a 0-1 <unk> 1-2 a 2-3 \xC4\xA0 4-4 . 4-5");
  json = UnigramFile("never");
  json["model"]["byte_fallback"] = true;
  json["added_tokens"] = Json::array({RuleToken(7, "<0x41>")});
  EXPECT_EQ(RuleSpans(json, "aA"), "a 0-1 <unk> 1-2");
}

TEST(ReferenceRules, CharactersThatACharsmapDropsAtTheStartMoveTheSpans) {
  // A double array of 4 units that maps "b" to "".
  const uint32_t table[] = {16, 0x60 << 10, 0, 'b' | 1 << 8 | 1 << 10, 1u << 31};
  std::string bytes(reinterpret_cast<const char*>(table), sizeof(table));
  bytes.push_back('\0');
  Json json = UnigramFile("first");
  json["normalizer"] = {
      {"type", "Precompiled"}, {"precompiled_charsmap", absl::Base64Escape(bytes)}};
  EXPECT_EQ(RuleSpans(json, "bac"), "\xE2\x96\x81 0-1 a 0-1 c 1-2");
  EXPECT_EQ(RuleSpans(json, "abc"), "\xE2\x96\x81 0-1 a 0-1 c 2-3");
  EXPECT_EQ(RuleSpans(json, "bb"), "");
}

// NFD orders the marks of neighbours; one that is kept takes the place, not only the order.
TEST(ReferenceRules, MarksThatStripAccentsKeepChangePlaces) {
  Json json = WordPieceFile();
  Json& vocab = json["model"]["vocab"];
  for (const char* token :
      {"\U0001D157", "\U0001D165", "##\U0001D165", "\u1BF2", "##\u1BF2", "##b", "\u08DE"})
    vocab[token] = vocab.size();
  const std::pair<const char*, const char*> cases[] = {
      {"\U0001D15E\u0301", "\U0001D157 0-1 ##\U0001D165 0-1"},
      {"\U0001D15E\u0334", "\U0001D157 0-1 ##\U0001D165 1-2"},
      {"\U0001D15E\u0334\u0334 a", "\U0001D157 0-1 ##\U0001D165 2-3 a 4-5"},
      {"\U0001D15E\u200D\u0334", "\U0001D157 0-1 ##\U0001D165 2-3"},
      {"\U0001D15E\u1BF2,\u0334a", "\U0001D157 0-1 ##\u1BF2 1-2 ##\U0001D165 1-2 <unk> 2-3 a 4-5"},
      {"\u08DE\u0323", "\u08DE 1-2"},  // a mark that the reference does not know
      {"\U0001D165\u1BF2", "\u1BF2 0-1 ##\U0001D165 1-2"},
      {"\U0001D165\u4E00\u0334", "\U0001D165 0-1 <unk> 1-2"},
      {" \u0334\U0001D165", "\U0001D165 2-3"},
      {" \U0001D165\u0334", "\U0001D165 2-3"},
      {"a\U0001D165\u0334b", "a 0-1 ##\U0001D165 2-3 ##b 3-4"},
  };
  for (const auto& [text, spans] : cases) EXPECT_EQ(RuleSpans(json, text), spans) << text;
  json["normalizer"]["strip_accents"] = false;
  EXPECT_EQ(RuleSpans(json, "\U0001D165\u1BF2"), "\U0001D165 0-1 ##\u1BF2 1-2");
}

TEST(ReferenceRules, RefusedByName) {
  Json json = WordPieceFile();
  json["added_tokens"] = Json::array({RuleToken(6, "\xCC\x81", {"normalized"})});  // a mark
  EXPECT_THAT(RuleSpans(json, "a"), HasSubstr("the normalizer leaves nothing of it"));
  for (const char* field : {"trim_offsets", "add_prefix_space"}) {
    json = WordPieceFile();
    json["post_processor"].erase(field);
    EXPECT_THAT(RuleSpans(json, "a"), HasSubstr(field));
    json["post_processor"][field] = 3;
    EXPECT_THAT(RuleSpans(json, "a"), HasSubstr(field));
  }
}

}  // namespace
}  // namespace cloze
