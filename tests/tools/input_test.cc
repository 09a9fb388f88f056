#include "tools/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Record::Kind;

// Returns all records of `content`, in one batch.
absl::StatusOr<std::vector<Record>> ReadAll(const std::string& content, InputOptions options) {
  options.path = TemporaryFolder() + "/input";
  options.records = 3;
  std::ofstream(options.path, std::ios::binary) << content;
  ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(options));
  std::vector<Record> all, records;
  do {
    RETURN_IF_ERROR(reader.Next(&records));
    EXPECT_LE(records.size(), 3);
    all.insert(all.end(), records.begin(), records.end());
  } while (!records.empty());
  return all;
}

Record Json(const std::string& line) {
  const auto records = ReadAll(line, {.format = "jsonl"});
  EXPECT_TRUE(records.ok()) << records.status();
  return records.ok() && records->size() == 1 ? records->front() : Record();
}

std::string ErrorOf(const std::string& content, const InputOptions& options) {
  const auto records = ReadAll(content, options);
  EXPECT_EQ(ExitOf(records.status()), Exit::kData) << content;
  const std::string message(records.status().message());
  return message.substr(
      message.find("/input:") == std::string::npos ? 0 : message.find("/input:") + 1);
}

TEST(InputReader, ReadsLinesOfText) {
  const auto records = ReadAll("one\n\n \t \r\ntwo\r\n\xFF three", {});
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 3);
  EXPECT_EQ((*records)[1].text, "two");
  EXPECT_EQ((*records)[1].line, 4);
  EXPECT_EQ((*records)[2].text, "\xFF three");
  EXPECT_TRUE(ReadAll("", {})->empty());
}

TEST(InputReader, FilesHaveTheEncodingOfTheSpec) {
  InputOptions options{.format = "jsonl"};
  options.data.set_encoding(DataSpec::WINDOWS1252);
  EXPECT_EQ(ReadAll("{\"text\": \"caf\xE9\"}\n", options)->front().text, "caf\u00E9");
  options.format = "text";
  EXPECT_EQ(ReadAll("caf\xE9\n", options)->front().text, "caf\u00E9");
}

TEST(InputReader, ReadsPairs) {
  const auto records = ReadAll("a\tb\tc\n", {.pairs = true});
  EXPECT_EQ(records->front().kind, Kind::kPair);
  EXPECT_EQ(records->front().text_pair, "b\tc");
  EXPECT_THAT(ErrorOf("a\tb\nc\n", {.pairs = true}), HasSubstr("input:2: no tab"));
}

TEST(InputReader, ReadsJson) {
  const Record text = Json(R"({"x": [{"text": 1}], "text": "a\u00e9", "id": 7})");
  EXPECT_EQ(text.kind, Kind::kText);
  EXPECT_EQ(text.text, "a\xC3\xA9");
  EXPECT_EQ(text.id, "7");
  EXPECT_EQ(Json(R"({"text_a": "x", "text_b": "y", "id": "\n"})").id, "\"\\n\"");
  EXPECT_EQ(Json(R"({"text": "x", "text_pair": "y"})").kind, Kind::kPair);
  EXPECT_EQ(Json(R"({"text": "x", "text_pair": null})").kind, Kind::kText);
  EXPECT_THAT(Json(R"({"words": ["x", ""]})").words, ElementsAre("x", ""));
  EXPECT_THAT(Json(R"({"ids": [0, 2147483647]})").ids, ElementsAre(0, 2147483647));
  EXPECT_EQ(Json(R"({"ids": [1], "tokens": ["x"], "text": "x"})").kind, Kind::kText);
  EXPECT_EQ(Json(R"({"ids": [1, 2, 3]})").second, -1);
  EXPECT_EQ(Json(R"({"ids": [1, 2, 3], "token_type_ids": [0, 0, 0]})").second, 3);
  EXPECT_EQ(Json(R"({"ids": [1, 2, 3], "token_type_ids": [0, 1, 1]})").second, 1);
}

TEST(InputReader, FindsTheWordsOfTheSpec) {
  DataSpec data;
  data.set_words_field("forms");
  const InputOptions options{.format = "jsonl", .data = data};
  for (const char* line : {R"({"forms": ["a", "b"]})", R"({"tokens": ["a", "b"]})"}) {
    const auto records = ReadAll(line, options);
    ASSERT_TRUE(records.ok()) << records.status();
    EXPECT_THAT(records->at(0).words, ElementsAre("a", "b")) << line;
  }
  EXPECT_THAT(ErrorOf(R"({"forms": "a b"})", options), HasSubstr("\"forms\""));
}

TEST(InputReader, RefusesJsonWithLineAndMember) {
  const InputOptions json{.format = "jsonl"};
  EXPECT_EQ(
      ErrorOf("{\"text\":\"a\"}\n\n{\"text\":1}", json), "input:3: \"text\": expected a string");
  EXPECT_EQ(ErrorOf("{\"text\":[\"a\"]}", json), "input:1: \"text\": expected a string");
  InputOptions named = json;
  named.text_field = "body";
  EXPECT_EQ(ErrorOf("{\"body\":1}", named), "input:1: \"body\": expected a string");
  EXPECT_EQ(ErrorOf("{\"words\":\"a\"}", json), "input:1: \"words\": expected a list of strings");
  EXPECT_EQ(ErrorOf("{\"words\":[\"a\",[\"b\"]]}", json),
      "input:1: \"words\": expected a list of strings");
  EXPECT_EQ(ErrorOf("{\"ids\":[1.5]}", json), "input:1: \"ids\": 1.5 is not a token id");
  for (const char* types : {"[0]", "[0,1,0]", "[0,0,2]", "0", "[0,0,\"\"]"}) {
    EXPECT_EQ(ErrorOf(absl::StrCat("{\"ids\":[1,2,3],\"token_type_ids\":", types, "}"), json),
        "input:1: \"token_type_ids\": expected a 0 or 1 for each of \"ids\", first all 0");
  }
  EXPECT_EQ(ErrorOf("{\"ids\":[-1]}", json), "input:1: \"ids\": -1 is not a token id");
  EXPECT_EQ(
      ErrorOf("{\"text\":\"a\",\"adapter\":3}", json), "input:1: \"adapter\": expected a string");
  EXPECT_EQ(ErrorOf("{\"ids\":[18446744073709551615]}", json),
      "input:1: \"ids\": 18446744073709551615 is not a token id");
  EXPECT_EQ(
      ErrorOf("{\"text\":\"a\",\"text\":\"b\"}", json), "input:1: member \"text\" is given twice");
  EXPECT_EQ(
      ErrorOf("{\"text_pair\":\"a\"}", json), "input:1: \"text_pair\" is given without \"text\"");
  EXPECT_EQ(ErrorOf("{\"txt\":\"a\"}", json), "input:1: no member \"text\", \"words\" or \"ids\"");
  EXPECT_EQ(ErrorOf("[\"text\"]", json),
      "input:1: expected an array of objects with commas between them");
  EXPECT_EQ(ErrorOf("\"text\"", json), "input:1: expected a JSON object");
  EXPECT_THAT(ErrorOf("{\"text\":\"a\"", json), HasSubstr("input:1: not valid JSON at byte"));
  EXPECT_THAT(ErrorOf("{\"text\":\"\xFF\"}", json), HasSubstr("not valid JSON at byte"));
  EXPECT_THAT(
      ErrorOf("{\"x\":" + std::string(1000000, '['), json), HasSubstr("nested deeper than 64"));
}

TEST(InputReader, ReadsArraysOfObjects) {
  InputOptions options = {.format = "jsonl"};
  const auto records = ReadAll(
      "[{\"text\": \"a\"}, {\"text\":\n \"b ]}\"},\n\n{\"words\": [\"c\", \"d\"]}\n, {\"text\": "
      "\"e\"}]\n",
      options);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 4);
  EXPECT_EQ((*records)[1].text, "b ]}");
  EXPECT_EQ((*records)[1].line, 1);
  EXPECT_THAT((*records)[2].words, ElementsAre("c", "d"));
  EXPECT_EQ((*records)[3].line, 5);
  EXPECT_THAT(std::string(ReadAll("[{\"text\": \"a\"}", options).status().message()),
      HasSubstr("input:1: the array that begins the file is not closed"));
  EXPECT_THAT(
      std::string(ReadAll("[{\"text\": \"a\"},\n{\"text\": 1}]", options).status().message()),
      HasSubstr("input:2: \"text\": expected a string"));
}

TEST(InputReader, ReadsIds) {
  const auto records = ReadAll("1  2\t3\n{\"ids\": [4]}\n", {.format = "ids", .vocab_size = 5});
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT((*records)[0].ids, ElementsAre(1, 2, 3));
  EXPECT_THAT((*records)[1].ids, ElementsAre(4));
  EXPECT_EQ((*records)[1].kind, Kind::kIds);
  EXPECT_THAT(ErrorOf("1 x", {.format = "ids"}), HasSubstr("input:1: \"x\" is not a token id"));
  EXPECT_THAT(ErrorOf("1\n99999999999", {.format = "ids"}),
      HasSubstr("input:2: \"99999999999\" is not a token id"));
  EXPECT_THAT(ErrorOf("5", {.format = "ids", .vocab_size = 5}), HasSubstr("whose ids are 0 to 4"));
}

TEST(InputReader, ReturnsGoodRecordsBeforeAnError) {
  InputOptions options{.path = TemporaryFolder() + "/input", .format = "ids"};
  std::ofstream(options.path) << "1\n2\nx\n3\n";
  InputReader reader = *InputReader::Open(options);
  std::vector<Record> records;
  ASSERT_TRUE(reader.Next(&records).ok());
  EXPECT_EQ(records.size(), 2);
  EXPECT_FALSE(reader.Next(&records).ok());
}

TEST(InputReader, RefusesEndlessLines) {
  EXPECT_THAT(ErrorOf("a\n" + std::string(InputReader::kMaxLineBytes + 10, 'x'), {}),
      HasSubstr("input:2: a line of more than"));
}

TEST(InputReader, DoesNotWaitForMoreThanTheFirstLine) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int saved = dup(0);
  dup2(ends[0], 0);
  InputReader reader = *InputReader::Open({});
  dup2(saved, 0);
  close(saved), close(ends[0]);
  std::vector<Record> records;
  ASSERT_EQ(write(ends[1], "a\n", 2), 2);
  ASSERT_TRUE(reader.Next(&records).ok());
  EXPECT_EQ(records.size(), 1);
  ASSERT_EQ(write(ends[1], "b\nc\nd", 5), 5);
  ASSERT_TRUE(reader.Next(&records).ok());
  EXPECT_EQ(records.size(), 2);
  close(ends[1]);
  ASSERT_TRUE(reader.Next(&records).ok());
  ASSERT_EQ(records.size(), 1);
  EXPECT_EQ(records[0].text, "d");
}

}  // namespace
}  // namespace cloze
