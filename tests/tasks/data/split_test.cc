// Held-out shares, patterns, folders and delimiters.
#include <sys/stat.h>

#include <map>
#include <set>

#include "tasks/data/readers.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

class SplitTest : public FilesTest {
 protected:
  // Reads all texts; label by text.
  static std::multimap<std::string, std::string> TextsOf(const DataSpec& spec) {
    return TextsOf(TextReader::Open(spec, Labels::kRequired));
  }
  static std::multimap<std::string, std::string> TextsOf(absl::StatusOr<TextReader> reader) {
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::multimap<std::string, std::string> texts;
    TextExample example;
    while (true) {
      const auto more = reader->Next(&example);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return texts;
      texts.emplace(example.text, example.label);
    }
  }
  static int64_t Count(
      const std::multimap<std::string, std::string>& texts, const std::string& label) {
    return std::count_if(
        texts.begin(), texts.end(), [&](const auto& entry) { return entry.second == label; });
  }
};

using Row = std::pair<std::string, std::string>;  // text, label

std::string Csv(const std::vector<Row>& rows) {
  std::string csv = "text,label\n";
  for (const auto& [text, label] : rows) absl::StrAppend(&csv, text, ",\"", label, "\"\n");
  return csv;
}

// Texts of a frequent, a less frequent and several rare labels; some texts have two labels.
std::vector<Row> ManyRows(int from, int to) {
  std::vector<Row> rows;
  for (int i = from; i < to; ++i) {
    const std::string text = absl::StrCat("t", i);
    rows.emplace_back(text, i % 10 == 0 ? "rare" : "often");
    if (i % 50 == 7) rows.emplace_back(text, "rare");
    if (i % 100 < 3) rows.emplace_back(absl::StrCat("r", i), absl::StrCat("label ", i % 4));
  }
  return rows;
}

TEST_F(SplitTest, HoldsOutTextsByTheirHashAlone) {
  const auto held_out = [&](std::vector<Row> rows) {
    DataSpec held = Data("a.csv", Csv(rows)), rest = held;
    held.set_share(0.1);
    rest.set_leave_out(0.1);
    const auto texts = TextsOf(held), training = TextsOf(rest);
    EXPECT_EQ(texts.size() + training.size(), rows.size());
    for (const auto& [text, label] : texts) EXPECT_EQ(training.count(text), 0u) << text;
    return std::set<Row>(texts.begin(), texts.end());
  };
  std::vector<Row> rows = ManyRows(0, 2000);
  const auto before = held_out(rows);
  EXPECT_NEAR(before.size(), 0.1 * rows.size(), 50);
  std::vector<Row> reversed(rows.rbegin(), rows.rend());
  EXPECT_EQ(held_out(reversed), before);
  for (const Row& row : ManyRows(2000, 2300)) rows.push_back(row);
  std::set<Row> after = held_out(rows);
  EXPECT_GT(after.size(), before.size());
  std::erase_if(after, [](const Row& row) { return std::atoi(row.first.c_str() + 1) >= 2000; });
  EXPECT_EQ(after, before);
}

// Of labels with several texts, a text is on either side; that of a label with one is learned.
TEST_F(SplitTest, RareLabelsAreOnBothSides) {
  std::vector<Row> rows;
  for (int label = 0; label < 60; ++label) {
    for (int i = 0; i < 2 + label % 3; ++i)
      rows.emplace_back(absl::StrCat("t", label, ".", i), absl::StrCat("several ", label));
    rows.emplace_back(absl::StrCat("alone", label), absl::StrCat("single ", label));
  }
  rows.emplace_back("t0.0", "several 1");  // a text with two labels
  DataSpec held = Data("a.csv", Csv(rows)), rest = held;
  for (const float share : {0.01f, 0.1f, 0.8f}) {
    held.set_share(share);
    rest.set_leave_out(share);
    const auto held_out = TextsOf(held), training = TextsOf(rest);
    for (int label = 0; label < 60; ++label) {
      const std::string several = absl::StrCat("several ", label);
      EXPECT_GE(Count(held_out, several), 1) << several;
      EXPECT_GE(Count(training, several), 1) << several;
      EXPECT_EQ(Count(training, absl::StrCat("single ", label)), 1) << label;
    }
  }
  // The only text of "y" is trained on, if "x" has another one to hold out.
  for (const auto& [text, other, held_of_y] : {std::tuple("b", "a", 0), {"a", "b", 1}}) {
    DataSpec two = Data("b.csv", Csv({{text, "x"}, {other, "x"}, {text, "y"}}));
    two.set_share(0.1);
    const auto held_out = TextsOf(two);
    EXPECT_EQ(Count(held_out, "x"), 1);
    EXPECT_EQ(Count(held_out, "y"), held_of_y) << text;
  }
}

TEST_F(SplitTest, EmptyTextsAreNotHeldOut) {
  for (const char* empty : {"", "  ", "\xC2\xA0"}) {
    std::vector<Row> rows = {{empty, "only empty"}, {empty, "x"}};
    for (int i = 0; i < 40; ++i) rows.emplace_back(absl::StrCat("t", i), i % 2 == 0 ? "x" : "y");
    DataSpec held = Data("a.csv", Csv(rows));
    held.set_share(0.9);
    EXPECT_EQ(TextsOf(held).count(empty), 0u);
    held.clear_share();
    held.set_leave_out(0.9);
    EXPECT_EQ(TextsOf(held).count(empty), 2u);
  }
}

TEST_F(SplitTest, SeveralLabelsOfATextCountEach) {
  std::string rows = "text,label\n", json;
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&rows, "t", i, ",a;l", i / 2, ";\n");
    absl::StrAppend(&json, "{\"text\": \"t", i, "\", \"label\": [\"a\", \"l", i / 2, "\"]}\n");
  }
  for (DataSpec spec : {Data("a.csv", rows), Data("a.jsonl", json)}) {
    spec.set_share(0.05);
    auto reader =
        TextReader::Open(spec, Labels::kSeveral, /*keep_lines=*/false, {.separator = ";"});
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::set<std::string> found;
    int64_t texts = 0;
    for (TextExample text; *reader->Next(&text); ++texts)
      for (const std::string& label : LabelsOf(text, ";")) found.insert(label);
    EXPECT_EQ(found.size(), 21u);  // each has several texts
    EXPECT_EQ(texts, 20);
  }
}

// The rule of runs that recorded none: the choice below is that of version 0.1.
TEST_F(SplitTest, EarlierRunsKeepTheirRule) {
  std::string rows = "text,label\n";
  for (int i = 0; i < 200; ++i)
    absl::StrAppend(&rows, "t", i, ",", i % 10 == 0 ? "rare" : "often", "\n");
  absl::StrAppend(&rows, "alone,single\n");
  for (int i = 0; i < 50; ++i) absl::StrAppend(&rows, "t", i, ",other\n");  // texts again
  DataSpec held = Data("a.csv", rows), rest = held;
  for (DataSpec* spec : {&held, &rest}) spec->set_share_rule(1);
  held.set_share(0.1);
  rest.set_leave_out(0.1);
  const auto held_out = TextsOf(held), training = TextsOf(rest);
  EXPECT_EQ(Count(held_out, "often"), 18);
  EXPECT_EQ(Count(held_out, "rare"), 2);
  EXPECT_EQ(Count(training, "single"), 1);
  EXPECT_EQ(held_out.size() + training.size(), 251u);
  for (const auto& [text, label] : held_out) EXPECT_EQ(training.count(text), 0u) << text;
  DataSpec more = Data("b.csv", rows + "new1,fresh\nnew2,fresh\n");
  more.set_share(0.1);
  more.set_share_rule(1);
  EXPECT_EQ(TextsOf(more), held_out);
  std::string texts;
  for (const auto& [text, label] : held_out) absl::StrAppend(&texts, text, " ");
  EXPECT_EQ(texts,
      "t105 t116 t126 t128 t131 t135 t136 t138 t158 t177 t178 t187 t192 t25 t25 t28 t28 t29 t29 "
      "t60 t77 t85 t90 ");
}

TEST_F(SplitTest, SplitsNumbersDocumentsAndSentences) {
  std::string rows = "text\tlabel\n", documents, words;
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&rows, "t", i, "\t", i * 0.5, "\n");
    absl::StrAppend(&documents, "document ", i, "\n\n");
    absl::StrAppend(&words, "word", i, "\tX\n\n");
  }
  DataSpec spec = Data("a.tsv", rows);
  spec.set_share(0.2);
  const size_t numbers = TextsOf(TextReader::Open(spec, Labels::kNumber)).size();
  EXPECT_GT(numbers, 150u);
  EXPECT_LT(numbers, 250u);
  const auto count = [](auto opened, auto item) {
    EXPECT_TRUE(opened.ok()) << opened.status();
    int64_t n = 0;
    while (*opened->Next(&item)) ++n;
    return n;
  };
  for (const bool held : {true, false}) {
    DataSpec text = Data("a.txt", documents), tagged = Data("a.conll", words);
    for (DataSpec* each : {&text, &tagged}) held ? each->set_share(0.2) : each->set_leave_out(0.2);
    const int64_t expected = held ? 200 : 800;
    EXPECT_NEAR(count(DocumentReader::Open(text), DocumentPiece()), expected, 50);
    EXPECT_NEAR(
        count(TaggedReader::Open(tagged, Labels::kRequired), TaggedSentence()), expected, 50);
  }
}

TEST_F(SplitTest, ExpandsPatternsAndFolders) {
  Write("b.csv", "text,label\nsecond,x\n");
  Write("a.csv", "text,label\nfirst,x\n");
  Write("notes.md", "no data");
  DataSpec spec;
  spec.add_files(Path("*.csv"));
  const auto files = FilesOf(spec);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].path, Path("a.csv"));
  spec.set_files(0, folder_);
  EXPECT_EQ(TextsOf(spec).size(), 2u);
  spec.set_files(0, Path("*.tsv"));
  ExpectError(FilesOf(spec).status(), Exit::kNoInput, "*.tsv: no file matches this pattern");
  std::filesystem::create_directory(Path("empty"));
  spec.set_files(0, Path("empty"));
  ExpectError(FilesOf(spec).status(), Exit::kNoInput, "a folder without data files");
  // Opening a pipe waits for its writer.
  ASSERT_EQ(::mkfifo(Path("pipe.csv").c_str(), 0600), 0);
  for (const std::string& found : {folder_, Path("*.csv")}) {
    spec.set_files(0, found);
    ExpectError(FilesOf(spec).status(), Exit::kNoInput, "pipe.csv: is a pipe, found by ");
  }
  spec.set_files(0, Path("pipe.csv"));
  EXPECT_TRUE(FilesOf(spec).ok());
  Write("[x].csv", "text,label\nthird,x\n");  // a name, not a pattern
  spec.set_files(0, Path("[x].csv"));
  EXPECT_EQ(TextsOf(spec).count("third"), 1u);
}

TEST_F(SplitTest, ReadsOtherDelimiters) {
  DataSpec spec = Data("a.csv", "id;text;label\n1;\"a;b\";x\n");
  EXPECT_EQ(TextsOf(spec).begin()->first, "a;b") << "recognized by the header";
  spec.set_text_field("body");
  ExpectError(TextReader::Open(spec, Labels::kRequired)
                  ->Next(std::make_unique<TextExample>().get())
                  .status(),
      Exit::kData, "(columns separated by ;? set delimiter: \";\")");
  spec.set_text_field("text");
  spec.set_delimiter(";");
  EXPECT_EQ(TextsOf(spec).begin()->first, "a;b");
  for (const char* tab : {"\t", R"(\t)"}) {
    spec = Data("tabs.csv", "text\tlabel\na,b\tx\n");
    spec.set_delimiter(tab);
    EXPECT_EQ(TextsOf(spec).begin()->first, "a,b");
  }
}

TEST_F(SplitTest, ReadsOtherEncodings) {
  DataSpec spec = Data("a.csv", "text,label\ncaf\xE9 \x80,x\n");
  spec.set_encoding(DataSpec::WINDOWS1252);
  EXPECT_EQ(TextsOf(spec).begin()->first, "café €");
  spec = Data("b.csv", std::string("\xFF\xFEt\0,\0l\0\n\0\xE9\0,\0x\0\n\0", 18));
  spec.set_text_field("t");
  spec.set_label_field("l");
  EXPECT_EQ(TextsOf(spec).begin()->first, "é");
  spec.set_encoding(DataSpec::UTF16);
  EXPECT_EQ(TextsOf(spec).begin()->first, "é");
}

TEST_F(SplitTest, NamesOldMacLineEndsAndLfsPointers) {
  const auto error = [&](const std::string& content) {
    return TextReader::Open(Data("a.csv", content))
        ->Next(std::make_unique<TextExample>().get())
        .status();
  };
  ExpectError(error("text,label\ra,b\r"), Exit::kData, "a.csv:1: carriage returns without line");
  ExpectError(
      error("version https://git-lfs.github.com/spec/v1\n"), Exit::kData, "Git LFS pointer");
}

}  // namespace
}  // namespace cloze
