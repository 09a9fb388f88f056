// Byte-level BPE against Hugging Face's (tests/golden/byte_level), its files, and what is refused.
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/text/learning/vocab_trainer.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/text/unicode/unicode.h"
#include "tests/core/text/encoding_json.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const std::string kGolden = CLOZE_SOURCE_DIR "/tests/golden/byte_level";

std::vector<std::string> WordsOf(absl::string_view text, bool add_prefix_space = false) {
  Pipeline stages;
  SetByteLevelText(add_prefix_space, &stages);
  std::vector<std::string> words;
  stages.pre_tokenizer->Split(text, {}, [&](size_t begin, size_t end, bool prefixed) {
    words.emplace_back(prefixed ? stages.pre_tokenizer->prefix() : "");
    words.back().append(text.data() + begin, end - begin);
  });
  return words;
}

TEST(ByteWords, FollowThePattern) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(WordsOf("The dog's  life"), (Words{"The", " dog", "'s", " ", " life"}));
  EXPECT_EQ(WordsOf("we'll 'Ll it'd've"), (Words{"we", "'ll", " '", "Ll", " it", "'d", "'ve"}));
  EXPECT_EQ(WordsOf("a1 22.5%!? x"), (Words{"a", "1", " 22", ".", "5", "%!?", " x"}));
  EXPECT_EQ(WordsOf("\n\n x\t\ty  "), (Words{"\n\n", " x", "\t", "\t", "y", "  "}));
  EXPECT_EQ(WordsOf("é\u0301½ 東京。"), (Words{"é", "\u0301", "½", " 東京", "。"}));
  EXPECT_EQ(WordsOf("a\xFF\xFE b\xC3"), (Words{"a", "\xFF\xFE", " b", "\xC3"}))
      << "bytes that are not UTF-8 are symbols";
}

TEST(ByteWords, AnImaginedBlankIsLikeARealOne) {
  for (const std::string text :
      {"The dog", "'s life", "\n", "\n\n x", "\nx", "\u3000x", "\t", "é", "\xFFx", "1st", "?!"})
    EXPECT_EQ(WordsOf(text, true), WordsOf(" " + text)) << text;
  EXPECT_EQ(WordsOf(" The", true), WordsOf(" The"));
  EXPECT_EQ(WordsOf("", true), std::vector<std::string>());
}

TEST(ByteSpelling, IsABijection) {
  std::string bytes, spelling;
  for (int b = 0; b < 256; ++b) bytes.push_back(static_cast<char>(b));
  AppendByteSpelling(bytes, &spelling);
  EXPECT_EQ(CountCodePoints(spelling), 256);
  EXPECT_EQ(BytesOfToken(spelling), bytes);
  EXPECT_EQ(BytesOfToken("Ġthe"), " the");
  EXPECT_EQ(BytesOfToken("東"), "東");
}

class ByteLevel : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    EXPECT_TRUE(WriteFileAtomically(JoinPath(folder_, name), content).ok());
    return JoinPath(folder_, name);
  }
  static std::string Read(const std::string& path) { return *ReadFile(path, 1 << 24); }
  static Json Golden(const std::string& name) { return Json::parse(Read(kGolden + "/" + name)); }
  std::unique_ptr<Tokenizer> Load(const std::string& path) {
    auto tokenizer = LoadTokenizer(path, true);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
  }
  void ExpectError(Exit exit, const std::string& message) {
    const auto result = LoadTokenizer(folder_, true);
    ASSERT_FALSE(result.ok()) << message;
    EXPECT_EQ(ExitOf(result.status()), exit) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(message));
  }

  const TestFolder scratch_;
  const std::string& folder_ = scratch_.path();
};

// Do byte and code-point offsets name the same places of the text (of each word)?
void CheckBytes(
    const Encoding& e, const std::vector<std::string>& texts, const std::vector<size_t>& text_of) {
  for (size_t i = 0; i < e.ids.size(); ++i) {
    if (e.words[i] < 0) continue;
    const std::string& text = texts[text_of[i]];
    EXPECT_EQ(CountCodePoints(text.substr(0, e.bytes[i].begin)), e.chars[i].begin) << text;
    EXPECT_EQ(CountCodePoints(text.substr(0, e.bytes[i].end)), e.chars[i].end);
  }
}

TEST_F(ByteLevel, EncodesAsHuggingFace) {
  std::map<std::pair<bool, bool>, std::unique_ptr<Tokenizer>> tokenizers;
  for (const bool prefix : {false, true}) {
    for (const bool trim : {false, true}) {
      Json json = Golden("tokenizer.json");
      json["pre_tokenizer"]["add_prefix_space"] = json["post_processor"]["add_prefix_space"] =
          prefix;
      json["post_processor"]["trim_offsets"] = trim;
      tokenizers[{prefix, trim}] =
          Load(Write(absl::StrCat("t", prefix, trim, ".json"), json.dump()));
    }
  }
  std::ifstream in(kGolden + "/cases.jsonl");
  int cases = 0;
  for (std::string line; std::getline(in, line); ++cases) {
    const Json c = Json::parse(line);
    const Tokenizer& tokenizer = *tokenizers[{c["prefix"].get<bool>(), c["trim"].get<bool>()}];
    const std::string text = c["text"];
    std::vector<std::string> texts = {text};
    Encoding e;
    if (c.contains("words")) {
      texts = c["words"].get<std::vector<std::string>>();
      e = tokenizer.EncodeWords(texts);
    } else if (c.contains("text_pair")) {
      texts.push_back(c["text_pair"]);
      e = tokenizer.EncodePair(texts[0], texts[1]);
    } else {
      e = tokenizer.Encode(text);
      std::vector<int32_t> ids = {tokenizer.special().cls};
      tokenizer.AppendIds(text, &ids);
      ids.push_back(tokenizer.special().sep);
      EXPECT_EQ(ids, e.ids) << line;
    }
    Json words = Json::array();
    std::vector<size_t> text_of;
    size_t second = 0;
    for (size_t i = 0; i < e.words.size(); ++i) {
      words.push_back(e.words[i] < 0 ? Json() : Json(e.words[i]));
      if (i > 0 && e.words[i] < 0) second = 1;
      text_of.push_back(c.contains("words")       ? std::max(e.words[i], 0)
                        : c.contains("text_pair") ? second
                                                  : 0);
    }
    EXPECT_EQ(Json(e.ids), c["ids"]) << line;
    EXPECT_EQ(SpansJson(e.chars), c["offsets"]) << line;
    EXPECT_EQ(words, c["word_ids"]) << line;
    EXPECT_EQ(tokenizer.Decode(e.ids), c["decoded"].get<std::string>()) << line;
    EXPECT_EQ(e.types, std::vector<int32_t>(e.ids.size(), 0));
    CheckBytes(e, texts, text_of);
    if (HasFailure()) break;
  }
  EXPECT_GT(cases, 200);
}

TEST_F(ByteLevel, LearnsTheMergesOfHuggingFace) {
  VocabOptions options;
  options.size = 600;
  options.kind = &kByteBpeVocab;
  const auto result =
      TrainVocab({kGolden + "/text.txt"}, options, [](const char*, int64_t, int64_t) {});
  ASSERT_TRUE(result.ok()) << result.status();
  const Json vocab = Golden("vocab.json");
  ASSERT_EQ(result->data.tokens.size(), vocab.size());
  for (size_t id = 0; id < result->data.tokens.size(); ++id)
    EXPECT_EQ(vocab[result->data.tokens[id]], id) << result->data.tokens[id];
  const auto tokenizer = Tokenizer::Create(result->data);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  ASSERT_TRUE(SaveTokenizer(**tokenizer, folder_, 512).ok());
  EXPECT_EQ(Read(folder_ + "/merges.txt"), Read(kGolden + "/merges.txt"));
  EXPECT_EQ(Golden("tokenizer.json")["model"]["merges"],
      Json::parse(Read(folder_ + "/tokenizer.json"))["model"]["merges"]);
  options.size = 261;
  EXPECT_EQ(ExitOf(TrainVocab({kGolden + "/text.txt"}, options,
                [](const char*, int64_t, int64_t) {
                }).status()),
      Exit::kSpec);
}

TEST_F(ByteLevel, FilesGoInAndOut) {
  const auto first = Load(kGolden);  // tokenizer.json
  EXPECT_STREQ(first->data().scheme->type(), "BPE");
  ASSERT_TRUE(SaveTokenizer(*first, folder_, 77).ok());
  EXPECT_FALSE(PathExists(folder_ + "/vocab.txt"));
  const Json saved = Json::parse(Read(folder_ + "/tokenizer.json")),
             golden = Golden("tokenizer.json");
  for (const char* part : {"model", "post_processor", "normalizer"}) {
    for (const auto& [key, value] : golden[part].items()) {
      const bool empty = value.is_null() || value == "";  // no prefix is written either way
      EXPECT_TRUE(saved[part][key] == value || (empty && saved[part][key] == ""))
          << part << " " << key;
    }
  }
  EXPECT_EQ(Json::parse(Read(folder_ + "/vocab.json")), golden["model"]["vocab"]);
  const Json config = Json::parse(Read(folder_ + "/tokenizer_config.json"));
  EXPECT_EQ(config["tokenizer_class"], "RobertaTokenizer");
  EXPECT_EQ(config["model_max_length"], 77);
  EXPECT_EQ(config["bos_token"], "<s>");
  const std::string text = "It's <mask> déjà vu,\n 42 times </s>.";
  const std::vector<int32_t> ids = first->Encode(text).ids;
  EXPECT_EQ(Load(folder_)->Encode(text).ids, ids);
  std::filesystem::remove(folder_ + "/tokenizer.json");  // vocab.json and merges.txt alone
  const auto third = Load(folder_);
  EXPECT_EQ(third->Encode(text).ids, ids);
  EXPECT_TRUE(third->SameIds(*first));
  EXPECT_EQ(third->special().mask, 4);
  EXPECT_EQ(third->Decode(ids), "It's déjà vu,\n 42 times .");
}

TEST_F(ByteLevel, SayWhichTokensGoOnAWord) {
  const auto tokenizer = Load(kGolden);
  EXPECT_TRUE(tokenizer->ContinuesWord(tokenizer->id("the")));
  EXPECT_FALSE(tokenizer->ContinuesWord(tokenizer->id("Ġ")));
  EXPECT_FALSE(tokenizer->ContinuesWord(tokenizer->id(",")));
  EXPECT_FALSE(tokenizer->ContinuesWord(tokenizer->id("'")));
  EXPECT_TRUE(tokenizer->ContinuesWord(tokenizer->id("Ã")));
}

TEST_F(ByteLevel, AnyBytesAreEncoded) {
  const auto tokenizer = Load(kGolden);
  for (const std::string& text : {std::string("\xFF\xFE x\xC3"), std::string(100000, 'a'),
           std::string(3000, '\n') + "x", std::string(2, '\0')}) {
    const Encoding e = tokenizer->Encode(text);
    int64_t end = 0;
    for (size_t i = 1; i + 1 < e.ids.size(); ++i) {
      EXPECT_GE(e.bytes[i].end, e.bytes[i].begin);
      EXPECT_GE(e.bytes[i].end, end);
      end = e.bytes[i].end;
    }
    EXPECT_EQ(end, static_cast<int64_t>(text.size()));
  }
}

// A word that is glued to an added token gets its blank, but its place is where it stands. (Hugging
// Face loses its first letter there.)
TEST_F(ByteLevel, PlacesBesideAddedTokensAreTheUsers) {
  Json json = Golden("tokenizer.json");
  json["pre_tokenizer"]["add_prefix_space"] = json["post_processor"]["add_prefix_space"] = true;
  const auto tokenizer = Load(Write("tokenizer.json", json.dump()));
  const Encoding e = tokenizer->Encode("<s>the dog");
  EXPECT_EQ(e.chars[2].begin, 3);
  EXPECT_EQ(e.ids[2], tokenizer->id("Ġthe"));
}

// The offsets of Hugging Face's tokenizers 0.23.
TEST_F(ByteLevel, BlanksAreTrimmedAtBothEnds) {
  const auto tokenizer = Load(kGolden);
  const Encoding e = tokenizer->Encode("the  dog", false);
  EXPECT_EQ(e.chars.back().begin, 5);
  // With a normalizer, a trimmed blank stays where it is.
  Json json = Golden("tokenizer.json");
  json["normalizer"] = {{"type", "NFC"}};
  const Encoding normal = Load(Write("tokenizer.json", json.dump()))->Encode("the  dog", false);
  ASSERT_EQ(normal.ids, e.ids);
  for (size_t i = 0; i < e.ids.size(); ++i) {
    EXPECT_EQ(normal.chars[i].begin, e.chars[i].begin) << i;
    EXPECT_EQ(normal.chars[i].end, e.chars[i].end) << i;
  }
}

TEST_F(ByteLevel, TruncatesPairsAroundTheirSpecialTokens) {
  const auto tokenizer = Load(kGolden);
  Encoding e = tokenizer->EncodePair("1 2 3 4 5 6 7 8", "a b c d");
  const int64_t size = e.ids.size();
  EXPECT_EQ(Truncate(&e, 10), size - 10);
  EXPECT_EQ(e.words, (std::vector<int32_t>{-1, 0, 1, 2, -1, -1, 0, 1, 2, -1}));
  e = tokenizer->EncodePair("", "a b");
  EXPECT_EQ(Truncate(&e, 5), 1);
  EXPECT_EQ(e.words, (std::vector<int32_t>{-1, -1, -1, 0, -1}));
}

TEST_F(ByteLevel, RefusesFilesThatDoNotFit) {
  const Json golden = Golden("tokenizer.json");
  const auto refuse = [&](const Json& json, const std::string& message) {
    Write("tokenizer.json", json.dump());
    ExpectError(Exit::kData, message);
  };
  Json json = golden;
  json["model"]["merges"][7] = Json::array({"a", "nowhere"});
  refuse(json, "merges[7]: merge of a and nowhere: nowhere is not in the vocabulary");
  json["model"]["merges"][7] = "one";
  refuse(json, "merges[7]: merge \"one\": expected two tokens");
  json["model"]["merges"][7] = 7;
  refuse(json, "merges[7]");
  json["model"].erase("merges");
  refuse(json, "model: merges: expected a list");
  json = golden;
  json["model"]["vocab"]["zzz"] = 7000;
  refuse(json, "zzz: expected a number below");
  for (const auto& [field, value] : std::map<std::string, Json>{
           {"dropout", 0.1}, {"byte_fallback", true}, {"end_of_word_suffix", "</w>"}}) {
    json = golden;
    json["model"][field] = value;
    refuse(json, "model: " + field + " is ");
  }
  json = golden;
  json["pre_tokenizer"] = {{"type", "Metaspace"}};
  refuse(json, "pre_tokenizer: type Metaspace: expected ByteLevel");
  json = golden;
  json["normalizer"] = {{"type", "Prepend"}};
  refuse(json, "normalizer: type Prepend: expected Sequence, Lowercase");
  json = golden;
  json["post_processor"] = nullptr;
  refuse(json, "post_processor: type missing: expected TemplateProcessing");
  json = golden;
  json["model"]["type"] = "WordLevel";
  refuse(json, "model: type WordLevel: expected one of WordPiece, BPE, Unigram");
  refuse(golden["model"]["vocab"], "a vocabulary without a tokenizer");

  std::filesystem::remove(folder_ + "/tokenizer.json");
  Write("vocab.json", golden["model"]["vocab"].dump());
  ExpectError(Exit::kNoInput, "merges.txt: missing");
  Write("merges.txt", "#version: 0.2\no s\na qqq\n");
  ExpectError(Exit::kData, "merges.txt:3: merge of a and qqq");
  Write("merges.txt", "#version: 0.2\nt h e\n");
  ExpectError(Exit::kData, "merges.txt:2: merge \"t h e\"");
  Write("vocab.json", R"({"a": 0, "b": 2})");
  ExpectError(Exit::kData, "ids must have no gaps");
  std::filesystem::remove(folder_ + "/vocab.json");
  ExpectError(Exit::kNoInput, "vocab.json: missing");
}

// Without these checks, a list of merges that is cut off gives other ids and no error.
TEST_F(ByteLevel, RefusesMergesThatAreCutOff) {
  const std::string merges = Read(kGolden + "/merges.txt");
  const std::string cut = merges.substr(0, merges.rfind('\n', merges.size() - 2) + 1);
  Json json = Golden("tokenizer.json");
  Write("tokenizer.json", json.dump());
  Write("merges.txt", merges);
  EXPECT_TRUE(LoadTokenizer(folder_, true).ok());
  Write("merges.txt", cut);
  ExpectError(Exit::kMismatch, "merges.txt: ends after ");
  Write("merges.txt", "");
  ExpectError(Exit::kMismatch, "merges.txt: ends after 0 merges: expected ");
  Write("merges.txt", merges + "t h\n");
  ExpectError(Exit::kMismatch, "merge t h: expected no more merges, as in tokenizer.json");
  Write("merges.txt", "#version: 0.2\nt q\n");
  ExpectError(Exit::kMismatch, "merges.txt:2: merge t q: expected ");

  std::filesystem::remove(folder_ + "/merges.txt");
  json["model"]["merges"].erase(json["model"]["merges"].size() - 1);
  Write("tokenizer.json", json.dump());
  ExpectError(Exit::kData, "tokenizer.json: no merge produces token ");
  json["model"]["merges"] = Json::array();
  Write("tokenizer.json", json.dump());
  ExpectError(Exit::kData, "tokenizer.json: no merge produces token ");

  std::filesystem::remove(folder_ + "/tokenizer.json");
  Json vocab = json["model"]["vocab"];
  Write("vocab.json", vocab.dump());
  Write("merges.txt", cut);
  ExpectError(Exit::kData, "merges.txt: no merge produces token ");
  Write("merges.txt", "");
  ExpectError(Exit::kData, "merges.txt: no merge produces token ");

  // The vocabulary of roberta-base has tokens that are neither special nor produced by a merge.
  for (const char* token : {"<|endoftext|>", "madeupword0000"}) vocab[token] = vocab.size();
  Write("vocab.json", vocab.dump());
  Write("merges.txt", merges);
  EXPECT_TRUE(LoadTokenizer(folder_, true).ok()) << LoadTokenizer(folder_, true).status();
}

}  // namespace
}  // namespace cloze
