// WordPiece against Hugging Face's: own vocabularies (tests/golden/make_wordpiece.py), and BERT's
// where they are beside the project.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/schemes.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/core/text/encoding_json.h"

namespace cloze {
namespace {

using Json = nlohmann::json;

// A folder of cases, and the names of its vocabularies.
struct Source {
  std::string folder, prefix;
  std::vector<std::string> names;
};
const Source kOwn = {CLOZE_SOURCE_DIR "/tests/golden/wordpiece", "/vocab/", {"uncased", "cased"}};
const Source kBert = {CLOZE_SOURCE_DIR "/../shared/data/tokenizer", "/vocab/bert-base-",
    {"uncased", "cased", "multilingual_cased"}};

class Conformance : public testing::TestWithParam<Source> {
 protected:
  void SetUp() override {
    if (!IsDirectory(folder_)) GTEST_SKIP() << folder_ << " is missing";
  }

  std::vector<Json> Lines(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name);
    std::vector<Json> result;
    for (std::string line; std::getline(in, line);) result.push_back(Json::parse(line));
    EXPECT_FALSE(result.empty()) << name;
    return result;
  }

  std::string Vocab(const std::string& name) const { return folder_ + GetParam().prefix + name; }
  const Tokenizer& Get(const std::string& name) {
    auto& slot = tokenizers_[name];
    if (slot == nullptr) {
      auto loaded = LoadTokenizer(Vocab(name), true);
      EXPECT_TRUE(loaded.ok()) << loaded.status();
      slot = *std::move(loaded);
    }
    return *slot;
  }

  const std::string folder_ = GetParam().folder;
  std::map<std::string, std::unique_ptr<Tokenizer>> tokenizers_;
};

TEST_P(Conformance, Cases) {
  for (const std::string& name : GetParam().names) {
    const Tokenizer& tokenizer = Get(name);
    std::map<std::string, int> differing;
    for (const Json& expected : Lines(name + ".cases.jsonl")) {
      const std::string text = expected["text"], category = expected["category"];
      const Encoding encoding = tokenizer.Encode(text);
      Json tokens = Json::array();
      for (const int32_t id : encoding.ids) tokens.push_back(tokenizer.token(id));
      const bool same = Json(encoding.ids) == expected["ids"] && tokens == expected["tokens"] &&
                        SpansJson(encoding.chars) == expected["offsets"] &&
                        SpansJson(encoding.bytes) == expected["byte_offsets"] &&
                        WordsJson(encoding.words) == expected["word_ids"];
      differing[category] += !same;
      EXPECT_TRUE(same) << name << " " << expected["id"] << " " << expected["text"] << "\n"
                        << tokens << "\n"
                        << expected["tokens"] << "\n"
                        << SpansJson(encoding.chars) << "\n"
                        << expected["offsets"] << "\n"
                        << WordsJson(encoding.words) << "\n"
                        << expected["word_ids"];
      std::vector<int32_t> ids;
      tokenizer.AppendIds(text, &ids);
      EXPECT_EQ(ids, std::vector<int32_t>(encoding.ids.begin() + 1, encoding.ids.end() - 1));
    }
    RecordProperty(name + "_random_differing", differing["random"]);
  }
}

TEST_P(Conformance, PairsAndTruncation) {
  for (const Json& expected : Lines("pairs_truncation.jsonl")) {
    const Tokenizer& tokenizer = Get(expected["vocab"]);
    const bool pair = !expected["text_pair"].is_null();
    Encoding encoding = pair ? tokenizer.EncodePair(std::string(expected["text"]),
                                   std::string(expected["text_pair"]))
                             : tokenizer.Encode(std::string(expected["text"]));
    const int64_t before = encoding.ids.size();
    int64_t cut = 0;
    if (expected["truncation"] == "longest_first")
      cut = Truncate(&encoding, expected["max_length"]);
    EXPECT_EQ(cut, before - static_cast<int64_t>(encoding.ids.size()));
    if (expected["pad_to_max_length"] == true) {
      while (encoding.ids.size() < expected["ids"].size()) {
        encoding.ids.push_back(tokenizer.special().pad), encoding.types.push_back(0),
            encoding.chars.push_back({});
      }
    }
    EXPECT_EQ(Json(encoding.ids), expected["ids"]) << expected["id"];
    EXPECT_EQ(Json(encoding.types), expected["token_type_ids"]) << expected["id"];
    EXPECT_EQ(SpansJson(encoding.chars), expected["offsets"]) << expected["id"];
  }
}

TEST_P(Conformance, PresplitWords) {
  for (const Json& expected : Lines("presplit_words.jsonl")) {
    const Encoding encoding =
        Get(expected["vocab"]).EncodeWords(expected["words"].get<std::vector<std::string>>());
    EXPECT_EQ(Json(encoding.ids), expected["ids"]) << expected["id"];
    EXPECT_EQ(WordsJson(encoding.words), expected["word_ids"]) << expected["id"];
    EXPECT_EQ(SpansJson(encoding.chars), expected["offsets"]) << expected["id"];
  }
}

std::string FromBase64(const std::string& base64) {
  static const std::string kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | kDigits.find(c), count += 6;
    if (count >= 8) count -= 8, result.push_back(static_cast<char>(bits >> count));
  }
  return result;
}

TEST_P(Conformance, InvalidUtf8) {
  for (const Json& expected : Lines("invalid_utf8.jsonl")) {
    const std::string bytes = FromBase64(expected["bytes_base64"]),
                      replaced = expected["text_after_replacement"];
    for (const std::string name : {"uncased", "cased"}) {
      const Encoding raw = Get(name).Encode(bytes), clean = Get(name).Encode(replaced);
      EXPECT_EQ(Json(raw.ids), expected[name + "_ids"]) << expected["id"];
      EXPECT_EQ(raw.ids, clean.ids) << expected["id"];
      EXPECT_EQ(SpansJson(raw.chars), SpansJson(clean.chars)) << expected["id"];
    }
  }
}

TEST_P(Conformance, FilesAgree) {
  for (const std::string& name : GetParam().names) {
    const Tokenizer& folder = Get(name);
    auto lone = LoadTokenizer(Vocab(name) + "/vocab.txt", name == "uncased");
    ASSERT_TRUE(lone.ok()) << lone.status();
    ASSERT_EQ((*lone)->vocab_size(), folder.vocab_size());
    for (int32_t id = 0; id < folder.vocab_size(); ++id)
      ASSERT_EQ((*lone)->token(id), folder.token(id));
    EXPECT_EQ(SchemeOf<WordPieceScheme>((*lone)->data()).options.lowercase,
        SchemeOf<WordPieceScheme>(folder.data()).options.lowercase);
    EXPECT_EQ((*lone)->special().mask, folder.special().mask);
  }
}

TEST(SharedVocabulary, Chinese) {
  const std::string folder = kBert.folder + kBert.prefix + "chinese";
  if (!IsDirectory(folder)) GTEST_SKIP() << folder << " is missing";
  auto chinese = LoadTokenizer(folder, true);
  ASSERT_TRUE(chinese.ok()) << chinese.status();
  EXPECT_EQ((*chinese)->vocab_size(), 21128);
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, testing::Values(kOwn, kBert),
    [](const auto& info) { return info.index == 0 ? "own" : "bert"; });

}  // namespace
}  // namespace cloze
