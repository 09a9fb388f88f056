// The first hour of a new user: a table as German Excel writes it, a spec for it, a model, and the
// same table with answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class FirstHourTest : public testing::Test {
 protected:
  FirstHourTest() : dir_(TemporaryFolder()) {}

  std::string Path(const std::string& name) const { return dir_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  RunResult Run(const std::string& arguments) const {
    return RunCloze(arguments, "cd " + dir_ + " && ");
  }
  // Expects success, and returns the output.
  std::string Do(const std::string& arguments) const {
    const RunResult result = Run(arguments);
    EXPECT_EQ(result.exit, 0) << arguments << ": " << result.err;
    return result.out;
  }
  // 40 rows: text, number, label.
  static std::string Rows(const std::string& end) {
    std::string rows;
    for (int i = 0; i < 40; ++i) {
      absl::StrAppend(&rows, i % 2 == 0 ? "W\xE4rme; \x80 kostet viel " : "Das Paket ist nicht da ",
          i, "|", i % 5, ",", i % 3, "|",
          i % 2 == 0 ? "Geld"
                     : "Gr\xF6\xDF"
                       "e");
      rows += i == 7 ? " " + end : end;
    }
    return rows;
  }
  // Trains a few steps as the spec says that `spec new` prints for the files.
  void Train(const std::string& files) const {
    Write("s.textproto", Do("spec new " + files) + "schedule { steps: 2 }\n");
    Do("finetune s.textproto");
  }

  std::string dir_;
};

TEST_F(FirstHourTest, ATableKeepsItsForm) {
  Write("tickets.csv", "Text|Note|Queue\r\n" + Rows("\r\n"));
  Write("new.csv", "Text|Nr\r\nkostet viel|1\r\n\"W\xE4rme | \x80\"|2\r\n");
  Train("tickets.csv");
  Do("predict --model runs/tickets new.csv --out p.csv");
  const std::string table = Content(Path("p.csv"));
  EXPECT_THAT(table, StartsWith("Text|Nr|label|score\r\nkostet viel|1|"));
  EXPECT_THAT(table, HasSubstr("\r\n\"W\xE4rme | \x80\"|2|"));
  EXPECT_FALSE(absl::StrContains(absl::StrReplaceAll(table, {{"\r\n", ""}}), "\n"));
  EXPECT_THAT(Do("predict --model runs/tickets --format tsv new.csv"), HasSubstr("W\xC3\xA4rme"))
      << "another format is UTF-8";
  Write("mark.csv", "\xEF\xBB\xBFText\nW\xC3\xA4rme\n");
  const std::string marked = Do("predict --model runs/tickets --format csv mark.csv");
  EXPECT_THAT(marked, StartsWith("\xEF\xBB\xBFText|label|score\n"));
  EXPECT_THAT(marked, HasSubstr("\nW\xC3\xA4rme|"));
  const std::string wide("\xFF\xFET\0e\0x\0t\0\n\0\xE4\0\n\0", 16);
  Write("wide.csv", wide);
  EXPECT_THAT(Do("predict --model runs/tickets --format csv wide.csv"),
      StartsWith(wide.substr(0, 10) + std::string("|\0l\0a\0b\0e\0l\0", 12)));

  // The held-out rows of the run, which are those of its last evaluation.
  const json held = json::parse(Do("evaluate --model runs/tickets"));
  EXPECT_EQ(
      json::parse(Do("evaluate --model runs/tickets --data tickets.csv --set share=0.2")), held);
  EXPECT_EQ(json::parse(Do("data check s.textproto"))["label_variants"], json::array());
}

TEST_F(FirstHourTest, NumbersHaveDecimalCommas) {
  Write("tickets.csv", "Text|Note\r\n" + absl::StrReplaceAll(Rows("\r\n"), {{"|Geld", ""},
                                                                               {"|Gr\xF6\xDF"
                                                                                "e",
                                                                                   ""},
                                                                               {" \r", "\r"}}));
  Train("tickets.csv");
  EXPECT_THAT(Content(Path("s.textproto")), HasSubstr("decimal_comma: true"));
  Do("predict --model runs/tickets tickets.csv --out p.csv");
  const std::string second = Content(Path("p.csv")).substr(Content(Path("p.csv")).find('\n') + 1);
  EXPECT_THAT(
      second.substr(0, second.find('\r')), testing::ContainsRegex("LABEL_0.-?[0-9]+,[0-9]+$"));
}

TEST_F(FirstHourTest, VocabTakesFoldersPatternsAndColumns) {
  Write("a.csv", "title,body\nalpha,beta\n");
  Write("b.csv", "title,body\ngamma,delta\n");
  const auto words = [&](const std::string& text) {
    const std::string out = Do("vocab --size 60 --min-count 1 --force --out v --text " + text);
    return out.substr(out.find("from "), out.find(" words") - out.find("from "));
  };
  EXPECT_EQ(words("a.csv --text-field title"), "from 1");
  EXPECT_EQ(words("a.csv --text-field title body"), "from 2");
  EXPECT_EQ(words("'[ab].csv' --text-field title body"), "from 4");
  EXPECT_EQ(words(". --text-field body"), "from 2");
  EXPECT_EQ(Run("vocab --size 60 --out v --text 'x*.csv'").exit, 66);
}

}  // namespace
}  // namespace cloze
