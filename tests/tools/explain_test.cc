// `--explain` of predict and tag.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kReleaseRuns = CLOZE_SOURCE_DIR "/tests/golden/release_0.1/runs/";

std::vector<json> Answers(
    const std::string& command, const std::string& lines, const std::string& format = "jsonl") {
  const RunResult result =
      RunCloze(command + " --input-format " + format, "printf '" + lines + "' | ");
  EXPECT_EQ(result.exit, 0) << result.err;
  return JsonLines(result.out);
}

TEST(Explain, EffectsAreThoseOfTextsWithoutTheWord) {
  const std::string predict = "predict --model " + kReleaseRuns + "classifier ";
  const json answer = Answers(predict + "--explain", "the c\\303\\244t sat\\n\\n", "text")[0];
  const json whole = Answers(predict, "the c\\303\\244t sat\\n", "text")[0];
  EXPECT_EQ(answer["scores"], whole["scores"]) << "explanations change no answer";
  const json& words = answer["explanation"];
  ASSERT_EQ(words.size(), 3);
  EXPECT_EQ(words[1]["text"], "c\u00e4t");
  EXPECT_EQ(words[1]["start"], 4);
  EXPECT_EQ(words[1]["end"], 7);
  EXPECT_EQ(words[1]["byte_start"], 4);
  EXPECT_EQ(words[1]["byte_end"], 8);
  const std::string label = answer["label"];
  const auto without = Answers(predict, "c\\303\\244t sat\\nthe sat\\nthe c\\303\\244t\\n", "text");
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(words[i]["effect"].get<double>(),
        answer["scores"][label].get<double>() - without[i]["scores"][label].get<double>(), 2e-6);
}

TEST(Explain, PairsNumbersAndSeveralLabels) {
  const json pair = Answers("predict --explain --model " + kReleaseRuns + "pairs",
      "{\"first\": \"a b\", \"second\": \"c\"}\\n")[0];
  ASSERT_EQ(pair["explanation"].size(), 3) << pair;
  EXPECT_EQ(pair["explanation"][1]["field"], "text");
  EXPECT_EQ(pair["explanation"][2]["field"], "text_pair");
  EXPECT_EQ(pair["explanation"][2]["start"], 0);
  const json number =
      Answers("predict --explain --model " + kReleaseRuns + "regression", "a b\\n", "text")[0];
  EXPECT_TRUE(number["explanation"][0]["effect"].is_number());
  const json several =
      Answers("predict --explain --model " + kReleaseRuns + "several", "a b\\n", "text")[0];
  EXPECT_GE(several["explanation"][0]["effects"].size(), 1);
}

TEST(Explain, TablesHaveTheWordsInAColumn) {
  const RunResult table = RunCloze(
      "predict --explain --format csv --text-field t --model " + kReleaseRuns + "classifier",
      "printf 't\\n\"\"\\nthe cat sat\\n' | ");
  EXPECT_EQ(table.exit, 0) << table.err;
  EXPECT_THAT(table.out.substr(0, table.out.find('\n')), HasSubstr("explanation"));
}

TEST(Explain, LongTextsAreLeftOutInRuns) {
  const RunResult result = RunCloze("predict --explain --model " + kReleaseRuns + "classifier",
      "yes word | head -n 600 | tr '\\n' ' ' | ");
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("longer than 256 words: 1 text"));
  const json words = JsonLines(result.out)[0]["explanation"];
  EXPECT_LE(words.size(), 256);
  EXPECT_EQ(words[0]["text"], "word word word");
}

TEST(Explain, TagsAndEntities) {
  const json text = Answers(
      "tag --explain --model " + kReleaseRuns + "tagger", "the cat sat on the mat\\n", "text")[0];
  ASSERT_TRUE(text.contains("entities")) << text;
  for (const json& entity : text["entities"]) {
    ASSERT_TRUE(entity["explanation"].is_array());
    EXPECT_LE(entity["explanation"].size(), 5);
    double before = INFINITY;
    for (const json& word : entity["explanation"]) {
      const double effect = std::fabs(word["effect"].get<double>());
      EXPECT_LE(effect, before);
      before = effect;
    }
  }
  const json words = Answers("tag --explain --model " + kReleaseRuns + "plain_tagger",
      "{\"tokens\": [\"the\", \"cat\"]}\\n")[0];
  ASSERT_EQ(words["explanation"].size(), 2) << words;
  EXPECT_EQ(words["tags"].size(), 2);
}

TEST(Explain, PageMarksWordsAndEscapesThem) {
  const RunResult page =
      RunCloze("predict --explain --format html --model " + kReleaseRuns + "classifier",
          "printf 'the <b>cat</b>\\n' | ");
  EXPECT_EQ(page.exit, 0) << page.err;
  EXPECT_THAT(page.out, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page.out, HasSubstr(">&lt;</mark>"));
  EXPECT_THAT(page.out, HasSubstr(">cat</mark>"));
  EXPECT_THAT(page.out, Not(HasSubstr("<b>cat")));
}

TEST(Explain, SaysWhatItDoesNotDo) {
  const std::string model = " --model " + kReleaseRuns;
  const auto error = [&](const std::string& arguments, int exit) {
    const RunResult result = RunCloze(arguments, "echo a | ");
    EXPECT_EQ(result.exit, exit) << result.err;
    return result.err;
  };
  EXPECT_THAT(
      error("predict --format html" + model + "classifier", 2), HasSubstr("expected --explain"));
  EXPECT_THAT(
      error("predict --out a.html" + model + "classifier", 2), HasSubstr("expected --explain"));
  EXPECT_THAT(error("tag --explain --input-format conll" + model + "tagger", 2),
      HasSubstr("not for CoNLL files"));
  EXPECT_THAT(
      error("predict --explain --model " CLOZE_SOURCE_DIR "/tests/golden/question_answering", 76),
      HasSubstr("answers of classifiers, regressions and taggers can be explained"));
}

}  // namespace
}  // namespace cloze
