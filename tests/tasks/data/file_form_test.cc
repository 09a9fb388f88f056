#include "tasks/data/file_form.h"

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tasks/data/readers.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

FormHints Wanting(std::vector<std::string> columns, char delimiter = ',', bool header = true) {
  return {.form = {Charset::kUtf8, delimiter, header}, .columns = std::move(columns)};
}

TEST(FormOf, FindsTheDelimiterOfWantedColumns) {
  for (const char given : {',', ';', '\t', '|'}) {
    for (const char written : {',', ';', '\t', '|'}) {
      const std::string row =
          absl::StrReplaceAll("id;\"a, b\";text;label", {{";", std::string(1, written)}});
      EXPECT_EQ(FormOf(row, Wanting({"text", "label"}, given)).delimiter, written) << row;
      EXPECT_EQ(FormOf(row, Wanting({"a, b"}, given)).delimiter, written) << row;
      EXPECT_EQ(FormOf("text", Wanting({"text"}, given)).delimiter, given);
      EXPECT_EQ(FormOf(row, Wanting({"other"}, given)).delimiter, given) << "no candidate";
      EXPECT_EQ(FormOf("", Wanting({"text"}, given)).delimiter, given);
    }
  }
  EXPECT_EQ(FormOf("text;label,text", Wanting({"text"}, ';')).delimiter, ';');
  EXPECT_EQ(FormOf("text;label,text", Wanting({"text"}, ',')).delimiter, ',');
  EXPECT_EQ(FormOf("\"text", Wanting({"text"}, ';')).delimiter, ';') << "a quote is open";
}

TEST(FormOf, NumbersDoNotTellTheDelimiter) {
  EXPECT_EQ(FormOf("1;the owl", Wanting({"2"}, ',', false)).delimiter, ',');
  EXPECT_EQ(FormOf("good, but long", Wanting({"1"}, ';', false)).delimiter, ';');
  FormHints tsv = Wanting({"1"}, ';', false);
  tsv.quoting = false;
  EXPECT_EQ(FormOf("good; but long\tpos", tsv).delimiter, ';');
  EXPECT_EQ(FormOf("good, but long\tpos", tsv).delimiter, '\t');
}

TEST(FormOf, FindsTheHeader) {
  const auto header = [](const std::string& row, std::vector<std::string> columns) {
    return FormOf(row, Wanting(std::move(columns), ',', /*header=*/false)).header;
  };
  EXPECT_TRUE(header("text,label", {"1"}));
  EXPECT_TRUE(header("text", {"1"}));
  EXPECT_TRUE(header(",Text,Kategorie", {"2"})) << "of pandas, with an index";
  EXPECT_TRUE(header("frob,text", {"text"}));
  EXPECT_FALSE(header("frob,x", {"text"}));
  EXPECT_FALSE(header("a text of words,pos", {"1"}));
  EXPECT_FALSE(header("text,text", {"1"})) << "names differ";
  EXPECT_FALSE(header("text,4", {"1"})) << "a number is no name";
  EXPECT_FALSE(header("title,x,y,z", {"1"})) << "one usual name of four";
  EXPECT_TRUE(FormOf("good,pos", Wanting({"text"})).header) << "as the hints say";
}

// What a new spec asks, of the first bytes of a file.
TEST(FormOf, DescribesAnUnknownFile) {
  const FormHints unknown;
  FileForm form = FormOf("Frage;Bereich\nWie geht das, bitte;A\nWas \"nun\";B\nhalb;", unknown);
  EXPECT_EQ(form.delimiter, ';');
  EXPECT_TRUE(form.header);
  EXPECT_EQ(form.encoding, Charset::kUtf8);
  form = FormOf(
      "text\tlabel\ngr\xF6\xDF"
      "er\tx\n",
      unknown);
  EXPECT_EQ(form.delimiter, '\t');
  EXPECT_EQ(form.encoding, Charset::kWindows1252);
  EXPECT_EQ(FormOf("\xEF\xBB\xBFtext,l\n", unknown).encoding, Charset::kUtf8);
  form = FormOf(std::string("\xFF\xFEt\0|\0l\0\n\0", 10), unknown);
  EXPECT_EQ(form.encoding, Charset::kUtf16);
  EXPECT_EQ(form.delimiter, '|');
  EXPECT_EQ(FormOf(std::string("t\0|\0l\0\n\0", 8), unknown).encoding, Charset::kUtf16);
  EXPECT_EQ(FormOf("größer\ngr\xC3", unknown).encoding, Charset::kUtf8) << "cut in a character";
  form =
      FormOf("a film to love,pos\nno fun at all,neg\nso good and so long,pos\nhm,pos\n", unknown);
  EXPECT_EQ(form.delimiter, ',');
  EXPECT_FALSE(form.header);
  form = FormOf("\"a\nb\",x\n\"c;d\",y\n", unknown);
  EXPECT_EQ(form.delimiter, ',') << "line ends in cells";
}

// Rows of `text`, with "|" between columns.
std::vector<std::vector<std::string>> Rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (const absl::string_view row : absl::StrSplit(text, '\n'))
    rows.push_back(absl::StrSplit(row, '|'));
  return rows;
}

constexpr char kReviews[] =
    "a film to love|pos\nno fun at all|neg\nso good and so long|pos\n"
    "I liked the owl|neg\nnot my kind of film|pos";

TEST(OddForm, NamesAHeaderThatIsReadAsData) {
  const FormHints none = Wanting({"1", "2"}, ',', false);
  for (const char* header : {"text|label\n", "Frage|Bereich\n", "The review|Its kind\n"})
    EXPECT_THAT(
        OddForm(Rows(std::string(header) + kReviews), none), HasSubstr("looks like a header"));
  EXPECT_EQ(OddForm(Rows(kReviews), none), "");
  EXPECT_EQ(OddForm(Rows("Great owl|pos\n" + std::string(kReviews)), none), "");
  EXPECT_THAT(OddForm(Rows("a|b\nx|1\ny|2.5\nz|-3"), none), HasSubstr("looks like a header"));
  EXPECT_EQ(OddForm(Rows("a|7\nx|1\ny|2.5\nz|-3"), none), "");
  EXPECT_EQ(OddForm(Rows("a|b\nc|d\ne|f\ng|h"), none), "") << "nothing tells";
  EXPECT_EQ(OddForm({}, none), "");
}

TEST(OddForm, NamesDataThatAreReadAsHeader) {
  const FormHints numbers = Wanting({"1", "2"});
  EXPECT_THAT(OddForm(Rows(kReviews), numbers), HasSubstr("looks like data"));
  EXPECT_THAT(OddForm(Rows("x|4\ny|1\nz|2.5\nw|-3"), numbers), HasSubstr("looks like data"));
  EXPECT_EQ(OddForm(Rows("0|1\na|1\nb|1\nc|1"), numbers), "") << "pandas without names";
  EXPECT_EQ(OddForm(Rows("Frage|Bereich\n" + std::string(kReviews)), numbers), "");
  EXPECT_EQ(OddForm(Rows("text|pos\n" + std::string(kReviews)), Wanting({"text"})), "");
}

TEST(OddForm, NamesQuotesAndOtherDelimiters) {
  FormHints tsv = Wanting({"text"}, '\t');
  tsv.quoting = false;
  const auto rows = Rows("text|label\n\"a, b\"|x\n\"c\"|y\nd|\"z\"");
  EXPECT_THAT(OddForm(rows, tsv), HasSubstr("most cells of column 1 are in quotes"));
  EXPECT_EQ(OddForm(rows, Wanting({"text"})), "") << "CSV";
  EXPECT_EQ(OddForm(Rows("text|label\n\"a\"|x\nc|y"), tsv), "") << "half of the cells";
  EXPECT_THAT(OddForm(Rows("good;x\nbad;y\nwell;x\nor not;z"), Wanting({"1"}, ',', false)),
      HasSubstr("the same number of \";\""));
  EXPECT_EQ(OddForm(Rows("good; x\nbad\nwell;x\nor not;z"), Wanting({"1"}, ',', false)), "");
}

class FileFormTest : public FilesTest {
 protected:
  // "text||label@line" of all examples.
  static absl::StatusOr<std::vector<std::string>> Texts(
      const DataSpec& spec, Labels labels = Labels::kRequired) {
    ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(spec, labels));
    std::vector<std::string> texts;
    TextExample e;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader.Next(&e));
      if (!more) return texts;
      texts.push_back(absl::StrCat(e.text, "||", e.label, "@", e.line));
    }
  }
};

// Files in one spec, each in its own form; a validation file beside a training file is like that.
TEST_F(FileFormTest, EachFileHasItsForm) {
  const std::string wide("\xFE\xFF\0t\0e\0x\0t\0;\0l\0a\0b\0e\0l\0\n\0\xE4\0;\0x", 30);
  DataSpec spec = Data("utf8.csv", "text,label\nä,x\n");
  spec.add_files(Write("mark.csv", "\xEF\xBB\xBFlabel;text\nx;ä\n"));
  spec.add_files(Write("windows.csv", "label|text\r\nx|\xE4\r\n"));
  spec.add_files(Write("tabs.tsv", "text\tlabel\nä\tx\n"));
  spec.add_files(Write("wide.csv", wide));
  spec.add_files(Write("a.jsonl", "\xEF\xBB\xBF{\"text\": \"ä\", \"label\": \"x\"}"));
  for (const auto encoding : {DataSpec::WINDOWS1252, DataSpec::LATIN1}) {
    spec.set_encoding(encoding);
    const auto texts = Texts(spec);
    ASSERT_TRUE(texts.ok()) << texts.status();
    EXPECT_THAT(*texts, ElementsAre("ä||x@2", "ä||x@2", "ä||x@2", "ä||x@2", "ä||x@2", "ä||x@1"));
  }
  spec.set_encoding(DataSpec::UTF8);
  ExpectError(Texts(spec).status(), Exit::kData, "windows.csv:2: not UTF-8");
}

TEST_F(FileFormTest, SamplesKeepTheFormOfTheirFile) {
  for (const auto encoding : {DataSpec::UTF8, DataSpec::WINDOWS1252, DataSpec::UTF16}) {
    std::string text = "text;label\n";
    for (int i = 0; i < 100; ++i) text += encoding == DataSpec::WINDOWS1252 ? "\xE4;x\n" : "ä;x\n";
    DataSpec data = Data("a.csv", text);
    data.set_encoding(encoding);
    std::filesystem::create_directories(Path("sample"));
    const auto sample = SampleData(data, Path("sample"), 100);
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(Texts(sample->data)->front(), "ä||x@2");
    std::filesystem::remove_all(Path("sample"));
  }
}

TEST_F(FileFormTest, NotesOddTables) {
  const auto note = [&](const DataSpec& spec) {
    TextReader reader = *TextReader::Open(spec, Labels::kIgnored);
    TextExample row;
    while (*reader.Next(&row)) {
    }
    EXPECT_EQ(OddTables(spec), reader.TakeNote());
    EXPECT_EQ(reader.TakeNote(), "") << "once";
    return OddTables(spec);
  };
  DataSpec spec = Data("a.csv", "text,label\na,x\n");
  EXPECT_EQ(note(spec), "");
  spec.set_header(false);
  spec.set_text_field("1");
  EXPECT_THAT(note(spec),
      testing::HasSubstr("a.csv: the first row looks like a header, and is read as one"));
  EXPECT_THAT(*Texts(spec, Labels::kIgnored), ElementsAre("a||@2"));
  std::string rows;
  for (int i = 0; i < 60; ++i) rows += "a film to see,pos\n";
  spec.set_files(0, Write("b.csv", rows));
  EXPECT_EQ(note(spec), "");
  spec.set_header(true);
  EXPECT_THAT(note(spec), testing::HasSubstr("b.csv: the first row looks like data"));
  EXPECT_THAT(note(Data("c.tsv", "text\tlabel\n\"a\"\tx\n")), testing::HasSubstr("are in quotes"));
  ExpectError(Texts(Data("d.tsv", "\"text\"\t\"label\"\n\"a\"\t\"x\"\n")).status(), Exit::kData,
      "(names in quotes? read the file as CSV");
}

}  // namespace
}  // namespace cloze
