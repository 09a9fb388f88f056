// Tables in, tables out: `predict`, `tag` and `encode` read and write them with the run's fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "core/tensor/safetensors.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

// Made once: a classifier that was trained on the column "subject", and a tagger on XPOS.
class TablesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new std::string(TemporaryFolder());
    std::string text, table = "subject,queue\n", tags;
    for (int i = 0; i < 40; ++i) {
      text += "A great film and a dull movie was here.\n";
      table += i % 2 == 0 ? "a great film,pos\n" : "\"a dull, dull movie\",neg\n";
      tags += "1\tfilm\t_\tNOUN\tNN\t_\t_\t_\t_\t_\n2\twas\t_\tVERB\tVBD\t_\t_\t_\t_\t_\n\n";
    }
    Write("text.txt", text), Write("train.csv", table), Write("tags.conllu", tags);
    ASSERT_EQ(Run("vocab --size 80 --text text.txt --out vocab").exit, 0);
    Train("run", "sequence_classification",
        R"(files: "train.csv" text_field: "subject" label_field: "queue")");
    Train("tagger", "token_tagging", R"(files: "tags.conllu" tags_field: "XPOS")");
  }
  static void TearDownTestSuite() { delete dir_; }

  static std::string Path(const std::string& name) { return *dir_ + "/" + name; }
  static void Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  static std::string Read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }
  // Runs the program in the folder.
  static RunResult Run(const std::string& arguments, const std::string& input = "") {
    return RunCloze(arguments, "cd " + *dir_ + " && printf '" + input + "' | ");
  }
  static void Train(const std::string& name, const std::string& task, const std::string& data) {
    Write(name + ".textproto",
        "model { tokenizer: \"vocab\" encoder { preset: CUSTOM layers: 1 hidden: 16 heads: 2 "
        "intermediate: 16 max_positions: 32 } } " +
            task + " { max_tokens: 24 } train { " + data + " } validation { " + data +
            " } batch { tokens: 512 } optimizer { learning_rate: 0.01 } "
            "schedule { steps: 40 } output { directory: \"" +
            name + "\" }");
    const RunResult r = Run("finetune " + name + ".textproto");
    ASSERT_EQ(r.exit, 0) << r.err;
  }

  static std::string* dir_;
};
std::string* TablesTest::dir_ = nullptr;

// The columns of the run are read, all columns are kept, and quoting survives.
TEST_F(TablesTest, CsvInCsvOut) {
  Write(
      "new.csv", "id,subject,score\n007,\"a great\r\nfilm\",\"say \"\"x\"\"\"\n8,a dull movie,\n");
  const RunResult r = Run("predict --model run --format csv new.csv");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith("id,subject,score,label,predicted_score\n"
                                "007,\"a great\r\nfilm\",\"say \"\"x\"\"\",pos,0."));
  EXPECT_THAT(r.out, HasSubstr("\n8,a dull movie,,neg,0."));
  EXPECT_EQ(Run("predict --model run --format csv", "").out, "");
  const RunResult lines = Run("predict --model run new.csv");
  const json first = json::parse(lines.out.substr(0, lines.out.find('\n')));
  EXPECT_EQ(first["id"], "007");
  EXPECT_EQ(first["label"], "pos");
  const RunResult members = Run("predict --model run --format jsonl new.csv");
  EXPECT_THAT(members.out, StartsWith(R"({"id": "007", "subject": "a great\r\nfilm", "score": )"));
  const std::string tsv = "predict --model run --format tsv new.csv";
  EXPECT_THAT(
      Run(tsv).err, HasSubstr("new.csv:2: \"a great\\u{D}\\u{A}film\" has a tab or a line end"));
  const RunResult rows = Run(tsv + " --on-error line");
  EXPECT_EQ(rows.exit, 65);
  EXPECT_THAT(rows.out, HasSubstr("\n007\ta great  film\t"));
  EXPECT_THAT(rows.out, HasSubstr("\n8\ta dull movie\t"));
  Write("tab.csv", "subject,\"a\tb\"\na great film,1\n");
  EXPECT_EQ(Run("predict --model run --format tsv tab.csv").exit, 65);
  EXPECT_THAT(rows.out, HasSubstr("has a tab or a line end"));
}

TEST_F(TablesTest, AFolderWithoutASpecKnowsItsColumns) {
  std::filesystem::create_directory(Path("folder"));
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    std::filesystem::copy_file(Path("run/") + name, Path("folder/") + name);
  Write("new2.csv", "id,subject\n1,a great film\n");
  const RunResult r = Run("predict --model folder --format csv new2.csv");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith("id,subject,label,score\n1,a great film,pos,"));
}

TEST_F(TablesTest, ColumnsCanBeNamed) {
  Write("other.tsv", "key\tbody\nx\ta great film\n");
  const RunResult r = Run("predict --model run --text-field body --id-field key other.tsv");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(json::parse(r.out)["id"], "x");
  const RunResult wrong = Run("predict --model run other.tsv");
  EXPECT_EQ(wrong.exit, 65);
  EXPECT_THAT(wrong.err,
      HasSubstr("other.tsv:1: text_field: no column \"subject\"; there are \"key\", \"body\""));
  EXPECT_THAT(Run("predict --model run --text-field body --id-field k other.tsv").err,
      HasSubstr("id_field: no column \"k\""));
}

TEST_F(TablesTest, JsonLinesKeepTheirBytes) {
  const std::string lines =
      R"({"subject":"a great film","n":1.50,"label":null}\n{"n":2e3,"subject":"a dull movie"}\n)";
  const RunResult r = Run("predict --model run --format jsonl", lines);
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out,
      StartsWith(R"({"subject":"a great film","n":1.50,"label":null, "predicted_label": "pos")"));
  // The name of the first line stays.
  EXPECT_THAT(r.out, HasSubstr(R"({"n":2e3,"subject":"a dull movie", "predicted_label": "neg")"));
  const RunResult table = Run("predict --model run --input-format jsonl --format csv", lines);
  EXPECT_THAT(
      table.out, StartsWith("subject,n,label,predicted_label,score\na great film,1.50,,pos,"));
}

// What is not plain text is never read as lines without being asked for.
TEST_F(TablesTest, TablesAreNoTexts) {
  for (const std::string& input : {std::string("id,subject\\n1,a film\\n"),
           std::string(R"({"subject": "a film"}\n)"), std::string("# sent_id = 1\\n"),
           std::string("film\\tB-X\\n"), std::string("__label__x a film\\n")}) {
    const RunResult r = Run("predict --model run", input);
    EXPECT_EQ(r.exit, 65) << input;
    EXPECT_THAT(r.err, HasSubstr("standard input:1: looks like "));
    EXPECT_EQ(Run("predict --model run --input-format text", input).exit, 0);
  }
  EXPECT_THAT(Run("predict --model run tags.conllu").err, HasSubstr("`cloze tag` reads CoNLL"));
}

TEST_F(TablesTest, OptionsWithoutEffectAreRefused) {
  Write("a.csv", "subject\na great film\n");
  Write("a.txt", "subject,k\n");
  for (const char* arguments :
      {"predict --model run --text-field subject", "predict --model run --id-field k a.txt",
          "encode --model run --pairs --pool mean --out - a.csv",
          "tokenize --model run --pairs a.csv", "tag --model tagger --out b.csv tags.conllu"}) {
    const RunResult r = Run(arguments, "subject\n");
    EXPECT_EQ(r.exit, 2) << arguments << "\n" << r.err;
  }
  EXPECT_EQ(Run("predict --model run '*.csv'").exit, 66);
  std::filesystem::create_directory(Path("more.csv"));
  EXPECT_THAT(Run("predict --model run more.csv").err, HasSubstr("is a folder: expected a file"));
}

// A row that is too long is one wrong row, and rows of a matrix keep their places.
TEST_F(TablesTest, LongRowsAreOneWrongRow) {
  Write("long.csv", "id,subject\n1,a film\n2," + std::string(20 << 20, 'x') + "\n3,a movie\n");
  const RunResult r =
      Run("encode --model run --pool mean --on-error line --out - --id-field id long.csv");
  EXPECT_EQ(r.exit, 65);
  std::vector<json> lines;
  std::istringstream out(r.out);
  for (std::string line; std::getline(out, line);) lines.push_back(json::parse(line));
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[1]["line"], 3);
  EXPECT_EQ(lines[2]["id"], "3");
  Write("wrong.ft", "__label__x a film\n__label__ b\n__label__y a movie\n");
  EXPECT_THAT(Run("predict --model run --on-error line wrong.ft").err, HasSubstr("1 invalid line"));
}

// Words are cut as a text of them is.
TEST_F(TablesTest, WordsAreTheirText) {
  std::string text, words;
  for (int i = 0; i < 30; ++i) {
    text += i < 15 ? "great " : "dull ";
    words += i < 15 ? "\"great\", " : "\"dull\", ";
  }
  const RunResult r = Run("predict --model run --input-format jsonl",
      R"({"text": ")" + text.substr(0, text.size() - 1) + R"("}\n{"words": [)" +
          words.substr(0, words.size() - 2) + R"(]}\n)");
  ASSERT_EQ(r.exit, 0) << r.err;
  const size_t end = r.out.find('\n') + 1;
  EXPECT_EQ(r.out.substr(0, end), r.out.substr(end));
  EXPECT_THAT(r.err, HasSubstr("2 texts"));
}

TEST_F(TablesTest, WrongLinesCanBeAnswered) {
  Write("bad.csv", "subject,k\nx\na great film,1\na,b,c\n");
  const RunResult r = Run("predict --model run --format csv --on-error line bad.csv");
  EXPECT_EQ(r.exit, 65);
  EXPECT_THAT(r.out, StartsWith("subject,k,label,score,error\nx,,,,bad.csv:2:"));
  EXPECT_THAT(r.out, HasSubstr("\na great film,1,pos,"));
  EXPECT_THAT(r.out, HasSubstr("bad.csv:4: 3 columns: expected 2"));
  EXPECT_THAT(r.err, HasSubstr("2 invalid lines"));
  EXPECT_THAT(Run("predict --model run --format jsonl --input-format jsonl --on-error line",
                  R"({"id": 2, "subject": 5}\n)")
                  .out,
      StartsWith(R"({"id": 2, "subject": 5, "line": 1, "error": )"));
  Write("none.csv", "subject,k\nx\n");
  EXPECT_THAT(Run("predict --model run --format csv --on-error line none.csv").out,
      StartsWith("subject,k,label,score,error\nx,,,,none.csv:2:"));
  const RunResult lines = Run("predict --model run --input-format jsonl --on-error line",
      R"({"id": 2, "text": 5}\n{\n{"id": 3, "text": "a great film"}\n)");
  EXPECT_EQ(lines.exit, 65);
  EXPECT_THAT(lines.out, StartsWith(R"({"id": 2, "line": 1, "error": "standard input:1: )"));
  EXPECT_THAT(lines.out, HasSubstr("\n{\"line\": 2, \"error\": "));
  EXPECT_THAT(lines.out, HasSubstr(R"({"id": 3, "label": "pos")"));
}

// With --on-error line, a member that has no column is an error of its row.
TEST_F(TablesTest, MembersWithoutAColumnAreErrorsOfTheirRow) {
  const std::string lines =
      R"({"subject": "a great film"}\n{"subject": "a film", "k": 1}\n{"subject": "a movie"}\n)";
  const std::string command = "predict --model run --input-format jsonl --format csv";
  EXPECT_EQ(Run(command, lines).exit, 65);
  const RunResult r = Run(command + " --on-error line", lines);
  EXPECT_EQ(r.exit, 65);
  EXPECT_EQ(std::count(r.out.begin(), r.out.end(), '\n'), 4) << r.out;
  EXPECT_THAT(r.out, HasSubstr("\na film,"));
  EXPECT_THAT(r.out, HasSubstr("member \"\"k\"\": not in the first line"));
  EXPECT_THAT(r.err, HasSubstr("1 invalid line"));
}

TEST_F(TablesTest, ATableWithoutRowsKeepsItsHeader) {
  Write("zero.csv", "subject,queue\n");
  const RunResult r = Run("predict --model run --format csv zero.csv");
  EXPECT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, "subject,queue,label,score\n");
  EXPECT_EQ(Run("tag --model tagger --text-field subject --format csv zero.csv").out,
      "subject,queue,words,tags\n");
}

// Empty rows and lines get answers, so that answers stay beside their rows.
TEST_F(TablesTest, EmptyRowsHaveEmptyAnswers) {
  Write("empty.csv", "subject\na great film\n\n\" \t\"\n\u00a0\u200b\na dull movie\n\n");
  const RunResult r = Run("predict --model run --format csv empty.csv");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith("subject,label,score\na great film,pos,0."));
  EXPECT_THAT(r.out, HasSubstr("\n,,\n\" \t\",,\n\u00a0\u200b,,\na dull movie,neg,0."));
  EXPECT_THAT(r.out, testing::EndsWith("\n,,\n"));
  EXPECT_THAT(r.err, HasSubstr("empty: 4 texts, whose answer is empty"));
  const RunResult lines = Run("predict --model run", "a great film\\n\\n  \\na dull movie\\n");
  const std::vector<json> answers = JsonLines(lines.out);
  ASSERT_EQ(answers.size(), 4);
  EXPECT_EQ(answers[1]["label"], "");
  EXPECT_EQ(answers[1]["score"], nullptr);
  EXPECT_EQ(answers[1]["scores"], json({{"neg", nullptr}, {"pos", nullptr}}));
  EXPECT_EQ(answers[3]["label"], "neg");
  EXPECT_EQ(JsonLines(Run("predict --model run --input-format jsonl",
                          R"({"subject": "", "id": 1}\n\n{"subject": "a great film", "id": 2}\n)")
                          .out)
                .size(),
      2);
  EXPECT_EQ(JsonLines(Run("predict --model run --input-format ids", "5 6\\n\\n").out).size(), 2);
  Write("empty.ft", "__label__x a film\n__label__y\n\n__label__x a movie\n");
  EXPECT_EQ(JsonLines(Run("predict --model run empty.ft").out).size(), 4);
}

TEST_F(TablesTest, EmptyTextsHaveNoTagsAndStayInTheMatrix) {
  const std::string input = "film was\\n\\nfilm\\n";
  std::vector<json> tags = JsonLines(Run("tag --model tagger", input).out);
  ASSERT_EQ(tags.size(), 3);
  EXPECT_EQ(tags[1], json({{"text", ""}, {"words", json::array()}}));
  tags = JsonLines(Run("tag --model tagger --input-format ids", "5 6\\n\\n").out);
  ASSERT_EQ(tags.size(), 2);
  EXPECT_EQ(tags[1]["ids"], json::array());
  const RunResult matrix = Run("encode --model run --out empty.npy", input);
  ASSERT_EQ(matrix.exit, 0) << matrix.err;
  EXPECT_THAT(matrix.err, HasSubstr("empty: 1 text"));
  EXPECT_EQ(Read("empty.npy").size(), 128 + 3 * 64);
  ASSERT_EQ(Run("encode --model run --input-format ids --out ids.npy", "5 6\\n\\n5 6\\n").exit, 0);
  const std::string rows = Read("ids.npy").substr(128);
  ASSERT_EQ(rows.size(), 3 * 64);
  EXPECT_EQ(rows.substr(64, 64), std::string(64, '\0'));
  EXPECT_EQ(rows.substr(0, 64), rows.substr(128));
}

TEST_F(TablesTest, NamesBesideThoseOfTheInputAreUnique) {
  Write("twice.csv", "subject,label,predicted_label,score\na great film,1,2,3\n");
  EXPECT_THAT(Run("predict --model run --format csv twice.csv").out,
      StartsWith(
          "subject,label,predicted_label,score,predicted_predicted_label,predicted_score\n"));
  EXPECT_THAT(Run("predict --model run --format jsonl twice.csv").out,
      HasSubstr(R"("score": "3", "predicted_predicted_label": "pos", "predicted_score": )"));
}

// Cells of the input keep their bytes, quoted where a reader needs it.
TEST_F(TablesTest, CellsKeepTheirBytes) {
  Write("bytes.csv", "subject,other\na great film,\"a\rb\"\na film,\x1b[1m\xFF\nfilm,\" x \"\n");
  const RunResult r = Run("predict --model run --format csv bytes.csv");
  ASSERT_EQ(r.exit, 65) << r.err;  // one line of three is not UTF-8
  EXPECT_THAT(r.out, HasSubstr("\na great film,\"a\rb\",pos,"));
  EXPECT_THAT(r.out, HasSubstr("\na film,\x1b[1m\xFF,"));
  EXPECT_THAT(r.out, HasSubstr("\nfilm,\" x \","));
  Write("nested.jsonl",
      R"({"subject": "a film", "n": {"b" :1.0,"a": [ "}", -0 ]}, "s": "\u0041\"\\", "z": null})");
  EXPECT_THAT(Run("predict --model run --format csv nested.jsonl").out,
      StartsWith("subject,n,s,z,label,score\n"
                 "a film,\"{\"\"b\"\" :1.0,\"\"a\"\": [ \"\"}\"\", -0 ]}\",\"A\"\"\\\",,"));
}

// A line with many members takes time in proportion to them.
TEST_F(TablesTest, LinesMayHaveManyMembers) {
  std::string members, names;
  for (int i = 0; i < 60'000; ++i) {
    members += absl::StrCat("\"k", i, "\": ", i, ", ");
    names += absl::StrCat("k", i, ",");
  }
  Write("many.jsonl", "{" + members + "\"subject\": \"a great film\"}\n" +
                          "{\"subject\": \"a dull movie\", " + members + "\"k1\": 7}\n");
  const RunResult csv = Run("predict --model run --format csv many.jsonl");
  ASSERT_EQ(csv.exit, 0) << csv.err;
  EXPECT_THAT(csv.out.substr(0, csv.out.find('\n')), names + "subject,label,score");
  EXPECT_THAT(csv.out, HasSubstr("\n0,7,2,3,"));
  EXPECT_EQ(Run("predict --model run --format jsonl many.jsonl").exit, 0);
}

// The columns of a table are known before its first right row; those of JSON lines are not.
TEST_F(TablesTest, WrongRowsWaitOnlyForUnknownColumns) {
  std::string rows = "subject,k\n", lines;
  for (int i = 0; i < 20'000; ++i) rows += "x\n", lines += "{\n";
  Write("wrong.csv", rows + "a great film,1\n");
  const std::string csv = "predict --model run --on-error line --format csv ";
  const RunResult table = Run(csv + "wrong.csv");
  EXPECT_EQ(table.exit, 65);
  EXPECT_THAT(table.out, StartsWith("subject,k,label,score,error\nx,,,,wrong.csv:2:"));
  EXPECT_THAT(table.out, HasSubstr("\na great film,1,pos,0."));
  Write("wrong.jsonl", lines + "{\"subject\": \"a great film\"}\n");
  const RunResult json_lines = Run(csv + "wrong.jsonl");
  EXPECT_THAT(json_lines.out, StartsWith("label,score,error\n,,wrong.jsonl:1:"));
  EXPECT_THAT(json_lines.out, HasSubstr("not in the first line"));
  Write("few.jsonl", "{\n{\"subject\": \"a great film\"}\n");
  EXPECT_THAT(Run(csv + "few.jsonl").out, StartsWith("subject,label,score,error\n,,,few.jsonl:1:"));
}

// Labels come from a model, which may be hostile.
TEST_F(TablesTest, LabelsArePrintable) {
  std::filesystem::create_directory(Path("hostile"));
  for (const char* name : {"model.safetensors", "tokenizer.json"})
    std::filesystem::copy_file(Path("run/") + name, Path("hostile/") + name);
  json config = json::parse(Read("run/config.json"));
  config["id2label"] = {{"0", "\x1b]0;evil\x07"}, {"1", "\u202e\u009b31m"}};
  config["label2id"] = {{"\x1b]0;evil\x07", 0}, {"\u202e\u009b31m", 1}};
  Write("hostile/config.json", config.dump());
  Write("two.csv", "subject\na great film\na dull movie\n");
  for (const std::string format : {"csv", "tsv", "jsonl"}) {
    const RunResult r = Run("predict --model hostile --format " + format + " two.csv");
    EXPECT_EQ(r.exit, 0) << r.err;
    for (const char* bad : {"\x1b", "\x07", "\u202e", "\u009b"})
      EXPECT_THAT(r.out, testing::Not(HasSubstr(bad))) << format;
    EXPECT_THAT(r.out, HasSubstr(format == "jsonl" ? "\\u001b]0;evil" : "\\u{1B}]0;evil"));
  }
}

TEST_F(TablesTest, TheNameOfOutChoosesTheFormat) {
  Write("in.csv", "subject\na great film\n");
  ASSERT_EQ(Run("predict --model run --out named.tsv in.csv").exit, 0);
  EXPECT_THAT(Read("named.tsv"), StartsWith("subject\tlabel\tscore\na great film\tpos\t"));
  ASSERT_EQ(Run("predict --model run --out named.csv", "a great film\n").exit, 0);
  EXPECT_THAT(Read("named.csv"), StartsWith("text,label,score\na great film,pos,"));
  EXPECT_EQ(Run("encode --model run --out named.jsonl in.csv").exit, 2);
}

TEST_F(TablesTest, LabelsOfFastTextAreNotRead) {
  Write("f.ft", "__label__neg a great film\n");
  const RunResult r = Run("predict --model run f.ft");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, Run("predict --model run", "a great film\n").out);
  EXPECT_THAT(Run("predict --model run --format csv f.ft").out,
      StartsWith("text,label,score\na great film,pos,"));
}

TEST_F(TablesTest, OutAppearsWhole) {
  const std::string command = "predict --model run --format csv --out p.csv";
  EXPECT_EQ(Run(command + " train.csv").exit, 0);
  const std::string all = Read("p.csv");
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 41);
  EXPECT_EQ(Run(command + " train.csv").exit, 73);
  EXPECT_EQ(Run(command + " --force bad-name.csv").exit, 66);
  EXPECT_EQ(Read("p.csv"), all);
}

TEST_F(TablesTest, TagsTheColumnOfTheRun) {
  const RunResult r = Run("tag --model tagger tags.conllu");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, Read("tags.conllu"));  // UPOS stays
  EXPECT_EQ(Run("tag --model tagger --format conllu tags.conllu").out, r.out);
  std::filesystem::copy(Path("tagger"), Path("bare"));
  std::filesystem::remove(Path("bare/spec.textproto"));
  const RunResult bare = Run("tag --model bare tags.conllu");
  EXPECT_EQ(bare.exit, 0);
  EXPECT_THAT(bare.out, HasSubstr("film\t_\tNN\tNN"));
  EXPECT_THAT(bare.err, HasSubstr("go to the column UPOS"));
  EXPECT_EQ(Run("tag --model bare --column XPOS tags.conllu").out, r.out);
}

TEST_F(TablesTest, TagsTables) {
  const RunResult r = Run(
      "tag --model tagger --format csv --text-field b --input-format csv", "a,b\\n1,film was\\n");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_EQ(r.out, "a,b,words,tags\n1,film was,film was,NN VBD\n");
  EXPECT_EQ(Run("tag --model tagger --format csv tags.conllu").exit, 2);
}

// The columns of the input stay; a label that the model lacks is a true label too.
TEST_F(TablesTest, EvaluatesWithARowPerExample) {
  Write("dev.csv", "id,subject,queue\n\"1,0\",a great film,pos\n2,a dull movie,pos\n3,film,odd\n");
  const RunResult r = Run("evaluate --model run --data dev.csv --predictions rows.csv");
  ASSERT_EQ(r.exit, 0) << r.err;
  const json metrics = json::parse(r.out);
  EXPECT_EQ(metrics["confusion"]["counts"][1], json::parse("[1,1]"));
  EXPECT_EQ(metrics["unseen_labels"], 1);
  EXPECT_THAT(r.err, HasSubstr("labels that the model does not have count as wrong: \"odd\""));
  const std::string rows = Read("rows.csv");
  EXPECT_THAT(
      rows, StartsWith("id,subject,queue,true_label,predicted_label,score,score_neg,score_pos\n"
                       "\"1,0\",a great film,pos,pos,pos,0."));
  EXPECT_THAT(rows, HasSubstr("\n2,a dull movie,pos,pos,neg,0."));
  EXPECT_THAT(rows, HasSubstr("\n3,film,odd,odd,"));
  const RunResult again = Run("evaluate --model run --data dev.csv --predictions rows.csv");
  EXPECT_EQ(again.exit, 73);
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(Run("evaluate --model run --data dev.csv --predictions p.txt").exit, 2);
  // The table has the form of the data.
  Write("german.csv",
      "subject;queue\r\na gr\xF6\xDF"
      "er film;pos\r\n");
  const RunResult german = Run(
      "evaluate --model run --data german.csv --set encoding=WINDOWS1252 --predictions form.csv");
  ASSERT_EQ(german.exit, 0) << german.err;
  EXPECT_THAT(Read("form.csv"), StartsWith("subject;queue;true_label;predicted_label;score;"
                                           "score_neg;score_pos\r\na gr\xF6\xDF"
                                           "er film;pos;pos;"));
  // The scores are those of predict.
  const RunResult predicted = Run("predict --model run --format csv dev.csv");
  const std::string first = predicted.out.substr(predicted.out.find('\n') + 1);
  const std::string score = first.substr(first.find(",pos,pos,") + 9, 6);
  EXPECT_THAT(rows, HasSubstr(",pos,pos," + score));
}

TEST_F(TablesTest, EvaluatesJsonLinesAndTags) {
  Write("dev.jsonl", "{\"n\": 1.0, \"subject\": \"a great film\", \"queue\": \"pos\"}\n");
  const RunResult r = Run("evaluate --model run --data dev.jsonl --predictions -");
  ASSERT_EQ(r.exit, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith(R"({"n": 1.0, "subject": "a great film", "queue": "pos", )"
                                R"("true_label": "pos", "predicted_label": "pos", "score": 0.)"));
  EXPECT_THAT(r.err, HasSubstr("{\"accuracy\":1.0,"));
  ASSERT_EQ(Run("evaluate --model tagger --data tags.conllu --predictions t.tsv").exit, 0);
  EXPECT_THAT(
      Read("t.tsv"), StartsWith("words\ttrue_tags\tpredicted_tags\nfilm was\tNN VBD\tNN VBD\n"));
}

// NumPy's header by hand: magic, version 1.0, a dictionary in 118 bytes, then rows of f32.
TEST_F(TablesTest, EncodesOneMatrix) {
  Write("v.csv", "id,subject,body\na,x,a great film\nb,x,a dull movie\nc,x,film\n");
  const std::string encode = "encode --model run v.csv --text-field body --normalize --pool ";
  for (const std::string pool : {"mean", "max", "cls"}) {
    ASSERT_EQ(Run(encode + pool + " --force --out v.npy").exit, 0);
    const std::string file = Read("v.npy");
    ASSERT_EQ(file.size(), 128 + 3 * 16 * 4);
    EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
    EXPECT_THAT(file.substr(10, 118),
        StartsWith("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 16), }  "));
    EXPECT_EQ(file[127], '\n');
    for (int row = 0; row < 3; ++row) {
      float values[16], squares = 0;
      std::memcpy(values, file.data() + 128 + row * 64, 64);
      for (const float x : values) squares += x * x;
      EXPECT_NEAR(squares, 1, 1e-5);
    }
  }
  EXPECT_EQ(Read("v.npy.ids.json"), "[\"a\", \"b\", \"c\"]\n");
  EXPECT_EQ(Run(encode + "mean --out v.npy").exit, 73);
  std::filesystem::rename(Path("v.npy.ids.json"), Path("u.npy.ids.json"));
  EXPECT_EQ(Run(encode + "mean --out u.npy").exit, 73) << "the list of ids exists";
  ASSERT_EQ(::mkfifo(Path("pipe.npy").c_str(), 0600), 0);
  EXPECT_EQ(Run(encode + "mean --force --out pipe.npy").exit, 73);
  EXPECT_EQ(Run(encode + "none --out w.npy").exit, 2);
  ASSERT_EQ(Run(encode + "mean --out v.safetensors").exit, 0);
  auto matrix = SafetensorsReader::Open(Path("v.safetensors"));
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  ASSERT_NE(matrix->Find("vectors"), nullptr);
  EXPECT_THAT(matrix->Find("vectors")->shape, testing::ElementsAre(3, 16));
  EXPECT_EQ(matrix->metadata().at("ids"), "[\"a\", \"b\", \"c\"]");
  ASSERT_EQ(Run(encode + "max --force --out v.safetensors").exit, 0);
  const RunResult lines = Run(encode + "mean --out -");
  const json first = json::parse(lines.out.substr(0, lines.out.find('\n')));
  EXPECT_EQ(first["id"], "a");
  EXPECT_EQ(first["vector"].size(), 16);
  EXPECT_FALSE(std::filesystem::exists(Path("-")));
  const RunResult wrong = Run("encode --model run --input-format jsonl --on-error line --out z.npy",
      R"({"text": "a film"}\n{}\n{"text": "a film"}\n)");
  EXPECT_EQ(wrong.exit, 65);
  EXPECT_THAT(wrong.err, HasSubstr("standard input:2: "));
  const std::string rows = Read("z.npy").substr(128);
  ASSERT_EQ(rows.size(), 3 * 64);
  EXPECT_EQ(rows.substr(64, 64), std::string(64, '\0'));
  EXPECT_EQ(rows.substr(0, 64), rows.substr(128, 64));
  const RunResult printed = Run("encode --model run --input-format jsonl --on-error line --out -",
      R"({"text": "a film"}\n{}\n)");
  EXPECT_EQ(printed.exit, 65);
  EXPECT_THAT(printed.out, HasSubstr("\n{\"line\": 2, \"error\": \"standard input:2: "));
  const std::string some = R"({"text": "a", "id": 1}\n{"text": "b"}\n{"text": "c", "id": "x"}\n)";
  const std::vector<json> ids =
      JsonLines(Run("encode --model run --input-format jsonl --out -", some).out);
  ASSERT_EQ(ids.size(), 3);
  EXPECT_EQ(ids[0]["id"], 1);
  EXPECT_EQ(ids[1]["id"], nullptr);
  EXPECT_EQ(ids[2]["id"], "x");
  ASSERT_EQ(Run("encode --model run --input-format jsonl --out some.npy", some).exit, 0);
  EXPECT_EQ(Read("some.npy.ids.json"), "[1, null, \"x\"]\n");
  ASSERT_EQ(Run("encode --model run --force --out some.npy", "a film\\n").exit, 0);
  EXPECT_FALSE(std::filesystem::exists(Path("some.npy.ids.json"))) << "ids of another matrix";
}

TEST_F(TablesTest, NamesOfOutputsAreChecked) {
  const std::string predict = "predict --model run --out ";
  EXPECT_THAT(Run(predict + "a.csv.gz", "a film\\n").err, HasSubstr("expected a name without .gz"));
  for (const char* arguments :
      {"predict --model run --out a.parquet", "tag --model tagger --out a.xlsx",
          "tag --model tagger --out a.txt tags.conllu", "encode --model run --out a.npz",
          "encode --model run --out a.csv", "encode --model run --pool mean --out a.bin",
          "attention --model run --out a.pdf 'a b'", "export --model run --out a.onnx",
          "quantize --model run --out a.safetensors", "vectors --text text.txt --out a.bin",
          "report run --out a.pdf", "vocab --text text.txt --out vocab.txt"}) {
    const RunResult refused = Run(arguments, "a film\\n");
    EXPECT_EQ(refused.exit, 2) << arguments << "\n" << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(": --out ")) << arguments;
  }
  EXPECT_EQ(
      Run("predict --model run --input-format text --format csv --out a.dat", "a film\\n").exit, 0);
  EXPECT_EQ(Run("encode --model run --out a", "a film\\n").exit, 0) << "safetensors";
  const RunResult r = Run(predict + "none/a.csv", "a film\\n");
  EXPECT_EQ(r.exit, 73);
  EXPECT_THAT(r.err, HasSubstr("none/a.csv: no directory none"));
}

TEST_F(TablesTest, ARunWithoutAModelNamesItsCheckpoint) {
  std::filesystem::create_directories(Path("stopped/step-00000040"));
  std::filesystem::copy_file(Path("run/config.json"), Path("stopped/step-00000040/config.json"));
  const RunResult r = Run("predict --model stopped", "a film\\n");
  EXPECT_EQ(r.exit, 66);
  EXPECT_THAT(r.err, HasSubstr("stopped: holds no model, but stopped/step-00000040 is one"));
}

}  // namespace
}  // namespace cloze
