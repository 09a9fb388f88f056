// Words and labels of FASTTEXT files, as fastText's readWord (src/dictionary.cc) separates them.
#include "tasks/data/readers.h"
#include "tests/tasks/data/test_files.h"

namespace cloze {
namespace {

using testing::ElementsAre;

class FastTextTest : public FilesTest {
 protected:
  // "text|label,label@line" of all examples.
  std::vector<std::string> Read(const std::string& content, Labels labels = Labels::kSeveral) {
    TextReader reader = *TextReader::Open(Data("a.ft", content), labels);
    std::vector<std::string> texts;
    for (TextExample e;;) {
      const absl::StatusOr<bool> more = reader.Next(&e);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return texts;
      texts.push_back(absl::StrCat(e.text, "|", e.label));
      for (const std::string& label : e.list.value_or(std::vector<std::string>()))
        absl::StrAppend(&texts.back(), label, ",");
      absl::StrAppend(&texts.back(), "@", e.line);
    }
  }
};

TEST_F(FastTextTest, EverySeparatorEndsAWord) {
  for (const char separator : {' ', '\t', '\v', '\f', '\r', '\0'}) {
    const std::string s(1, separator);
    EXPECT_THAT(Read("__label__a" + s + "__label__b" + s + "the cat" + s + "__label__c" + s + "\n"),
        ElementsAre("the cat|a,b,c,@1"))
        << static_cast<int>(separator);
    EXPECT_THAT(Read("the" + s + s + "__label__a" + s + "cat\n", Labels::kIgnored),
        ElementsAre("the" + s + " cat|@1"))
        << static_cast<int>(separator);
  }
  EXPECT_THAT(Read("the\xC2\xA0__label__a\n"), ElementsAre("the\xC2\xA0__label__a|@1"))
      << "a no-break space is no separator";
}

TEST_F(FastTextTest, LabelsAreWordsWithThePrefix) {
  EXPECT_THAT(Read("x__label__y __label__c\n", Labels::kRequired), ElementsAre("x__label__y|c@1"));
  EXPECT_THAT(Read("__label__a__label__b x\n"), ElementsAre("x|a__label__b,@1"));
  EXPECT_THAT(Read("\v \f\n\nx\n"), ElementsAre("x|@3")) << "a line of separators is empty";
}

}  // namespace
}  // namespace cloze
