// Tagging loses no word and keeps the rules of its labels, whatever the text.
#include "tasks/inference/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/unicode/unicode.h"
#include "encoder/families/families.h"
#include "encoder/folder/model_folder.h"
#include "tasks/probabilities.h"
#include "tasks/record.h"
#include "tasks/tags.h"
#include "tests/tasks/data/test_files.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::ElementsAre;

ModelConfig TaggerConfig(std::vector<std::string> labels, bool crf = false) {
  ModelConfig c;
  c.family = FindFamily("bert");
  c.hidden = 8, c.heads = 2, c.layers = 1, c.intermediate = 16, c.vocab = 70,
  c.positions.count = 12;
  c.head = HeadKind::kTokenTagging, c.crf = crf, c.labels = std::move(labels);
  return c;
}

std::vector<int> LabelsOf(const std::vector<WordTag>& tags) {
  std::vector<int> ids;
  for (const WordTag& tag : tags) ids.push_back(tag.label);
  return ids;
}

TEST(WordsOfText, BlanksOfAByteLevelTokenizerAreNoWords) {
  const auto tokenizer = LoadTokenizer(CLOZE_SOURCE_DIR "/tests/golden/byte_level", true);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::string text = "the  dog   ran ";
  EXPECT_THAT(Slices(text, WordsOfText(**tokenizer, text)), ElementsAre("the", "dog", "ran"));
}

TEST(TagDecoder, KeepsTheRulesWhenAsked) {
  Model model(TaggerConfig({"B-A", "I-A", "O"}), false);
  const float logits[] = {0, 2, 1, 0, 3, 0};  // I-A I-A
  const ConstMat words = View(logits, 2, 3);
  EXPECT_THAT(LabelsOf(TagDecoder(model).Decode(words)), ElementsAre(0, 1));
  EXPECT_THAT(LabelsOf(TagDecoder(model, true).Decode(words)), ElementsAre(0, 1));
  EXPECT_THAT(LabelsOf(TagDecoder(model, false).Decode(words)), ElementsAre(1, 1));
  // The score is the chosen label's softmax probability.
  EXPECT_NEAR(
      TagDecoder(model).Decode(words)[0].score, 1 / (1 + std::exp(2.0) + std::exp(1.0)), 1e-6);
  EXPECT_TRUE(TagDecoder(model).Decode(View(logits, 0, 3)).empty());
}

TEST(TagDecoder, LabelsOfNoSchemeAreChosenOneByOne) {
  Model model(TaggerConfig({"NOUN", "VERB"}), false);
  const float logits[] = {0, 1, 2, 1};
  EXPECT_THAT(LabelsOf(TagDecoder(model, true).Decode(View(logits, 2, 2))), ElementsAre(1, 0));
}

TEST(TagDecoder, TakesTheBestOfEachWordWhenTheRulesLeaveNothing) {
  Model model(TaggerConfig({"B-A", "E-A"}), false);  // one word cannot be a span of two
  const float logits[] = {0, 1};
  EXPECT_THAT(LabelsOf(TagDecoder(model).Decode(View(logits, 1, 2))), ElementsAre(1));
}

TEST(TagDecoder, AChainGivesItsMarginals) {
  Model model(TaggerConfig({"NOUN", "VERB"}, true), false);
  model.params().value(model.params().Find("crf.transitions")).f32()[1] = 3;  // NOUN before VERB
  const float logits[] = {0, 1, 0.5, 0};
  const auto tags = TagDecoder(model).Decode(View(logits, 2, 2));
  EXPECT_THAT(LabelsOf(tags), ElementsAre(0, 1));
  const double nn = std::exp(0.5), nv = std::exp(3.0), vn = std::exp(1.5), vv = std::exp(1.0),
               z = nn + nv + vn + vv;
  EXPECT_NEAR(tags[0].score, (nn + nv) / z, 1e-6);
  EXPECT_NEAR(tags[1].score, (nv + vv) / z, 1e-6);
}

// Letters, marks, emoji, ideographs, controls and spaces of all kinds.
std::string RandomText(std::mt19937* random, int length) {
  static const std::u32string kPool =
      U"abcXYZ 012 \u00e9\u00df\u0130 \u0301\u0308\u20dd\u0e49 \u4e2d\u6587\uac00 "
      U"\U0001F600\U0001F1E9\u200d\ufe0f "
      U"\u200b\u00ad\ufeff\u0001\u007f"
      U"\t\u00a0\u2028\u3000 .,!-\u2014\u00bf [MASK] \u0600\u05d0\u0928\u093f "
      U"\ufffd\ue000\U0010ffff##s";
  std::string text;
  for (int i = 0; i < length; ++i) AppendUtf8(kPool[(*random)() % kPool.size()], &text);
  if ((*random)() % 8 == 0) text += std::string(300, 'q');
  return text;
}

TEST(WordsOfText, EveryRunHasAWordAndEverySpanSlicesBack) {
  const auto tokenizer = SmallTokenizer();
  std::mt19937 random(3);
  for (int n = 0; n < 3000; ++n) {
    const std::string text = RandomText(&random, random() % 40);
    const std::vector<TextWord> words = WordsOfText(*tokenizer, text);
    int64_t end = 0;
    for (const TextWord& w : words) {
      ASSERT_LE(end, w.bytes.begin) << text;
      ASSERT_LT(w.bytes.begin, w.bytes.end) << text;
      end = w.bytes.end;
      ASSERT_LE(end, text.size());
      ASSERT_EQ(CountCodePoints(text.substr(0, w.bytes.begin)), w.chars.begin) << text;
      ASSERT_EQ(CountCodePoints(text.substr(0, w.bytes.end)), w.chars.end) << text;
      ASSERT_TRUE(IsUtf8(text.substr(w.bytes.begin, w.bytes.end - w.bytes.begin))) << text;
    }
    // Runs between white space, found on their own.
    for (size_t at = 0, begin = 0; at <= text.size();) {
      const CodePoint c = at < text.size() ? CodePointAt(text, at) : CodePoint{U' ', 1};
      if (IsSpace(c.value)) {
        const bool covered = std::any_of(words.begin(), words.end(), [&](const TextWord& w) {
          return w.bytes.begin < static_cast<int64_t>(at) &&
                 w.bytes.end > static_cast<int64_t>(begin);
        });
        ASSERT_TRUE(begin == at || covered) << text << " at " << begin;
        begin = at + c.size;
      }
      at += c.size;
    }
  }
}

// Unigram cuts only at blanks; words to tag end at punctuation too, and with each piece of scripts
// without blanks. Blanks belong to no word.
TEST(WordsOfText, WordsOfUnigram) {
  const std::string folder = CLOZE_SOURCE_DIR "/tests/golden/unigram";
  nlohmann::json json = nlohmann::json::parse(*ReadFile(folder + "/tokenizer.json", 1 << 20));
  for (const char* piece : {"世", "界"}) json["model"]["vocab"].push_back({piece, -5.0});
  for (const bool whole : {false, true}) {
    if (whole) json["pre_tokenizer"] = json["pre_tokenizer"]["pretokenizers"][1];
    const TestFolder saved;
    const std::string path = JoinPath(saved.path(), "tokenizer.json");
    ASSERT_TRUE(WriteFileAtomically(path, json.dump()).ok());
    const auto tokenizer = LoadTokenizer(path, true);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const std::string text = "ab (abc), xyz 世界a b.";
    EXPECT_THAT(Slices(text, WordsOfText(**tokenizer, text)),
        testing::ElementsAre("ab", "(", "abc", "),", "xyz", "世", "界", "a", "b", "."));
  }
}

TEST(WordsOfText, WordsThatTheTokenizerDropsAreWords) {
  const auto tokenizer = SmallTokenizer();
  EXPECT_THAT(
      Slices("a \u0301 b\u0301c, \u200b", WordsOfText(*tokenizer, "a \u0301 b\u0301c, \u200b")),
      ElementsAre("a", "\u0301", "b\u0301c", ",", "\u200b"));
}

class TagWordsTest : public FilesTest {
 protected:
  std::unique_ptr<Session> Open(const ModelConfig& config) {
    Model model(config, false);
    model.Initialize(1);
    EXPECT_TRUE(SaveWeights(folder_, config, model.params()).ok());
    EXPECT_TRUE(SaveTokenizer(*SmallTokenizer(), folder_, config.positions.count).ok());
    auto session = Session::Open(folder_, DType::kF32);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  // The labels and scores of the words of `sentences`.
  absl::StatusOr<std::vector<std::vector<WordTag>>> TagWords(
      Session& session, const std::vector<std::vector<std::string>>& sentences) {
    std::vector<Record> records;
    for (const auto& sentence : sentences) {
      records.emplace_back().kind = Record::Kind::kWords;
      records.back().words = sentence;
    }
    std::vector<std::vector<WordTag>> tags;
    const std::vector<std::string>& labels = session.config().labels;
    ASSIGN_OR_RETURN(const auto predictor,
        Predictor::Create(session, {.command = "tag", .source = {.name = "test"}, .decode = {}}));
    RETURN_IF_ERROR(
        predictor->Answer(records, [&](const Record&, const OrderedJson& answer) -> absl::Status {
          tags.emplace_back();
          for (size_t i = 0; i < answer["tags"].size(); ++i) {
            const auto label =
                std::find(labels.begin(), labels.end(), answer["tags"][i].get<std::string>());
            tags.back().push_back(
                {static_cast<int>(label - labels.begin()), answer["scores"][i].get<float>()});
          }
          return absl::OkStatus();
        }));
    cut_words_ = predictor->cut().words;
    return tags;
  }
  // The tags of one sentence.
  absl::StatusOr<std::vector<WordTag>> Tag(
      Session& session, const std::vector<std::string>& words) {
    const std::vector<std::vector<std::string>> sentences = {words};
    ASSIGN_OR_RETURN(auto tags, TagWords(session, sentences));
    return tags.front();
  }
  int64_t cut_words_ = 0;
};

TEST_F(TagWordsTest, WordsOutAreWordsIn) {
  const std::vector<std::string> labels = {"B-A", "I-A", "B-B", "I-B", "O"};
  for (const bool crf : {false, true}) {
    const auto session = Open(TaggerConfig(labels, crf));
    const SpanTags rules(labels);
    std::mt19937 random(5);
    std::vector<std::vector<std::string>> sentences(40);
    for (auto& sentence : sentences) {
      for (int n = random() % 30; n > 0; --n)
        sentence.push_back(RandomText(&random, random() % 20));
    }
    sentences[7].assign(500, "sats");
    const auto tags = TagWords(*session, sentences);
    ASSERT_TRUE(tags.ok()) << tags.status();
    ASSERT_EQ(tags->size(), sentences.size());
    EXPECT_GT(cut_words_, 0);
    for (size_t s = 0; s < sentences.size(); ++s) {
      ASSERT_EQ((*tags)[s].size(), sentences[s].size());
      int last = -1;
      for (const WordTag& tag : (*tags)[s]) {
        ASSERT_TRUE(rules.Follows(last, tag.label));
        last = tag.label;
        ASSERT_GT(tag.score, 0);
        ASSERT_LE(tag.score, 1.0001);
      }
      // A sentence does not depend on its neighbours.
      const auto alone = Tag(*session, sentences[s]);
      ASSERT_TRUE(alone.ok());
      EXPECT_EQ(LabelsOf(*alone), LabelsOf((*tags)[s]));
    }
  }
}

// A word of a long sentence has the logits of the window in which it stands most in the middle.
TEST_F(TagWordsTest, ReadsEachWordWhereItHasMostContext) {
  const auto session = Open(TaggerConfig({"A", "B", "C"}));
  const std::vector<std::string> letters = {
      "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"};
  const int64_t first[] = {0, 5};  // windows of ten words, half of them shared: 0-9, 5-12
  std::vector<float> score[2];
  for (const int w : {0, 1}) {
    const std::vector<std::string> part(letters.begin() + first[w],
        letters.begin() + std::min<int64_t>(first[w] + 10, letters.size()));
    const auto tags = Tag(*session, part);
    ASSERT_TRUE(tags.ok());
    for (const WordTag& tag : *tags) score[w].push_back(tag.score);
  }
  const auto tags = *Tag(*session, letters);
  for (int64_t i = 0; i < 13; ++i) {
    const bool second =
        i >= 5 && i - 5 > 9 - i;  // more behind it in the first, or more before it in the second?
    EXPECT_NEAR(tags[i].score, second ? score[1][i - 5] : score[0][i], 1e-6) << i;
  }
}

// "cats" is cat ##s, "abc" is a ##b ##c.
TEST_F(TagWordsTest, ReadsThePiecesThatTheFolderNames) {
  const std::vector<std::string> words = {"cats", "the", "abc", "the"};
  const std::vector<int> counts = {2, 1, 3, 1};
  for (const std::string pieces : {"", "last", "mean"}) {
    ModelConfig config = TaggerConfig({"A", "B", "C"});
    if (!pieces.empty()) config.task_fields["pieces"] = pieces;
    const auto session = Open(config);
    const Encoding encoding = (*session->TokenizerOr())->EncodeWords(words);
    Query query;
    query.ids = encoding.ids;
    query.second = static_cast<int32_t>(query.ids.size());
    SetAllRows(&query);
    std::vector<std::vector<float>> expected;  // probabilities of each word
    const auto visit = [&](int64_t, ConstMat logits) {
      for (int64_t w = 0, row = 1; w < 4; row += counts[w++]) {
        const int64_t begin = pieces == "last" ? row + counts[w] - 1 : row,
                      end = pieces == "mean" ? row + counts[w] : begin + 1;
        std::vector<float>& p = expected.emplace_back(3);
        for (int64_t r = begin; r < end; ++r) {
          for (int i = 0; i < 3; ++i) p[i] += logits.f32(r)[i] / (end - begin);
        }
        Softmax(p.data(), 3);
      }
    };
    ASSERT_TRUE(session->Logits({&query, 1}, visit).ok());
    const auto tags = Tag(*session, words);
    ASSERT_TRUE(tags.ok()) << tags.status();
    for (int w = 0; w < 4; ++w)
      EXPECT_NEAR((*tags)[w].score, expected[w][(*tags)[w].label], 1e-6) << pieces << " " << w;
  }
}

TEST_F(TagWordsTest, WindowsAreThoseOfTraining) {
  ModelConfig config = TaggerConfig({"A", "B"});
  config.task_fields["window"] = 5;
  const auto session = Open(config);
  EXPECT_EQ(session->config().task_fields["window"], 5);
  ASSERT_TRUE(Tag(*session, {"abcd"}).ok());
  EXPECT_EQ(cut_words_, 1);
}

}  // namespace
}  // namespace cloze
