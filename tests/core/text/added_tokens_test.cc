// Added tokens with their flags, and settings of tokenizer files, with what tokenizers 0.23.1 and
// transformers 5 give for them; and what no table knows, which is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
using FileList = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadFiles(const FileList& files) {
  const TestFolder folder;
  for (const auto& [name, text] : files)
    EXPECT_TRUE(WriteFileAtomically(JoinPath(folder.path(), name), text).ok());
  return LoadTokenizer(folder.path(), true);
}

// Tokens of a text, with those around it: "<s> a </s>"; or the error.
std::string TokensOf(const FileList& files, const std::string& text) {
  const auto tokenizer = LoadFiles(files);
  if (!tokenizer.ok()) return std::string(tokenizer.status().message());
  const Encoding encoding = (*tokenizer)->Encode(text);
  std::vector<int32_t> ids;
  (*tokenizer)->AppendIds(text, &ids);
  const std::vector<int32_t> whole = (*tokenizer)->Encode(text, false).ids;
  EXPECT_EQ(ids, whole) << text;
  return absl::StrJoin(encoding.ids, " ",
      [&](std::string* out, int32_t id) { absl::StrAppend(out, (*tokenizer)->token(id)); });
}
std::string TokensOf(const Json& json, const std::string& text) {
  return TokensOf(FileList{{"tokenizer.json", json.dump()}}, text);
}

Json AddedJson(int id, const std::string& content, const std::string& flag = "") {
  Json token = {{"id", id}, {"content", content}, {"single_word", false}, {"lstrip", false},
      {"rstrip", false}, {"normalized", false}, {"special", false}};
  if (!flag.empty()) token[flag] = true;
  return token;
}

// A byte-level BPE without special tokens around texts.
Json BpeJson(const Json& added = Json::array()) {
  Json vocab;
  const std::vector<std::string> tokens = {
      "<s>", "<pad>", "</s>", "<unk>", "a", "b", "c", "d", "Ġ", "ab"};
  for (size_t id = 0; id < tokens.size(); ++id) vocab[tokens[id]] = id;
  const Json level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false},
      {"use_regex", true}};
  return {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr},
      {"added_tokens", added}, {"normalizer", nullptr}, {"pre_tokenizer", level},
      {"post_processor", level}, {"decoder", level},
      {"model", {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr},
                    {"continuing_subword_prefix", ""}, {"end_of_word_suffix", ""},
                    {"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", false},
                    {"vocab", vocab}, {"merges", Json::array({Json::array({"a", "b"})})}}}};
}

// A Unigram that cuts words before blanks; <s> A </s>.
Json UnigramJson(const Json& normalizer, const std::string& scheme) {
  const auto item = [](const char* kind, const char* id) {
    return Json{{kind, {{"id", id}, {"type_id", 0}}}};
  };
  const Json single = {
      item("SpecialToken", "<s>"), item("Sequence", "A"), item("SpecialToken", "</s>")};
  const Json pair = {item("SpecialToken", "<s>"), item("Sequence", "A"),
      item("SpecialToken", "</s>"), item("Sequence", "B")};
  Json specials;
  specials["<s>"] = {{"id", "<s>"}, {"ids", Json::array({0})}};
  specials["</s>"] = {{"id", "</s>"}, {"ids", Json::array({2})}};
  const Json metaspace = {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", true}};
  Json vocab = Json::array();
  for (const char* piece : {"<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b", "a", "b", "▁", "(", ")"})
    vocab.push_back({piece, -1.0});
  return {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr},
      {"added_tokens", Json::array({AddedJson(0, "<s>"), AddedJson(2, "</s>")})},
      {"normalizer", normalizer}, {"pre_tokenizer", metaspace},
      {"post_processor", {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair},
                             {"special_tokens", specials}}},
      {"decoder", metaspace},
      {"model", {{"type", "Unigram"}, {"unk_id", 3}, {"vocab", vocab}, {"byte_fallback", false}}}};
}

constexpr char kWordVocab[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##a\n##r\ns\n##c\n##p\n##e\n##t\n";
FileList BertFiles(const Json& config) {
  return {{"vocab.txt", kWordVocab}, {"tokenizer_config.json", config.dump()}};
}
FileList GptFiles(const Json& config, const std::string& special = "<|endoftext|>") {
  Json vocab = {{special, 0}, {"a", 1}, {"b", 2}, {"Ġ", 3}, {"ab", 4}, {"<mask>", 5}};
  if (special == "<s>") vocab["</s>"] = 6, vocab["<unk>"] = 7;
  return {{"vocab.json", vocab.dump()}, {"merges.txt", "#version: 0.2\na b\n"},
      {"tokenizer_config.json", config.dump()}};
}

TEST(AddedTokens, SingleWords) {
  const Json decoder = {{"15", AddedJson(15, "car", "single_word")}};
  EXPECT_EQ(TokensOf(BertFiles({{"added_tokens_decoder", decoder}}), "carpet car scar, car_ (car)"),
      "[CLS] c ##a ##r ##p ##e ##t car s ##c ##a ##r [UNK] c ##a ##r [UNK] [UNK] car [UNK] [SEP]");
}

TEST(AddedTokens, SingleWordsKnowTheCharactersOfWords) {
  Json json = BpeJson(Json::array({AddedJson(10, "<x>", "single_word"), AddedJson(11, "<y>")}));
  // Letter, mark, digit, connector, joiner; then other characters and another token.
  for (const std::string before : {"a", "é", "\u0301", "7", "_", "\u200D", "\u0661"}) {
    EXPECT_THAT(TokensOf(json, before + "<x>"), Not(HasSubstr("<x>"))) << before;
    EXPECT_THAT(TokensOf(json, "<x>" + before), Not(HasSubstr("<x>"))) << before;
  }
  for (const std::string before : {"", " ", "-", "²", "€", "\xFF", "<y>", "<x>"}) {
    EXPECT_THAT(TokensOf(json, before + "<x>"), HasSubstr("<x>")) << before;
    EXPECT_THAT(TokensOf(json, "<x>" + before), HasSubstr("<x>")) << before;
  }
}

TEST(AddedTokens, NormalizedOnesAreFoundInWhatTheOthersLeave) {
  Json ent = AddedJson(10, "<ent>", "special"), plural = AddedJson(11, "<ent>s", "normalized");
  EXPECT_EQ(TokensOf(BpeJson(Json::array({ent, plural})), "d<ent>s <ent>"), "d <ent> Ġ <ent>");
  plural["normalized"] = false;
  EXPECT_EQ(TokensOf(BpeJson(Json::array({ent, plural})), "d<ent>s <ent>"), "d <ent>s Ġ <ent>");
}

TEST(AddedTokens, StripsThatMeet) {
  Json blanks = AddedJson(11, "  ", "lstrip");
  const Json x = AddedJson(10, "<x>", "rstrip");
  EXPECT_EQ(TokensOf(BpeJson(Json::array({x, blanks})), "<x>  <x>"), "<x> <x>");
  EXPECT_EQ(TokensOf(BpeJson(Json::array({x, blanks})), "a  <x>  a"), "a    <x> a");
  blanks["lstrip"] = false;
  EXPECT_EQ(TokensOf(BpeJson(Json::array({x, blanks})), "<x>   <x>"), "<x>    Ġ <x>");
}

TEST(TokenizerSettings, FusedUnknownBytes) {
  Json json = BpeJson();
  json["model"]["unk_token"] = "<unk>";
  EXPECT_EQ(TokensOf(json, "a\u00E9b"), "a <unk> <unk> b");
  json["model"]["fuse_unk"] = true;
  EXPECT_EQ(TokensOf(json, "a\u00E9b"), "a <unk> b");
  EXPECT_EQ(TokensOf(json, "a\u00E9\u00E9 \u00E9b"), "a <unk> Ġ <unk> b");
  EXPECT_EQ(TokensOf(json, "xxayy"), "<unk> a <unk>");
  json["model"]["unk_token"] = nullptr;
  EXPECT_EQ(TokensOf(json, "a\u00E9c"), "a c");
}

TEST(TokenizerSettings, ThePrefixOfTheFirstWordIsThatOfTheRawText) {
  const Json strip = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  EXPECT_EQ(TokensOf(UnigramJson(strip, "first"), " a b"), "<s> a ▁b </s>");
  EXPECT_EQ(TokensOf(UnigramJson(strip, "first"), "a b"), "<s> ▁a ▁b </s>");
  EXPECT_EQ(TokensOf(UnigramJson(strip, "always"), " a b"), "<s> ▁a ▁b </s>");
  EXPECT_EQ(TokensOf(UnigramJson(nullptr, "first"), "a</s>a"), "<s> ▁a </s> a </s>");
  const auto words = [](const std::string& scheme) {
    const auto tokenizer = LoadFiles({{"tokenizer.json", UnigramJson(nullptr, scheme).dump()}});
    std::string text;
    for (const int32_t id : (*tokenizer)->EncodeWords({"a", "b</s>b"}, false).ids)
      absl::StrAppend(&text, (*tokenizer)->token(id), " ");
    return text;
  };
  EXPECT_EQ(words("first"), "▁a ▁b </s> b ");
  EXPECT_EQ(words("always"), "▁a ▁b </s> ▁b ");
  EXPECT_EQ(words("never"), "a b </s> b ");
}

TEST(TokenizerSettings, MarksAreThoseOfTheReference) {
  const Json steps = {{"type", "Sequence"},
      {"normalizers", Json::array({{{"type", "NFKD"}}, {{"type", "StripAccents"}}})}};
  const Json json = UnigramJson(steps, "always");
  EXPECT_EQ(TokensOf(json, "a\u0301b"), "<s> ▁a b </s>");
  EXPECT_EQ(TokensOf(json, "a\u0EBAb"), "<s> ▁a <unk> b </s>");
  EXPECT_EQ(TokensOf(json, "a\u09FEb"), "<s> ▁a <unk> b </s>");
  EXPECT_EQ(TokensOf(json, "a\u1CF2b"), "<s> ▁a b </s>") << "a mark once, a letter today";
}

TEST(TokenizerSettings, TokensAroundTextsOfGpt2) {
  const std::string gpt2 = "GPT2Tokenizer";
  EXPECT_EQ(TokensOf(GptFiles({{"tokenizer_class", gpt2}}), "ab"), "ab");
  EXPECT_EQ(TokensOf(GptFiles({{"tokenizer_class", gpt2}, {"add_bos_token", true}}), "ab"),
      "<|endoftext|> ab");
  EXPECT_EQ(TokensOf(GptFiles({{"tokenizer_class", gpt2}, {"add_eos_token", true},
                         {"add_bos_token", false}}),
                "ab"),
      "ab <|endoftext|>");
  EXPECT_EQ(TokensOf(GptFiles({{"tokenizer_class", gpt2}, {"add_bos_token", true},
                         {"bos_token", nullptr}}),
                "ab"),
      "ab");
  const auto tokenizer = LoadFiles(GptFiles({{"tokenizer_class", gpt2}, {"add_bos_token", true},
      {"add_eos_token", true}, {"bos_token", "a"}}));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->EncodePair("b", "ab").ids, (std::vector<int32_t>{1, 2, 0, 1, 4, 0}));
  const TestFolder saved;
  ASSERT_TRUE(SaveTokenizer(**tokenizer, saved.path(), 64).ok());
  const auto again = LoadTokenizer(saved.path(), true);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->EncodePair("b", "ab").ids, (std::vector<int32_t>{1, 2, 0, 1, 4, 0}));
}

TEST(TokenizerSettings, FlagsOfSpecialTokens) {
  const std::string roberta = "RobertaTokenizer", text = "a <mask> b";
  const auto with = [&](const Json& mask, const Json& decoder = nullptr) {
    return TokensOf(GptFiles({{"tokenizer_class", roberta}, {"mask_token", mask},
                                 {"added_tokens_decoder", decoder}},
                        "<s>"),
        text);
  };
  EXPECT_EQ(with("<mask>"), "<s> a <mask> Ġ b </s>") << "RobertaTokenizer's own flag";
  EXPECT_EQ(with({{"content", "<mask>"}, {"lstrip", false}}), "<s> a Ġ <mask> Ġ b </s>");
  EXPECT_EQ(with({{"content", "<mask>"}, {"rstrip", true}}), "<s> a Ġ <mask> b </s>");
  EXPECT_EQ(with("<mask>", {{"5", AddedJson(5, "<mask>", "rstrip")}}), "<s> a Ġ <mask> b </s>");
  const Json single = AddedJson(4, "[MASK]", "single_word");
  EXPECT_EQ(TokensOf(BertFiles({{"mask_token", single}}), "a [MASK] a"), "[CLS] a [MASK] a [SEP]");
  EXPECT_EQ(
      TokensOf(BertFiles({{"mask_token", single}}), "a[MASK]"), "[CLS] a [UNK] [UNK] [UNK] [SEP]");
  FileList files = BertFiles(Json::object());
  files.push_back({"special_tokens_map.json",
      Json{{"additional_special_tokens", {AddedJson(7, "car", "single_word"), "zz"}}}.dump()});
  EXPECT_EQ(TokensOf(files, "scar car azza"), "[CLS] s ##c ##a ##r car a zz a [SEP]");
}

TEST(TokenizerSettings, TheSideOfTruncation) {
  const auto side = [](const FileList& files) {
    const auto tokenizer = LoadFiles(files);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    const TestFolder saved;
    EXPECT_TRUE(SaveTokenizer(**tokenizer, saved.path(), 64).ok());
    EXPECT_EQ((*LoadTokenizer(saved.path(), true))->usual_keep(), (*tokenizer)->usual_keep());
    return (*tokenizer)->usual_keep();
  };
  EXPECT_EQ(side(BertFiles(Json::object())), Keep::kHead);
  EXPECT_EQ(side(BertFiles({{"truncation_side", "left"}})), Keep::kTail);
  EXPECT_EQ(side(BertFiles({{"truncation_side", "right"}})), Keep::kHead);
  Json json = BpeJson();
  json["truncation"] = {
      {"direction", "Left"}, {"max_length", 4}, {"strategy", "LongestFirst"}, {"stride", 0}};
  const std::string text = json.dump(), right = R"({"truncation_side": "right"})";
  EXPECT_EQ(side({{"tokenizer.json", text}}), Keep::kTail);
  EXPECT_EQ(side({{"tokenizer.json", text}, {"tokenizer_config.json", right}}), Keep::kHead);
  EXPECT_FALSE((*LoadFiles(BertFiles({{"truncation_side", "left"}})))
                   ->SameIds(**LoadFiles(BertFiles(Json::object()))));
}

// Changes the value at `pointer` of a sound tokenizer.json.
std::string TokensWith(Json json, const std::string& pointer, const Json& value) {
  json[Json::json_pointer(pointer)] = value;
  return TokensOf(json, "a");
}

TEST(TokenizerTables, TokenizerJsonIsStrict) {
  EXPECT_EQ(TokensOf(BpeJson(Json::array({AddedJson(10, "<x>")})), "a"), "a");
  for (const std::string at : {"", "/normalizer", "/pre_tokenizer", "/post_processor", "/decoder",
           "/model", "/added_tokens/0", "/truncation", "/padding"}) {
    Json json = BpeJson(Json::array({AddedJson(10, "<x>")}));
    json["normalizer"] = {{"type", "NFC"}};
    json["truncation"] = {{"direction", "Right"}};
    json["padding"] = {{"direction", "Right"}};
    EXPECT_THAT(TokensWith(json, at + "/novel", nullptr), HasSubstr("novel: unknown member")) << at;
  }
  for (const std::string at : {"/post_processor", "/post_processor/single/0",
           "/post_processor/single/0/SpecialToken", "/pre_tokenizer", "/decoder", "/model"}) {
    EXPECT_THAT(TokensWith(UnigramJson(nullptr, "first"), at + "/novel", 1),
        HasSubstr("novel: unknown member"))
        << at;
  }
  for (const Json& step : {Json{{"type", "Lowercase"}}, Json{{"type", "Strip"}},
           Json{{"type", "Replace"}, {"pattern", {{"String", "x"}}}, {"content", ""}},
           Json{{"type", "Precompiled"}, {"precompiled_charsmap", ""}},
           Json{{"type", "Sequence"}, {"normalizers", Json::array()}}}) {
    EXPECT_EQ(TokensOf(UnigramJson(step, "first"), "a"), "<s> ▁a </s>");
    EXPECT_THAT(TokensWith(UnigramJson(step, "first"), "/normalizer/novel", 1),
        HasSubstr("novel: unknown"));
  }
}

TEST(TokenizerTables, ValuesHaveTheirTypes) {
  EXPECT_THAT(TokensWith(BpeJson(), "/model/fuse_unk", "yes"),
      HasSubstr("fuse_unk: expected true or false"));
  EXPECT_THAT(TokensWith(BpeJson(), "/version", "2.0"), HasSubstr("version: is \"2.0\""));
  EXPECT_THAT(
      TokensWith(BpeJson(), "/pre_tokenizer/add_prefix_space", 1), HasSubstr("add_prefix_space"));
  EXPECT_THAT(TokensWith(BpeJson(Json::array({AddedJson(10, "<x>")})), "/added_tokens/0/lstrip", 1),
      HasSubstr("lstrip"));
  EXPECT_THAT(
      TokensWith(BpeJson(), "/decoder", {{"type", "BPEDecoder"}}), HasSubstr("decoder: type BPED"));
  EXPECT_THAT(
      TokensWith(UnigramJson(nullptr, "first"), "/model/fuse_unk", false), HasSubstr("fuse_unk"));
  EXPECT_THAT(TokensWith(UnigramJson(nullptr, "first"), "/pre_tokenizer/add_prefix_space", false),
      HasSubstr("contr"));
  EXPECT_EQ(
      TokensWith(UnigramJson(nullptr, "first"), "/pre_tokenizer/str_rep", "▁"), "<s> ▁a </s>");
}

TEST(TokenizerTables, OpenFilesNameWhatMayChangeResults) {
  const Json harmless = {{"auto_map", {{"x", "y"}}}, {"chat_template", "x"},
      {"padding_side", "left"}, {"name_or_path", "x"}, {"do_basic_tokenize", true},
      {"never_split", nullptr}, {"clean_up_tokenization_spaces", true},
      {"sp_model_kwargs", Json::object()}, {"split_by_punct", false}, {"vocab_type", "spm"},
      {"max_len", 512}, {"clean_text", true}, {"from_slow", true}, {"wordpieces_prefix", "##"},
      {"_own", 1}, {"stride", 0}, {"truncation_strategy", "longest_first"},
      {"extra_special_tokens", {}}};
  EXPECT_EQ(TokensOf(BertFiles(harmless), "a"), "[CLS] a [SEP]");
  const Json harmful = {{"split_special_tokens", true}, {"never_split", {"a"}},
      {"split_by_punct", true}, {"novel", 0}, {"sp_model_kwargs", {{"alpha", 0.1}}}};
  for (const auto& [name, value] : harmful.items()) {
    EXPECT_THAT(TokensOf(BertFiles({{name, value}}), "a"),
        testing::AllOf(HasSubstr("tokenizer_config.json: " + name + ": unknown member"),
            HasSubstr("remove it")));
  }
  EXPECT_THAT(
      TokensOf(BertFiles({{"truncation_side", "both"}}), "a"), HasSubstr("truncation_side"));
  EXPECT_THAT(TokensOf(BertFiles({{"clean_text", false}}), "a"), HasSubstr("clean_text"));
  EXPECT_THAT(TokensOf(BertFiles({{"do_lower_case", "false"}}), "a"), HasSubstr("do_lower_case"));
  EXPECT_THAT(TokensOf(BertFiles({{"mask_token", {{"content", "[MASK]"}, {"x", 1}}}}), "a"),
      HasSubstr("mask_token: x: unknown member"));
  FileList files = BertFiles(Json::object());
  files.push_back({"special_tokens_map.json", R"({"novel": "x"})"});
  EXPECT_THAT(TokensOf(files, "a"), HasSubstr("special_tokens_map.json: novel: unknown member"));
}

}  // namespace
}  // namespace cloze
