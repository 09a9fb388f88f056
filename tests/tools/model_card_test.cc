#include "tools/model_card.h"

#include <filesystem>
#include <fstream>

#include "core/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ModelCardTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return JoinPath(folder_.path(), name); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name)) << text;
  }
  void SetUp() override {
    std::filesystem::create_directory(Path("run"));
    Write("run/spec.textproto",
        "model { start_from: 'base' } sequence_classification { max_tokens: 48 } train { files: "
        "'/data/tickets.csv' } validation { files: 'dev.csv' } output { directory: 'run' }");
    Write("run/config.json",
        "{\"architectures\": [\"BertForSequenceClassification\"], \"temperature\": 1.5}");
    Write("run/metrics.json",
        "{\"step\":3,\"metrics\":{\"accuracy\":0.75,\"mcc\":0.5,\"ece\":null,\"per_class\":[{"
        "\"label\":"
        "\"a|b\",\"precision\":1.0,\"recall\":0.5,\"f1\":0.6667,\"support\":4}]}}");
    Write("run/about.json", "{\"program\":\"cloze 9\",\"data\":{\"train\":{\"examples\":90}}}");
  }
  std::string Card(const std::string& folder = "run") {
    return ReadFile(Path(folder + "/README.md"), 1 << 20).value_or("");
  }
  const TestFolder folder_;
};

TEST_F(ModelCardTest, SaysWhatTheRunKnows) {
  ASSERT_TRUE(WriteModelCard(Path("run"), Path("run")).ok());
  const std::string card = Card();
  EXPECT_THAT(card, StartsWith("---\nlicense: unknown\nlibrary_name: transformers\n"));
  for (const char* part : {"pipeline_tag: text-classification\n", "metrics:\n- accuracy\n",
           "    - type: matthews_correlation\n      name: mcc\n      value: 0.5\n", "# run\n",
           "Right on 75.0 % of 4 held-out texts", "| accuracy | 0.75 |", "| a\\|b | 1.000 |",
           "- train: `tickets.csv`, 90 examples", "cloze 9", "the weights of `base`",
           "cloze predict --model run texts.txt",
           "pipeline(\"text-classification\", model=\"run\")", "`temperature`"})
    EXPECT_THAT(card, HasSubstr(part));
  EXPECT_THAT(card, Not(HasSubstr("ece")));
}

TEST_F(ModelCardTest, KeepsWhatPeopleWrote) {
  ASSERT_TRUE(WriteModelCard(Path("run"), Path("run")).ok());
  const std::string first = Card();
  Write("run/metrics.json", "{\"step\":3,\"metrics\":{\"accuracy\":0.875}}");
  ASSERT_TRUE(WriteModelCard(Path("run"), Path("run")).ok());
  EXPECT_THAT(Card(), HasSubstr("| accuracy | 0.875 |")) << "its own card is replaced";
  Write("run/README.md", first + "Mine.\n");
  ASSERT_TRUE(WriteModelCard(Path("run"), Path("run")).ok());
  EXPECT_EQ(Card(), first + "Mine.\n");
  Write("run/README.md", "");
  ASSERT_TRUE(WriteModelCard(Path("run"), Path("run")).ok());
  EXPECT_EQ(Card(), "");
}

TEST_F(ModelCardTest, NamesTheLicenceOfTheModelAtTheStart) {
  std::filesystem::create_directory(Path("base"));
  Write("base/README.md", "---\nlanguage: en\nlicense: apache-2.0\n---\n# Base\n");
  Write("run/spec.textproto",
      "model { start_from: '" + Path("base") +
          "' } sequence_classification { } train { files: 'a.csv' } output { directory: 'run' }");
  ASSERT_TRUE(WriteModelCard(Path("run"), Path("run")).ok());
  EXPECT_THAT(Card(), HasSubstr("names `apache-2.0`"));
}

TEST_F(ModelCardTest, CopiesSayWhatWasChanged) {
  ASSERT_TRUE(WriteModelCard(Path("run"), Path("run")).ok());
  std::filesystem::create_directory(Path("copy"));
  ASSERT_TRUE(CopyModelCard(Path("run"), Path("copy"), "It is int8 now.").ok());
  EXPECT_THAT(Card("copy"), HasSubstr("## Changed afterwards\n\nIt is int8 now.\n"));
  EXPECT_THAT(Card("copy"), Not(HasSubstr("written by cloze")));
  std::filesystem::create_directory(Path("none"));
  EXPECT_TRUE(CopyModelCard(Path("none"), Path("copy2"), "x").ok());
}

}  // namespace
}  // namespace cloze
