#include "tools/input.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/base/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Record::Kind;

InputOptions FormatIs(const std::string& format, const std::string& path = "-") {
  InputOptions options;
  options.format = format;
  options.path = path;
  return options;
}

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

Record JsonRecord(const std::string& line) {
  const auto records = ReadAll(line, FormatIs("jsonl"));
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
  const auto records = ReadAll("one\n\n \t \r\ntwo\r\n\xFF three" + std::string(1000, '\n'), {});
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 3);
  EXPECT_EQ((*records)[1].text, "two");
  EXPECT_EQ((*records)[1].line, 4);
  EXPECT_EQ((*records)[2].text, "\xFF three");
  EXPECT_TRUE(ReadAll("", {})->empty());
}

// "text|pair" of all records, or the error.
std::vector<std::string> Texts(InputReader* reader) {
  std::vector<std::string> texts;
  std::vector<Record> records;
  absl::Status status;
  do {
    status = reader->Next(&records);
    for (const Record& record : records) texts.push_back(record.text + "|" + record.text_pair);
  } while (status.ok() && !records.empty());
  if (!status.ok()) texts.push_back(std::string(status.message()));
  return texts;
}

std::vector<std::string> FromFile(const std::string& content, InputOptions options) {
  options.path = TemporaryFolder() + "/in";
  std::ofstream(options.path, std::ios::binary) << content;
  InputReader reader = *InputReader::Open(options);
  return Texts(&reader);
}

// Reads standard input, which gives `part` bytes at a time.
std::vector<std::string> FromPipe(
    const std::string& content, size_t part, const InputOptions& options) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const int saved = dup(0);
  dup2(ends[0], 0);
  close(ends[0]);
  InputReader reader = *InputReader::Open(options);
  std::thread writer([&] {
    for (size_t at = 0; at < content.size(); at += part)
      send(ends[1], content.data() + at, std::min(part, content.size() - at), MSG_NOSIGNAL);
    close(ends[1]);
  });
  const std::vector<std::string> texts = Texts(&reader);
  writer.join();
  dup2(saved, 0);
  close(saved);
  return texts;
}

// The form of a file that `text` has, which is UTF-8.
std::string InUtf16(const std::string& text) {
  std::string wide = "\xFF\xFE";
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    wide += static_cast<char>(c.value & 0xFF);
    wide += static_cast<char>(c.value >> 8);
    at += c.size;
  }
  return wide;
}
std::string InLatin1(const std::string& text) {
  std::string latin;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    latin += static_cast<char>(c.value);
    at += c.size;
  }
  return latin;
}

// The settings of the training data decide only what a file leaves open, the same for files and
// pipes.
TEST(InputReader, EachFileTellsItsForm) {
  const struct {
    const char *format, *content;
  } kInputs[] = {{"text", "W\u00E4rme l\u00E4uft\tx\n\nx\ty\n"},
      {"csv", "id,text,pair\n1,W\u00E4rme l\u00E4uft,x\n2,x,y\n"},
      {"csv", "id;text;pair\r\n1;W\u00E4rme l\u00E4uft;x\r\n2;x;y\r\n"},
      {"csv", "\"text\"|\"pair\"\n\"W\u00E4rme l\u00E4uft\"|x\nx|y\n"},
      {"csv", "text\tpair\nW\u00E4rme l\u00E4uft\tx\nx\ty"},
      {"tsv", "text\tpair\nW\u00E4rme l\u00E4uft\tx\nx\ty\n"},
      {"tsv", "text;pair\nW\u00E4rme l\u00E4uft;x\nx;y\n"},
      {"jsonl",
          "{\"text\": \"W\u00E4rme l\u00E4uft\", \"pair\": \"x\"}\n{\"text\": \"x\", \"pair\": "
          "\"y\"}"}};
  const auto expected = ElementsAre("W\u00E4rme l\u00E4uft|x", "x|y");
  for (const auto& [format, content] : kInputs) {
    const std::string text = content;
    for (const auto encoding :
        {DataSpec::UTF8, DataSpec::LATIN1, DataSpec::UTF16, DataSpec::WINDOWS1252}) {
      const bool latin = encoding == DataSpec::LATIN1 || encoding == DataSpec::WINDOWS1252;
      for (const char* delimiter : {"", ",", ";", "\t"}) {
        InputOptions options = FormatIs(format);
        options.pairs = true;
        options.data.set_encoding(encoding);
        options.data.set_delimiter(delimiter);
        options.data.set_text_pair_field("pair");
        std::vector<std::string> forms = {text, "\xEF\xBB\xBF" + text, InUtf16(text)};
        if (latin && options.format != "jsonl") forms.push_back(InLatin1(text));
        for (const std::string& form : forms) {
          EXPECT_THAT(FromFile(form, options), expected) << format << encoding << delimiter << form;
          for (const size_t part : {1, 2, 7, 1000})
            EXPECT_THAT(FromPipe(form, part, options), expected) << format << encoding << form;
        }
      }
    }
  }
}

TEST(InputReader, JsonIsUtf8) {
  InputOptions options = FormatIs("jsonl");
  options.data.set_encoding(DataSpec::WINDOWS1252);
  EXPECT_THAT(FromFile("{\"text\": \"caf\xE9\"}\n", options),
      ElementsAre(HasSubstr("JSON is UTF-8, but this is perhaps Windows-1252")));
}

// A model of a file without a header reads others with one.
TEST(InputReader, AHeaderIsNoText) {
  InputOptions options = FormatIs("csv");
  options.data.set_header(false);
  options.data.set_text_field("1");
  for (const char* table :
      {"text,label\ncaf\u00E9,x\n", "\xEF\xBB\xBFtext\ncaf\u00E9\n", "caf\u00E9,x\n"}) {
    EXPECT_THAT(FromFile(table, options), ElementsAre("caf\u00E9|")) << table;
    EXPECT_THAT(FromPipe(table, 1, options), ElementsAre("caf\u00E9|")) << table;
  }
  options.text_field = "text";
  EXPECT_THAT(FromFile("frob,text,more\na,b,c\n", options), ElementsAre("b|"));
}

TEST(InputReader, RefusesInputThatIsNotUtf8AtItsEnd) {
  for (const char* format : {"text", "csv", "fasttext"}) {
    for (const bool skip_bad : {false, true}) {
      InputOptions options = FormatIs(format);
      options.skip_bad = skip_bad;
      const auto texts = FromFile("text\ncaf\xE9\nx\n", options);
      EXPECT_THAT(texts.back(),
          HasSubstr("in:2: not UTF-8, perhaps Windows-1252 or Latin-1; 1 of 3 lines"));
      EXPECT_EQ(texts.size(), format == std::string("csv") ? 3 : 4) << "after the answers";
    }
  }
}

// A cell that is repeated beside an answer keeps its bytes.
TEST(InputReader, KeepsCellsByteForByte) {
  InputOptions options = FormatIs("csv", TemporaryFolder() + "/in");
  options.keep = true;
  std::ofstream(options.path, std::ios::binary)
      << "id,text,\"a\r\nb\"\r\n 7 ,\"x\r\ny\nz\"\"\",\t\"q\" \r\n";
  InputReader reader = *InputReader::Open(options);
  std::vector<Record> records;
  ASSERT_TRUE(reader.Next(&records).ok());
  EXPECT_THAT(reader.columns(), ElementsAre("id", "text", "a\r\nb"));
  ASSERT_EQ(records.size(), 1);
  EXPECT_THAT(records[0].cells, ElementsAre(" 7 ", "x\r\ny\nz\"", "\t\"q\" "));
  EXPECT_EQ(records[0].text, "x\ny\nz\"") << "as before, for the tokenizer";
}

// The writer waits for the answer to the first object.
TEST(InputReader, ReturnsObjectsOfAnArrayAsTheyCome) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string path = absl::StrCat("/dev/fd/", ends[0]);
  InputReader reader = *InputReader::Open(FormatIs("jsonl", path));
  const std::string parts[] = {"[{\"text\": \"a\"},\n", "{\"text\": \"b\"}]\n"};
  for (const std::string& part : parts) {
    ASSERT_EQ(write(ends[1], part.data(), part.size()), part.size());
    std::vector<Record> records;
    ASSERT_TRUE(reader.Next(&records).ok());
    EXPECT_EQ(records.size(), 1);
  }
  close(ends[0]), close(ends[1]);
}

TEST(InputReader, ReadsPairs) {
  InputOptions pairs;
  pairs.pairs = true;
  const auto records = ReadAll("a\tb\tc\n", pairs);
  EXPECT_EQ(records->front().kind, Kind::kPair);
  EXPECT_EQ(records->front().text_pair, "b\tc");
  EXPECT_THAT(ErrorOf("a\tb\nc\n", pairs), HasSubstr("input:2: no tab"));
}

TEST(InputReader, ReadsJson) {
  const Record text = JsonRecord(R"({"x": [{"text": 1}], "text": "a\u00e9", "id": 7})");
  EXPECT_EQ(text.kind, Kind::kText);
  EXPECT_EQ(text.text, "a\xC3\xA9");
  EXPECT_EQ(text.id, "7");
  EXPECT_EQ(JsonRecord(R"({"text_a": "x", "text_b": "y", "id": "\n"})").id, "\"\\n\"");
  EXPECT_EQ(JsonRecord(R"({"text": "x", "text_pair": "y"})").kind, Kind::kPair);
  EXPECT_EQ(JsonRecord(R"({"text": "x", "text_pair": null})").kind, Kind::kText);
  EXPECT_THAT(JsonRecord(R"({"words": ["x", ""]})").words, ElementsAre("x", ""));
  EXPECT_THAT(JsonRecord(R"({"ids": [0, 2147483647]})").ids, ElementsAre(0, 2147483647));
  EXPECT_EQ(JsonRecord(R"({"ids": [1], "tokens": ["x"], "text": "x"})").kind, Kind::kText);
  EXPECT_EQ(JsonRecord(R"({"ids": [1, 2, 3]})").second, -1);
  EXPECT_EQ(JsonRecord(R"({"ids": [1, 2, 3], "token_type_ids": [0, 0, 0]})").second, 3);
  EXPECT_EQ(JsonRecord(R"({"ids": [1, 2, 3], "token_type_ids": [0, 1, 1]})").second, 1);
}

TEST(InputReader, FindsTheWordsOfTheSpec) {
  DataSpec data;
  data.set_words_field("forms");
  InputOptions options = FormatIs("jsonl");
  options.data = data;
  for (const char* line : {R"({"forms": ["a", "b"]})", R"({"tokens": ["a", "b"]})"}) {
    const auto records = ReadAll(line, options);
    ASSERT_TRUE(records.ok()) << records.status();
    EXPECT_THAT(records->at(0).words, ElementsAre("a", "b")) << line;
  }
  EXPECT_THAT(ErrorOf(R"({"forms": "a b"})", options), HasSubstr("\"forms\""));
}

TEST(InputReader, RefusesJsonWithLineAndMember) {
  const InputOptions json = FormatIs("jsonl");
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
  InputOptions options = FormatIs("jsonl");
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
  InputOptions ids = FormatIs("ids");
  ids.vocab_size = 5;
  const auto records = ReadAll("1  2\t3\n{\"ids\": [4]}\n", ids);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT((*records)[0].ids, ElementsAre(1, 2, 3));
  EXPECT_THAT((*records)[1].ids, ElementsAre(4));
  EXPECT_EQ((*records)[1].kind, Kind::kIds);
  EXPECT_THAT(ErrorOf("1 x", FormatIs("ids")), HasSubstr("input:1: \"x\" is not a token id"));
  EXPECT_THAT(ErrorOf("1\n99999999999", FormatIs("ids")),
      HasSubstr("input:2: \"99999999999\" is not a token id"));
  EXPECT_THAT(ErrorOf("5", ids), HasSubstr("whose ids are 0 to 4"));
}

TEST(InputReader, ReturnsGoodRecordsBeforeAnError) {
  InputOptions options = FormatIs("ids", TemporaryFolder() + "/input");
  std::ofstream(options.path) << "1\n2\nx\n3\n";
  InputReader reader = *InputReader::Open(options);
  std::vector<Record> records;
  ASSERT_TRUE(reader.Next(&records).ok());
  EXPECT_EQ(records.size(), 2);
  EXPECT_FALSE(reader.Next(&records).ok());
}

TEST(InputReader, RefusesEndlessLines) {
  EXPECT_THAT(ErrorOf("a\n" + std::string(kRowBytes + 10, 'x'), {}),
      HasSubstr("input:2: the line is longer than"));
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
