#include "tasks/jobs/new_spec.h"

#include "absl/strings/str_replace.h"
#include "proto/spec.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class NewSpecTest : public FilesTest {
 protected:
  // The text of the spec for the files; the spec is in spec_.
  std::string Guess(const std::vector<std::string>& files, NewSpecOptions options = {}) {
    for (const std::string& file : files) options.files.push_back(Path(file));
    const auto spec = GuessSpec(options);
    EXPECT_TRUE(spec.ok()) << spec.status();
    if (!spec.ok()) return "";
    const auto parsed = ParseSpec(spec->text, "new");
    EXPECT_TRUE(parsed.ok()) << parsed.status() << "\n" << spec->text;
    if (parsed.ok()) spec_ = parsed->spec;
    return spec->text;
  }
  // Rows of `columns`, in which %i is the number of the row, %t a text, %l one of three labels.
  static std::string Rows(const std::string& row, int n = 30) {
    std::string rows;
    for (int i = 0; i < n; ++i) {
      const std::string text = absl::StrCat("where is my parcel number ", i * i, " from last week");
      rows += absl::StrReplaceAll(row, {{"%i", absl::StrCat(i)}, {"%t", text},
                                           {"%l", i % 3 == 0   ? "A b"
                                                  : i % 3 == 1 ? "C"
                                                               : "D"},
                                           {"%n", absl::StrCat(i % 7, ",", i % 10)}});
    }
    return rows;
  }

  TaskSpec spec_;
};

TEST_F(NewSpecTest, TableOfGermanExcel) {
  Write("tickets 1.csv", "Nr;Kanal;Betreff;Text;Queue\r\n" +
                             Rows("%i;Mail;Frage %i;\"%t\r\nW\xE4rme; gr\xFC\xDF\";%l\r\n") +
                             "30;Mail;x;y z;c\r\n31;Mail;x;y z;D \r\n");
  const std::string text = Guess({"tickets 1.csv"});
  EXPECT_THAT(text, HasSubstr("5 labels: "));
  EXPECT_EQ(spec_.train().delimiter(), ";");
  EXPECT_EQ(spec_.train().encoding(), DataSpec::WINDOWS1252);
  EXPECT_TRUE(spec_.train().header());
  EXPECT_EQ(spec_.train().text_field(), "Betreff");
  EXPECT_EQ(spec_.train().text_pair_field(), "Text");
  EXPECT_EQ(spec_.train().label_field(), "Queue");
  EXPECT_TRUE(spec_.sequence_classification().trim_labels());
  EXPECT_THAT(spec_.sequence_classification().label_map(), ElementsAre("c=C"));
  EXPECT_NEAR(spec_.validation().share(), 0.2, 1e-6);
  EXPECT_EQ(spec_.output().directory(), "runs/tickets_1");
  EXPECT_FALSE(spec_.has_batch() || spec_.has_schedule() || spec_.has_optimizer());
}

TEST_F(NewSpecTest, NumbersWithDecimalCommas) {
  Write("n.csv", "text;score\n" + Rows("%t;%n\n"));
  Guess({"n.csv"});
  EXPECT_EQ(spec_.sequence_classification().kind(), SequenceClassificationSpec::REGRESSION);
  EXPECT_TRUE(spec_.train().decimal_comma());
}

// Then a German spreadsheet reads the scores, too.
TEST_F(NewSpecTest, DecimalCommasOfAnotherColumn) {
  Write("n.csv", "text;price;label\n" + Rows("%t;%n;%l\n"));
  Guess({"n.csv"});
  EXPECT_EQ(spec_.train().label_field(), "label");
  EXPECT_TRUE(spec_.train().decimal_comma());
  Write("n.csv", "text,price,label\n" + Rows("%t,\"%n\",%l\n"));
  Guess({"n.csv"});
  EXPECT_FALSE(spec_.train().decimal_comma()) << "thousands, perhaps";
}

TEST_F(NewSpecTest, NoHeader) {
  Write("n.tsv", Rows("%l\t%t\n"));
  Guess({"n.tsv"});
  EXPECT_FALSE(spec_.train().header());
  EXPECT_EQ(spec_.train().text_field(), "2");
  EXPECT_EQ(spec_.train().label_field(), "1");
  EXPECT_FALSE(spec_.train().has_delimiter());
}

TEST_F(NewSpecTest, SeveralLabels) {
  Write("s.csv", "body,topics\n" + Rows("%t,red|green\n%t,red\n%t,green|blue\n%t,blue\n"));
  Guess({"s.csv"});
  EXPECT_EQ(spec_.sequence_classification().kind(), SequenceClassificationSpec::MULTI_LABEL);
  EXPECT_EQ(spec_.sequence_classification().label_separator(), "|");
  Write("s.jsonl", Rows("{\"body\": \"%t\", \"topics\": [\"%l\", \"x\"]}\n{\"body\": \"%t\", "
                        "\"topics\": []}\n"));
  Guess({"s.jsonl"});
  EXPECT_EQ(spec_.sequence_classification().kind(), SequenceClassificationSpec::MULTI_LABEL);
  EXPECT_EQ(spec_.train().text_field(), "body");
  EXPECT_EQ(spec_.train().label_field(), "topics");
}

TEST_F(NewSpecTest, PairsAndParts) {
  for (const char* name : {"train.jsonl", "dev.jsonl", "test.jsonl"})
    Write(name, Rows("{\"idx\": %i, \"sentence1\": \"%t\", \"sentence2\": \"x %t\", "
                     "\"label\": \"%l\"}\n"));
  const std::string text = Guess({"train.jsonl", "dev.jsonl", "test.jsonl"});
  EXPECT_THAT(spec_.train().files(), ElementsAre(Path("train.jsonl")));
  EXPECT_THAT(spec_.validation().files(), ElementsAre(Path("dev.jsonl")));
  EXPECT_THAT(text, HasSubstr("test.jsonl"));
  for (const DataSpec* data : {&spec_.train(), &spec_.validation()}) {
    EXPECT_EQ(data->text_field(), "sentence1");
    EXPECT_EQ(data->text_pair_field(), "sentence2");
  }
}

TEST_F(NewSpecTest, OtherTasks) {
  Write("t.conllu", "1\tfilm\t_\tNOUN\tNN\t_\t_\t_\t_\t_\n\n");
  Guess({"t.conllu"});
  EXPECT_TRUE(spec_.has_token_tagging());
  Write("t.jsonl", Rows("{\"tokens\": [\"a\", \"b\"], \"ner_tags\": [\"O\", \"B-X\"]}\n"));
  Guess({"t.jsonl"});
  EXPECT_TRUE(spec_.has_token_tagging());
  EXPECT_EQ(spec_.train().tags_field(), "ner_tags");
  Write("books.txt", Rows("%t.\n"));
  Guess({"books.txt"});
  EXPECT_TRUE(spec_.has_masked_lm());
  Write("f.txt", Rows("__label__%i %t\n"));
  Guess({"f.txt"});
  EXPECT_EQ(spec_.train().format(), DataSpec::FASTTEXT);
  Write("stream", "Nr;Text;Klasse\n" + Rows("%i;\"%t;\nx\";%l\n"));
  Guess({"stream"});
  EXPECT_EQ(spec_.train().format(), DataSpec::CSV);
  EXPECT_EQ(spec_.train().label_field(), "Klasse");
  Write("q.json", "{\"data\": [{\"paragraphs\": [{\"qas\": []}]}]}");
  Guess({"q.json"});
  EXPECT_TRUE(spec_.has_question_answering());
}

TEST_F(NewSpecTest, FolderPerClass) {
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(Path(absl::StrCat("news/", name)));
    for (int i = 0; i < 3; ++i) Write(absl::StrCat("news/", name, "/", i), "a text of words");
  }
  const std::string text = Guess({"news"});
  EXPECT_EQ(spec_.train().format(), DataSpec::FOLDERS);
  EXPECT_THAT(text, HasSubstr("2 labels"));
  EXPECT_EQ(spec_.output().directory(), "runs/news");
}

TEST_F(NewSpecTest, ColumnsOfTheUser) {
  Write("t.csv", "text,a,b\n" + Rows("%t,%l,%i\n"));
  Guess({"t.csv"});
  EXPECT_EQ(spec_.train().label_field(), "a");
  Guess({"t.csv"}, {.label_field = "b"});
  EXPECT_EQ(spec_.train().label_field(), "b");
  EXPECT_EQ(spec_.sequence_classification().kind(), SequenceClassificationSpec::REGRESSION);
  ExpectError(GuessSpec({.files = {Path("t.csv")}, .label_field = "c"}).status(), Exit::kSpec,
      "no column \"c\"; there are \"text\", \"a\", \"b\"");
}

TEST_F(NewSpecTest, EmptyLastColumns) {
  Write("e.csv", "text;label;;\n" + Rows("%t;%l;;\n"));
  EXPECT_THAT(Guess({"e.csv"}), HasSubstr("3 labels"));
  EXPECT_TRUE(spec_.train().header());
  EXPECT_EQ(spec_.train().label_field(), "label");
}

TEST_F(NewSpecTest, ColumnsOfSeveralFilesByName) {
  Write("p/a.csv", "text,label\n" + Rows("%t,%l\n"));
  Write("p/b.csv", "label,text\n" + Rows("%l,%t\n"));
  EXPECT_THAT(Guess({"p"}), HasSubstr("3 labels: A b (20), "));
}

TEST_F(NewSpecTest, LabelsThatAreMissing) {
  Write("m.jsonl", Rows("{\"text\": \"%t\", \"label\": \"%l\"}\n") + "{\"text\": \"x y z\"}\n");
  EXPECT_THAT(Guess({"m.jsonl"}), HasSubstr("1 row without a label"));
}

TEST_F(NewSpecTest, FreeTextIsNoLabel) {
  Write("n.csv", "Beschreibung,Status,Note\n" + Rows("%t,%l,called %i times about this\n"));
  Guess({"n.csv"});
  EXPECT_EQ(spec_.train().label_field(), "Status");
}

TEST_F(NewSpecTest, FormatsUnderOtherNames) {
  const std::string tagged = Rows("Jane B-PER\nwent O\n\n");
  for (const std::string& name : {"c2003.txt", "c.iob", "c.tsv"}) {
    Write(name, absl::StrReplaceAll(tagged, {{" ", name == "c.tsv" ? "\t" : " "}}));
    Guess({name});
    EXPECT_TRUE(spec_.has_token_tagging()) << name;
    EXPECT_EQ(spec_.train().format(), DataSpec::CONLL) << name;
  }
  Write("table.txt", "text;label\n" + Rows("%t;%l\n"));
  Guess({"table.txt"});
  EXPECT_EQ(spec_.train().format(), DataSpec::CSV);
  EXPECT_EQ(spec_.train().label_field(), "label");
}

TEST_F(NewSpecTest, ClassFoldersBesideOtherFiles) {
  for (const char* name : {"c/a/1.txt", "c/b/1.txt", "c/README.txt"})
    Write(name, "a text of words");
  EXPECT_THAT(Guess({"c"}), HasSubstr("2 labels"));
  EXPECT_EQ(spec_.train().format(), DataSpec::FOLDERS);
  for (const char* name : {"d/train/a/1.txt", "d/train/b/1.txt"}) Write(name, "a text of words");
  ExpectError(GuessSpec({.files = {Path("d")}}).status(), Exit::kNoInput,
      "d/train has a folder per class: expected that folder");
  Write("e/2024/x.csv", "text,label\n");
  EXPECT_FALSE(GuessSpec({.files = {Path("e")}}).ok());
}

TEST_F(NewSpecTest, RefusesWhatTrainingCannotRead) {
  const auto refused = [&](const std::string& name, const std::string& content) {
    Write(name, content);
    const auto spec = GuessSpec({.files = {Path(name)}});
    EXPECT_EQ(ExitOf(spec.status()), Exit::kData) << (spec.ok() ? spec->text : "");
    return std::string(spec.status().message());
  };
  EXPECT_THAT(refused("t.csv", "text,price\n" + Rows("%t,\"1,20%i\"\n", 9) + "x,950\n"),
      HasSubstr("column \"price\": numbers such as 1,200 may have separators of thousands"));
  EXPECT_THAT(refused("t2.csv", "text;price\n" + Rows("%t;1.20%i\n", 9) + "x;950\n"),
      HasSubstr("numbers such as 1.200 may have separators of thousands"));
  EXPECT_THAT(refused("l.csv", "text,labels\n" + Rows("%t,\"['a', 'b']\"\n%t,['b']\n")),
      HasSubstr("lists as Python prints them: expected labels with a separator"));
  EXPECT_THAT(refused("s.csv", "sep=;\ntext;label\n" + Rows("%t;%l\n")),
      HasSubstr(":1: tells Excel the delimiter"));
  EXPECT_THAT(refused("d.csv", "text,label,label\n" + Rows("%t,%l,%l\n")), HasSubstr("twice"));
  EXPECT_THAT(refused("o.jsonl", "{}\n"), HasSubstr("no column of texts: found no columns"));
  EXPECT_THAT(refused("p.json", "{\n  \"data\": [\n  ]\n}\n"), HasSubstr("object on each line"));
  EXPECT_THAT(refused("g.jsonl", Rows("{\"tokens\": [\"a\"], \"ner_tags\": [%i]}\n")),
      HasSubstr("with int2str"));
  EXPECT_THAT(
      refused("w.csv", "id,word,tag\n" + Rows("%i,a,O\n")), HasSubstr("to tag words, CoNLL"));
  EXPECT_THAT(refused("x.csv", "text;label\n" + Rows("%t;%l\n") + "hm ;-);C\n"),
      HasSubstr("x.csv:32: 3 columns: expected 2"));
  EXPECT_THAT(refused("y.csv", "text;label\n" + Rows("%t;%l;\n")), HasSubstr("expected 2"));
}

TEST_F(NewSpecTest, Refusals) {
  ExpectError(GuessSpec({.files = {Path("gone.csv")}}).status(), Exit::kNoInput, "gone.csv");
  Write("e.csv", "");
  ExpectError(GuessSpec({.files = {Path("e.csv")}}).status(), Exit::kData, "e.csv: no rows");
  Write("n.csv", "a,b\n1,2\n");
  ExpectError(
      GuessSpec({.files = {Path("n.csv")}}).status(), Exit::kData, "no column of texts: found a (");
  Write("x.xlsx", "PK");
  ExpectError(GuessSpec({.files = {Path("x.xlsx")}}).status(), Exit::kSpec, "save it in Excel");
  Write("t.csv", "text,label\n" + Rows("%t,%l\n"));
  ExpectError(GuessSpec({.files = {Path("t.csv")}, .start_from = "bert-base-uncased"}).status(),
      Exit::kNoInput, "bert-base-uncased: no such file or folder (models are not downloaded");
}

}  // namespace
}  // namespace cloze
