// FOLDERS files, and how labels are read.
#include "tasks/data/label_rule.h"
#include "tasks/data/readers.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::ElementsAre;

class ClassFoldersTest : public FilesTest {
 protected:
  // "text|label" of all examples.
  static absl::StatusOr<std::vector<std::string>> Texts(
      const DataSpec& spec, Labels labels = Labels::kRequired, const LabelRule& rule = {}) {
    ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(spec, labels, false, rule));
    std::vector<std::string> texts;
    for (TextExample e;;) {
      ASSIGN_OR_RETURN(const bool more, reader.Next(&e));
      if (!more) return texts;
      texts.push_back(absl::StrCat(e.text, "|", e.label));
      for (const std::string& label : e.list.value_or(std::vector<std::string>()))
        absl::StrAppend(&texts.back(), label, ",");
    }
  }
  DataSpec Folders(const std::string& path) const {
    DataSpec spec;
    spec.set_format(DataSpec::FOLDERS);
    spec.add_files(Path(path));
    return spec;
  }
  void MakeNews() const {
    std::filesystem::create_directories(Path("news/sport"));
    std::filesystem::create_directories(Path("news/art"));
    std::filesystem::create_directories(Path("news/.git"));
    Write("news/README", "no text"), Write("news/.git/x", "no text");
    Write("news/sport/2.txt", "a goal\r\n\r\nin Oslo"), Write("news/sport/10", "a race\n");
    Write("news/art/1.txt",
        "\xEF\xBB\xBF"
        "a picture"),
        Write("news/art/.hidden", "no text");
  }
};

TEST_F(ClassFoldersTest, TheClassIsTheFolder) {
  MakeNews();
  EXPECT_THAT(*Texts(Folders("news")),
      ElementsAre("a picture|art", "a race|sport", "a goal\n\nin Oslo|sport"));
  EXPECT_THAT(*Texts(Folders("news"), Labels::kSeveral),
      ElementsAre("a picture|artart,", "a race|sportsport,", "a goal\n\nin Oslo|sportsport,"));
  EXPECT_THAT(*Texts(Folders("news"), Labels::kIgnored),
      ElementsAre("a picture|", "a race|", "a goal\n\nin Oslo|"));
}

TEST_F(ClassFoldersTest, TakesSomeFoldersAndPatterns) {
  MakeNews();
  EXPECT_THAT(*Texts(Folders("news/art")), ElementsAre("a picture|art"));
  EXPECT_THAT(*Texts(Folders("news/[s]*")), ElementsAre("a race|sport", "a goal\n\nin Oslo|sport"));
  EXPECT_THAT(*Texts(Folders("news/art/1.txt")), ElementsAre("a picture|art"));
  std::filesystem::create_directories(Path("none"));
  ExpectError(Texts(Folders("none")).status(), Exit::kNoInput, "none: no texts: expected a folder");
  DataSpec unnamed = Folders("news");
  unnamed.clear_format();
  ExpectError(Texts(unnamed).status(), Exit::kNoInput, "FOLDERS reads a folder per class");
}

TEST_F(ClassFoldersTest, LabelsAreTrimmedThenReplaced) {
  const DataSpec data = Data("a.tsv", "text\tlabel\na\t Billing\nb\tbilling\nc\t\n");
  const LabelRule rule = {.trim = true, .names = {{"billing", "Billing"}, {"", "none"}}};
  EXPECT_THAT(
      *Texts(data, Labels::kRequired, rule), ElementsAre("a|Billing", "b|Billing", "c|none"));
  ExpectError(Texts(data).status(), Exit::kData,
      "a.tsv:4: label_field: an empty label (remove the row, or name such texts: label_map: "
      "\"=none\")");
  const DataSpec several = Data("b.tsv", "text\tlabel\na\tx,X, y\nb\t\n");
  EXPECT_THAT(*Texts(several, Labels::kSeveral, {.names = {{"X", "x"}}}),
      ElementsAre("a|x,X, yx,y,", "b|"));
}

TEST_F(ClassFoldersTest, DecimalCommas) {
  DataSpec data = Data("a.csv", "text;label\na;3,25\nb;-1\n");
  data.set_delimiter(";");
  EXPECT_THAT(*Texts(data, Labels::kNumber), ElementsAre("a|3,25", "b|-1"));
  data.set_decimal_comma(true);
  EXPECT_THAT(*Texts(data, Labels::kNumber), ElementsAre("a|3.25", "b|-1"));
  data = Data("b.csv", "text;label\na;3.25\n");
  data.set_decimal_comma(true);
  ExpectError(Texts(data, Labels::kNumber).status(), Exit::kData,
      "b.csv:2: label_field: \"3.25\" has a point: expected a comma");
  data = Data("b.jsonl", "{\"text\": \"a\", \"label\": 3.25}\n");
  data.set_decimal_comma(true);
  EXPECT_THAT(*Texts(data, Labels::kNumber), ElementsAre("a|3.25")) << "JSON has points";
  for (const char* text : {"3,2", "-0,5", "1,"}) EXPECT_TRUE(HasDecimalComma(text)) << text;
  for (const char* text : {"3.2", "1,234.5", "1,234,567", "a,b", ","})
    EXPECT_FALSE(HasDecimalComma(text)) << text;
}

TEST_F(ClassFoldersTest, OtherFormatsHaveAWayOut) {
  DataSpec data = Data("a.xlsx", "PK");
  ExpectError(Texts(data).status(), Exit::kSpec, "save it in Excel as \"CSV UTF-8\"");
  data = Data("a.PARQUET", "PAR1");
  ExpectError(Texts(data).status(), Exit::kSpec, "write it as JSON lines");
}

}  // namespace
}  // namespace cloze
