#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/file.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/learning/vocab_trainer.h"
#include "core/text/tokenizer/schemes.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/text/unicode/unicode.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<std::string>;

class Files : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = JoinPath(directory_, name);
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
    return path;
  }

  // Loading must fail so, with a message that holds `message`.
  void ExpectError(const std::string& path, Exit exit, const std::string& message) {
    const auto result = LoadTokenizer(path, true);
    ASSERT_FALSE(result.ok()) << message;
    EXPECT_EQ(ExitOf(result.status()), exit) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(message));
  }

  const TestFolder folder_;
  const std::string& directory_ = folder_.path();
};

constexpr char kVocab[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n##s\ncafe\n\"\n\\\n你\n";

TEST_F(Files, SaveAndLoad) {
  for (const NormalizerOptions options :
      {NormalizerOptions{}, NormalizerOptions{true, true, false, false},
          NormalizerOptions{true, false, true, false}}) {
    const Tokens tokens = {"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "hello", "##s", "\"",
        "\\", "你", "\x7F", "é"};
    auto made = Tokenizer::Create({.tokens = tokens, .scheme = BertScheme(options)});
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE(SaveTokenizer(**made, directory_, 128).ok());
    for (const bool json : {true, false}) {
      if (!json) {
        ASSERT_EQ(std::remove(JoinPath(directory_, "tokenizer.json").c_str()), 0);
      }
      auto loaded = LoadTokenizer(directory_, !options.lowercase);
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      const Tokenizer& tokenizer = **loaded;
      ASSERT_EQ(tokenizer.vocab_size(), static_cast<int32_t>(tokens.size()));
      for (size_t id = 0; id < tokens.size(); ++id) EXPECT_EQ(tokenizer.token(id), tokens[id]);
      EXPECT_EQ(SchemeOf<WordPieceScheme>(tokenizer.data()).options.lowercase, options.lowercase);
      EXPECT_EQ(
          SchemeOf<WordPieceScheme>(tokenizer.data()).options.strip_accents, options.strip_accents);
      EXPECT_EQ(
          SchemeOf<WordPieceScheme>(tokenizer.data()).options.chinese_chars, options.chinese_chars);
      EXPECT_EQ(tokenizer.special().mask, 4);
      EXPECT_EQ(tokenizer.Encode("Hellos <mask> é").ids, (*made)->Encode("Hellos <mask> é").ids);
    }
    const auto config =
        nlohmann::json::parse(*ReadFile(JoinPath(directory_, "tokenizer_config.json"), 1 << 20));
    EXPECT_EQ(config["model_max_length"], 128);
    EXPECT_EQ(config["cls_token"], "<class>");
    EXPECT_EQ(config["tokenizer_class"], "BertTokenizer");
    EXPECT_EQ(nlohmann::json::parse(*ReadFile(
                  JoinPath(directory_, "special_tokens_map.json"), 1 << 20))["mask_token"],
        "<mask>");
  }
}

TEST_F(Files, LoneVocabFollowsTheFlag) {
  const std::string path = Write("vocab.txt", kVocab);
  EXPECT_EQ((*LoadTokenizer(path, true))->Encode("CAFÉ", false).ids, std::vector<int32_t>{7});
  EXPECT_EQ((*LoadTokenizer(path, false))->Encode("CAFÉ", false).ids, std::vector<int32_t>{1});
  EXPECT_EQ(
      (*LoadTokenizer(directory_, false))->Encode("CAFÉ", false).ids, std::vector<int32_t>{1});
  Write("tokenizer_config.json", R"({"do_lower_case": true, "mask_token": {"content": "hello"}})");
  auto folder = LoadTokenizer(directory_, false);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ((*folder)->Encode("CAFÉ", false).ids, std::vector<int32_t>{7});
  EXPECT_EQ((*folder)->special().mask, 5);
}

TEST_F(Files, NamesComeFromTheSpecialTokensMapToo) {
  Write("vocab.txt", "<<pad>>\n<<unk>>\n<<cls>>\n<<sep>>\n<<mask>>\nhello\n");
  ExpectError(directory_, Exit::kData, "no unknown token");
  Write("special_tokens_map.json", R"({"unk_token": "<<unk>>", "pad_token": "<<pad>>",
      "cls_token": {"content": "<<cls>>"}, "sep_token": "<<sep>>", "mask_token": "<<mask>>"})");
  const auto tokenizer = LoadTokenizer(directory_, true);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->Encode("hello").ids, (std::vector<int32_t>{2, 5, 3}));
}

// Without a class in tokenizer_config.json, config.json tells which special tokens stand in pairs.
TEST_F(Files, PairsFollowTheFamily) {
  Write("vocab.txt", kVocab);
  EXPECT_EQ((*LoadTokenizer(directory_, true))->EncodePair("hello", "hello").ids.size(), 5);
  Write("config.json", R"({"model_type": "mpnet"})");
  EXPECT_EQ((*LoadTokenizer(directory_, true))->EncodePair("hello", "hello").ids.size(), 6);
  Write("config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  ExpectError(directory_, Exit::kData, "BertJapaneseTokenizer is not supported");
  Write("config.json", R"({"model_type": "gpt2"})");
  EXPECT_EQ((*LoadTokenizer(directory_, true))->EncodePair("hello", "hello").ids.size(), 2);
}

TEST_F(Files, VocabErrorsNameTheLine) {
  ExpectError(JoinPath(directory_, "none"), Exit::kNoInput, "none");
  ExpectError(directory_, Exit::kNoInput, "no tokenizer: expected tokenizer.json, vocab.txt");
  const std::string path = Write("vocab.txt", std::string(kVocab) + "x\nhello\n");
  ExpectError(path, Exit::kData, ":13: token hello is a duplicate of line 6");
  Write("vocab.txt", "[PAD]\n[UNK]\n\n[CLS]\n");
  ExpectError(path, Exit::kData, ":3: empty");
  Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[MASK]\na\n");
  ExpectError(path, Exit::kData, "no separator token");
  Write("vocab.txt", std::string(kVocab) + std::string(1025, 'a') + "\n");
  ExpectError(path, Exit::kData, ":12: token of 1025 bytes");
  Write("vocab.txt", std::string(kVocab) + std::string(1 << 20, 'a') + "\n");
  ExpectError(path, Exit::kData, ":12: token of");
  Write("vocab.txt", std::string(kVocab) + "a\xFF\n");
  ExpectError(path, Exit::kData, ":12: token a\\xFF is not UTF-8");
  std::string many = kVocab;
  for (int i = 0; i <= 128 << 10; ++i) many.append(1024, 'x').append("\n");
  std::ofstream(path) << many;
  ExpectError(path, Exit::kLimit, "at most 10000000 tokens of 134217728 bytes in all");
}

TEST_F(Files, Gpt2HasNothingAroundTexts) {
  Write("vocab.json", R"({"l": 0, "o": 1, "w": 2, "lo": 3, "low": 4, "<|endoftext|>": 5})");
  Write("merges.txt", "#version: 0.2\nl o\nlo w\n");
  const auto first = LoadTokenizer(directory_, true);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(MakeDirectories(directory_ + "/saved").ok());
  ASSERT_TRUE(SaveTokenizer(**first, directory_ + "/saved", 16).ok());
  const auto saved = LoadTokenizer(directory_ + "/saved", true);
  ASSERT_TRUE(saved.ok()) << saved.status();
  for (const Tokenizer* t : {first->get(), saved->get()}) {
    EXPECT_EQ(t->Encode("lowlo").ids, std::vector<int32_t>({4, 3}));
    EXPECT_EQ(t->special().cls, 5);
    EXPECT_EQ(t->special().sep, 5);
    EXPECT_EQ(t->Decode(std::vector<int32_t>{4, 5, 3}), "lowlo");
  }
}

TEST_F(Files, RefusesOtherTokenizersByName) {
  const auto made =
      Tokenizer::Create({.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"}});
  ASSERT_TRUE(SaveTokenizer(**made, directory_, 8).ok());
  const std::string path = JoinPath(directory_, "tokenizer.json");
  const auto good = nlohmann::json::parse(*ReadFile(path, 1 << 20));
  const auto expect = [&](const std::string& pointer, const nlohmann::json& value,
                          const std::string& message) {
    auto json = good;
    json[nlohmann::json::json_pointer(pointer)] = value;
    ExpectError(Write("tokenizer.json", json.dump()), Exit::kData, message);
  };
  expect("/model/type", "BPE", "normalizer: type BertNormalizer: expected Sequence");
  expect("/normalizer/type", "NFC", "normalizer: type NFC");
  expect("/normalizer", nullptr, "normalizer: type missing");
  expect("/pre_tokenizer/type", "ByteLevel", "pre_tokenizer: type ByteLevel");
  expect("/post_processor/type", "RobertaProcessing", "post_processor: expected cls and sep");
  expect("/post_processor/type", "ByteLevel", "post_processor: type ByteLevel: expected Template");
  expect("/post_processor/pair/4/SpecialToken/type_id", 2, "post_processor: item 4: expected");
  expect("/post_processor/pair/3/Sequence/id", "A", "pair: expected A and B once");
  expect("/post_processor/special_tokens/[SEP]/ids/0", 0, "post_processor: special token [SEP]");
  expect("/model/continuing_subword_prefix", "@@", "continuing_subword_prefix");
  expect("/model/vocab/a", 7, "ids must have no gaps");
  expect("/model/vocab/a", 0, "have the same id");
  expect("/model/vocab/a", -1, "ids must have no gaps");
  expect("/model/vocab", 3, "model: vocab");
  expect("/model/unk_token", "nope", "the unknown token nope is not in the vocabulary");
  expect("/added_tokens/0/id", 77, "does not fit the vocabulary");
  ExpectError(Write("tokenizer.json", "{\"a\":"), Exit::kData, "not valid JSON");
  ExpectError(Write("tokenizer.json", "[]"), Exit::kData, "expected a JSON object");
  ExpectError(Write("tokenizer.json", std::string(1 << 20, '[')), Exit::kData, "nested deeper");
}

TEST_F(Files, AddedTokensBeyondTheVocabulary) {
  const auto made =
      Tokenizer::Create({.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"}});
  ASSERT_TRUE(SaveTokenizer(**made, directory_, 8).ok());
  auto json = nlohmann::json::parse(*ReadFile(JoinPath(directory_, "tokenizer.json"), 1 << 20));
  for (const auto& [id, content] : {std::pair(6, "<Name>"), std::pair(7, "fo")})
    json["added_tokens"].push_back(
        {{"id", id}, {"content", content}, {"special", false}, {"normalized", false}});
  Write("tokenizer.json", json.dump());
  auto loaded = LoadTokenizer(directory_, true);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->Encode("FO", false).ids, (std::vector<int32_t>{1})) << "not of the model";
  EXPECT_EQ((*loaded)->Encode("fo", false).ids, (std::vector<int32_t>{7}));
  EXPECT_EQ((*loaded)->Encode("a<Name>a", false).ids, (std::vector<int32_t>{5, 6, 5}));
  EXPECT_FALSE((*loaded)->is_special(6));
  ASSERT_TRUE(SaveTokenizer(**loaded, directory_, 8).ok());
  EXPECT_EQ((*LoadTokenizer(directory_, true))->Encode("a<Name>a", false).ids,
      (std::vector<int32_t>{5, 6, 5}));
}

// add_tokens of transformers makes such tokens, for tokenizer.json and beside a vocab.txt.
TEST_F(Files, AddedTokensOfNormalizedText) {
  const auto made = Tokenizer::Create(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "new", "york"}});
  ASSERT_TRUE(SaveTokenizer(**made, directory_, 8).ok());
  const nlohmann::json token = {{"content", "New York"}, {"normalized", true}, {"special", false}};
  const auto check = [&] {
    const auto loaded = LoadTokenizer(directory_, true);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    using Ids = std::vector<int32_t>;
    const std::string text = "a \u00E9\u6771a NEW\tY\u00F6rk's new";
    std::vector<int32_t> ids;
    (*loaded)->AppendIds(text, &ids);
    EXPECT_EQ(ids, (Ids{5, 1, 1, 5, 8, 1, 1, 6}));
    const Encoding encoding = (*loaded)->Encode(text, false);
    EXPECT_EQ(encoding.ids, ids);
    EXPECT_EQ(encoding.chars[4].begin, 6);
    EXPECT_EQ(encoding.chars[4].end, 14);
    EXPECT_EQ(encoding.bytes[4].begin, 9);
    EXPECT_EQ(encoding.bytes[4].end, 18);
    EXPECT_FALSE((*loaded)->SameIds(**made));
    ASSERT_TRUE(SaveTokenizer(**loaded, directory_, 8).ok());
  };
  Write("tokenizer_config.json", nlohmann::json{{"added_tokens_decoder", {{"8", token}}}}.dump());
  ASSERT_EQ(std::remove(JoinPath(directory_, "tokenizer.json").c_str()), 0);
  check();
  auto json = nlohmann::json::parse(*ReadFile(JoinPath(directory_, "tokenizer.json"), 1 << 20));
  EXPECT_EQ(json["added_tokens"].back()["normalized"], true);
  check();
}

// As transformers does: tokenizer_config.json is preferred to tokenizer.json, unless its class is
// that of any tokenizer.json.
TEST_F(Files, TheConfigBesideATokenizerIsRead) {
  const auto made = Tokenizer::Create(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "A", "b", "[X]"}});
  ASSERT_TRUE(SaveTokenizer(**made, directory_, 8).ok());
  const auto load = [&](const nlohmann::json& config) {
    Write("tokenizer_config.json", config.dump());
    auto loaded = LoadTokenizer(directory_, true);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *std::move(loaded);
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(load({{"do_lower_case", false}})->Encode("A", false).ids, (Ids{6}));
  EXPECT_EQ(load({{"do_lower_case", false}, {"tokenizer_class", "PreTrainedTokenizerFast"}})
                ->Encode("A", false)
                .ids,
      (Ids{5}));
  EXPECT_EQ(
      load({{"model_input_names", {"input_ids", "attention_mask"}}})->EncodePair("a", "b").types,
      (Ids{0, 0, 0, 0, 0}));
  EXPECT_EQ(load({{"tokenizer_class", "DistilBertTokenizer"}})->EncodePair("a", "b").types,
      (Ids{0, 0, 0, 0, 0}));
  EXPECT_EQ(load({{"additional_special_tokens", {"[X]", "[Y]"}}})->Encode("a[X]b[Y]", false).ids,
      (Ids{5, 8, 7, 9}));
  const nlohmann::json token = {{"content", "<n>"}, {"normalized", false}, {"special", false}};
  const auto added = load({{"added_tokens_decoder", {{"9", token}}}});
  EXPECT_EQ(added->Encode("a<n>", false).ids, (Ids{5, 9}));
  ASSERT_TRUE(SaveTokenizer(*added, directory_, 8).ok());
  EXPECT_EQ((*LoadTokenizer(directory_, true))->Encode("a<n>", false).ids, (Ids{5, 9}));
  Write("tokenizer_config.json", "{\"added_tokens_decoder\": {\"99\": {\"content\": \"<z>\"}}}");
  EXPECT_EQ(ExitOf(LoadTokenizer(directory_, true).status()), Exit::kData);
}

// transformers prefers the flags of added_tokens_decoder, and the defaults of a class.
TEST_F(Files, TheConfigBesideATokenizerReplacesFlagsAndDefaults) {
  const auto made = Tokenizer::Create(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "A", "b", "##b"},
          .scheme = BertScheme({.strip_accents = false, .lowercase = false})});
  ASSERT_TRUE(SaveTokenizer(**made, directory_, 8).ok());
  using Ids = std::vector<int32_t>;
  const auto ids = [&](const nlohmann::json& config) {
    Write("tokenizer_config.json", config.dump());
    const auto loaded = LoadTokenizer(directory_, false);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return (*loaded)->Encode("A [MASK]ab", false).ids;
  };
  EXPECT_EQ(ids({{"do_lower_case", false}}), (Ids{6, 4, 5, 8}));
  EXPECT_EQ(ids({{"tokenizer_class", "BertTokenizer"}}), (Ids{5, 4, 5, 8}));
  EXPECT_EQ(ids({{"tokenizer_class", "PreTrainedTokenizerFast"}}), (Ids{6, 4, 5, 8}));
  const nlohmann::json word = {{"content", "[MASK]"}, {"special", true}, {"single_word", true}};
  EXPECT_EQ(ids({{"do_lower_case", false}, {"added_tokens_decoder", {{"4", word}}}}),
      (Ids{6, 1, 1, 1, 5, 8}));
  EXPECT_EQ(ids({{"do_lower_case", false}}), (Ids{6, 4, 5, 8}));
  Write("special_tokens_map.json", "{\"additional_special_tokens\": [\"ab\"]}");
  EXPECT_EQ(ids({{"do_lower_case", false}}), (Ids{6, 4, 9}));
}

TEST_F(Files, OtherRulesAreOtherIds) {
  const auto make = [](std::vector<int32_t> added, int64_t longest) {
    auto scheme = std::make_shared<WordPieceScheme>();
    scheme->max_word_chars = longest;
    return *Tokenizer::Create({.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"},
        .scheme = scheme,
        .added = std::move(added)});
  };
  const auto usual = make({}, 100);
  EXPECT_TRUE(usual->SameIds(*make({}, 100)));
  EXPECT_FALSE(usual->SameIds(*make({5}, 100)));
  EXPECT_FALSE(usual->SameIds(*make({}, 3)));
  TokenizerData cased = usual->data();
  cased.scheme = BertScheme({.lowercase = false});
  EXPECT_FALSE(usual->SameIds(**Tokenizer::Create(cased)));
  TokenizerData roles = usual->data();
  roles.names.mask = "a";
  EXPECT_FALSE(usual->SameIds(**Tokenizer::Create(roles)));
}

// Whatever a file holds, loading ends with a tokenizer that works or with an error.
TEST_F(Files, DamagedFiles) {
  const auto made = Tokenizer::Create(
      {.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "é"}});
  ASSERT_TRUE(SaveTokenizer(**made, directory_, 8).ok());
  std::mt19937 random(3);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "vocab.txt"}) {
    const std::string good = *ReadFile(JoinPath(directory_, name), 1 << 20);
    if (std::string(name) == "tokenizer_config.json") {
      ASSERT_EQ(std::remove(JoinPath(directory_, "tokenizer.json").c_str()), 0);
    }
    int refused = 0;
    for (int i = 0; i < 600; ++i) {
      std::string bad = good;
      if (i % 3 == 0) bad.resize(random() % bad.size());
      for (int changes = random() % 4; changes > 0 && !bad.empty(); --changes)
        bad[random() % bad.size()] = static_cast<char>(random());
      std::remove(
          JoinPath(directory_, name).c_str());  // writing into an old file would wait for the disk
      std::ofstream(JoinPath(directory_, name), std::ios::binary) << bad;
      const auto loaded = LoadTokenizer(directory_, true);
      refused += !loaded.ok();
      if (loaded.ok()) {
        EXPECT_GE((*loaded)->Encode("ab é <x> [MASK]").ids.size(), 2u);
      }
    }
    EXPECT_GT(refused, 60) << name;
    Write(name, good);
  }
}

// Leaves folders and cases for hf_check.py in $CLOZE_HF_CHECK.
TEST_F(Files, ExportForHuggingFace) {
  const char* target = std::getenv("CLOZE_HF_CHECK");
  const std::string shared = CLOZE_SOURCE_DIR "/../shared/data";
  if (target == nullptr) GTEST_SKIP() << "CLOZE_HF_CHECK is not set";
  if (!IsDirectory(shared)) GTEST_SKIP() << shared << " is missing";
  Tokens texts;
  std::ifstream in(shared + "/tokenizer/uncased.cases.jsonl");
  for (std::string line; std::getline(in, line);)
    texts.push_back(nlohmann::json::parse(line)["text"]);
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (int n = random() % 30; n > 0; --n) {
      const uint32_t kind = random() % 4;
      char32_t c = kind == 0   ? 0x20 + random() % 0x60
                   : kind == 1 ? random() % 0x600
                   : kind == 2 ? random() % 0x10000
                               : random() % 0x32000;
      if (c < 0x20 || (c >= 0xD800 && c < 0xE000)) c = ' ';
      AppendUtf8(c, &text);
    }
    texts.push_back(text);
  }
  VocabOptions trained;
  trained.size = 3000;
  trained.normalizer = {true, true, false, false};
  const auto vocab =
      TrainVocab({shared + "/text/books_valid.txt"}, trained, [](const char*, int64_t, int64_t) {});
  ASSERT_TRUE(vocab.ok()) << vocab.status();
  std::vector<std::pair<std::string, std::unique_ptr<Tokenizer>>> all;
  all.emplace_back("own_cased", *Tokenizer::Create({.tokens = vocab->data.tokens,
                                    .scheme = BertScheme({true, true, false, false})}));
  all.emplace_back("own_uncased", *Tokenizer::Create({.tokens = vocab->data.tokens}));
  all.emplace_back("own_accents", *Tokenizer::Create({.tokens = vocab->data.tokens,
                                      .scheme = BertScheme({true, false, false, true})}));
  trained.kind = &kUnigramVocab;
  for (const bool lowercase : {false, true}) {
    trained.normalizer.lowercase = trained.normalizer.strip_accents = lowercase;
    const auto unigram = TrainVocab(
        {shared + "/tokenizer/uncased.cases.jsonl"}, trained, [](const char*, int64_t, int64_t) {});
    ASSERT_TRUE(unigram.ok()) << unigram.status();
    all.emplace_back(lowercase ? "unigram_uncased" : "unigram", *Tokenizer::Create(unigram->data));
  }
  for (const std::string name : {"bert-base-uncased", "bert-base-multilingual_cased"}) {
    all.emplace_back(name, *LoadTokenizer(shared + "/tokenizer/vocab/" + name, true));
  }
  for (const auto& [name, tokenizer] : all) {
    const std::string folder = JoinPath(target, name);
    ASSERT_TRUE(MakeDirectories(folder).ok());
    ASSERT_TRUE(SaveTokenizer(*tokenizer, folder, 512).ok());
    std::ofstream out(JoinPath(folder, "cases.jsonl"));
    for (size_t i = 0; i < texts.size(); ++i) {
      const bool pair = i % 3 == 1 && !texts[i / 2].empty();  // transformers takes "" for no text
      nlohmann::json json = {{"text", texts[i]}};
      Encoding encoding =
          pair ? tokenizer->EncodePair(texts[i], texts[i / 2]) : tokenizer->Encode(texts[i]);
      if (pair) json["text_pair"] = texts[i / 2];
      if (i % 2 == 1) {
        json["max_length"] = 4 + random() % 60;
        Truncate(&encoding, json["max_length"]);
      }
      json["ids"] = encoding.ids;
      json["offsets"] = nlohmann::json::array();
      for (const Span& span : encoding.chars) json["offsets"].push_back({span.begin, span.end});
      out << json << "\n";
    }
  }
}

}  // namespace
}  // namespace cloze
