#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kFolders = CLOZE_SOURCE_DIR "/tests/golden/release_0.1/runs/";
const std::string kScore = "score --model " + kFolders + "post_norm ";

std::vector<json> Score(const std::string& arguments, const std::string& before = "") {
  const RunResult result = RunCloze(kScore + arguments, before);
  EXPECT_EQ(result.exit, 0) << result.err;
  return JsonLines(result.out);
}

TEST(Score, PrintsTheSumOverTheTokens) {
  const auto lines = Score("--tokens", "printf 'a b c\\nthe sea\\n' | ");
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0]["text"], "a b c");
  EXPECT_EQ(lines[0]["token_count"], 3);
  for (const json& line : lines) {
    double sum = 0;
    for (const json& token : line["token_scores"]) sum += token["score"].get<double>();
    EXPECT_LT(sum, 0);
    EXPECT_NEAR(line["score"], sum, 1e-4);
  }
}

TEST(Score, TakesIdsWordsAndPairs) {
  const json ids = Score("--input-format ids", "echo '5 6 7' | ")[0];
  EXPECT_EQ(ids["ids"], json({5, 6, 7}));
  EXPECT_EQ(ids["token_count"], 3);
  EXPECT_LT(ids["score"], 0);
  const std::string texts = TemporaryFolder() + "/texts.jsonl";
  std::ofstream(texts) << R"({"words": ["a", "b"]})"
                       << "\n"
                       << R"({"text": "a b"})"
                       << "\n"
                       << R"({"text": "a b", "text_pair": "c"})"
                       << "\n";
  const auto lines = Score(texts);
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0]["score"], lines[1]["score"]);
  EXPECT_EQ(lines[2]["token_count"], 3);
  EXPECT_LT(lines[2]["score"], lines[1]["score"]);
}

TEST(Score, EmptyTextsHaveNoScore) {
  const RunResult lines = RunCloze(kScore + "--tokens", "printf 'a b\\n\\n \\t\\na\\n' | ");
  ASSERT_EQ(lines.exit, 0) << lines.err;
  const auto answers = JsonLines(lines.out);
  ASSERT_EQ(answers.size(), 4);
  EXPECT_EQ(answers[1], json({{"text", ""}, {"score", nullptr}, {"token_count", 0},
                            {"token_scores", json::array()}}));
  EXPECT_EQ(answers[2]["score"], nullptr);
  EXPECT_THAT(lines.err, HasSubstr("empty: 2 texts, without a score"));
  EXPECT_EQ(Score("--input-format ids", "printf '\\n5 6\\n' | ").size(), 2);
  const std::string folder = TemporaryFolder();
  std::ofstream(folder + "/one.csv") << "text\na b\n\n\"\"\n";
  std::ofstream(folder + "/none.csv") << "id,text\n";
  EXPECT_THAT(
      RunCloze(kScore + "--format csv " + folder + "/one.csv").out, HasSubstr("\n,,0\n,,0\n"));
  EXPECT_EQ(
      RunCloze(kScore + "--format csv " + folder + "/none.csv").out, "id,text,score,token_count\n");
}

TEST(Score, ATableKeepsItsForm) {
  const std::string table = TemporaryFolder() + "/table.csv";
  std::ofstream(table) << "\xEF\xBB\xBFid;text\r\n7;a b\r\n8;\r\n";
  EXPECT_THAT(RunCloze(kScore + "--format csv " + table).out,
      testing::MatchesRegex(
          "\xEF\xBB\xBFid;text;score;token_count\r\n7;a b;-[0-9.]+;2\r\n8;;;0\r\n"));
}

TEST(Score, CountsPairsByGroup) {
  const std::string pairs = TemporaryFolder() + "/pairs.jsonl",
                    table = TemporaryFolder() + "/pairs.tsv";
  std::ofstream(pairs) << R"({"good": "a b", "bad": "a b c a b c", "kind": "x"})"
                       << "\n"
                       << R"({"good": "a b c a b c", "bad": "a b", "kind": "y"})"
                       << "\n"
                       << R"({"good": "a b", "bad": "a b", "kind": "y"})"
                       << "\n";
  const auto lines = Score("--pairs --by kind " + pairs);
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0], json::parse(R"({"kind": "x", "pairs": 1, "accuracy": 1, "ties": 0,
                                      "accuracy_with_ties": 1})"));
  EXPECT_EQ(lines[1], json::parse(R"({"kind": "y", "pairs": 2, "accuracy": 0, "ties": 1,
                                      "accuracy_with_ties": 0.5})"));
  EXPECT_EQ(lines[2]["pairs"], 3);
  std::ofstream(table) << "bad\tgood\na b c a b c\ta b\n";
  EXPECT_EQ(Score("--pairs " + pairs + " " + table)[0]["pairs"], 4);
  EXPECT_EQ(Score("--pairs", "cat " + pairs + " | ")[0]["pairs"], 3);
  std::ofstream(table) << "bad|good\na b c a b c|a b\n";
  EXPECT_EQ(Score("--pairs --set 'delimiter=|' " + table)[0]["pairs"], 1);
}

TEST(Score, AnswersTheLinesBeforeAWrongOne) {
  const RunResult result = RunCloze(kScore + "--input-format jsonl",
      R"(printf '{"text": "a"}\n{"text": "b", "adapter": "x"}\n{"text": "c"}\n' | )");
  EXPECT_EQ(result.exit, 65);
  EXPECT_THAT(result.err, HasSubstr("standard input:2: \"adapter\": unknown adapter x"));
  EXPECT_EQ(json::parse(result.out)["text"], "a");
}

TEST(Score, RefusesWhatItCannotScore) {
  const auto fails = [](const std::string& command, int exit, const std::string& says) {
    const RunResult result = RunCloze(command + " < /dev/null");
    EXPECT_EQ(result.exit, exit) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(says));
  };
  fails("score --model " + kFolders + "classifier", 76, "no head for masked_lm");
  fails(kScore + "--by kind", 2, "--by needs --pairs");
  fails(kScore + "--pairs --tokens", 2, "--tokens is for texts");
  fails(kScore + "--pairs", 65, "no pairs");
  fails(kScore + "--pairs --format csv", 2, "are for texts");
  fails(kScore + "--pairs --input-format csv", 2, "are for texts");
  fails(kScore + "--pairs --by pairs", 2, "a member of that name");
  const std::string link = TemporaryFolder() + "/link";
  std::filesystem::create_symlink("nothing", link);
  fails(kScore + "--out " + link, 73, "is not a file that can be replaced");
  const std::string there = TemporaryFolder() + "/there";
  std::ofstream(there) << "x";
  fails(kScore + "--pairs no.jsonl --out " + there, 73, "already exists");  // before it reads
  fails(kScore + "a b", 2, "several input files need --pairs");
  fails(kScore + "--pairs a.jsonl -", 2, "- is standard input: expected no files beside it");
  fails(kScore + "--pairs --out x.csv", 2, "--pairs prints JSON lines");
}

}  // namespace
}  // namespace cloze
