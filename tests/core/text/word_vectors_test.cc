#include "core/text/files/word_vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/file.h"
#include "tests/test_folder.h"

namespace cloze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<WordVectors> Read(const std::string& content) {
  const TestFolder folder;
  const std::string path = JoinPath(folder.path(), "words.vec");
  EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  return ReadWordVectors(path);
}

TEST(WordVectors, ReadsWhatItWrites) {
  const std::vector<float> cat = {0.1f, -1e-9f}, dog = {1.2345678f, 3e20f};
  const auto vectors =
      Read(absl::StrCat("2 2\n", WordVectorLine("cat", cat), WordVectorLine("\xC3\xA9", dog)));
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_THAT(vectors->words, ElementsAre("cat", "\xC3\xA9"));
  EXPECT_THAT(vectors->row(0), ElementsAre(0.1f, -1e-9f));
  EXPECT_THAT(vectors->row(1), ElementsAre(1.23457f, 3e20f));
  EXPECT_EQ(vectors->index.at("\xC3\xA9"), 1);
}

// fastText ends lines with a blank; word2vec repeats no word, but others do.
TEST(WordVectors, TakesBlanksAtTheEndAndTheFirstOfEqualWords) {
  const auto vectors = Read("3 1\na 1 \nb 2\r\na 3\n");
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_THAT(vectors->words, ElementsAre("a", "b"));
  EXPECT_THAT(vectors->values, ElementsAre(1, 2));
  EXPECT_EQ(vectors->index.at("a"), 0);
}

TEST(WordVectors, RefusesOtherContent) {
  const std::pair<const char*, const char*> cases[] = {{"", "is empty"},
      {"the quick fox\n", ".vec:1: not a file of word vectors"},
      {"-1 3\n", "not a file of word vectors"}, {"1 0\na\n", "not a file of word vectors"},
      {"99999999999 3\n", "not a file of word vectors"}, {"1 99999999\na 1\n", "at most 65536"},
      {"1 2\na 1\n", ".vec:2: \"a\": expected 2 numbers, found 1"},
      {"1 2\na 1 2 3\n", "expected 2 numbers, found 3"},
      {"1 2\na 1 nan\n", "expected a finite number, found \"nan\""},
      {"1 1\na 1e99\n", "expected a finite number"}, {"1 1\na x\n", "found \"x\""},
      {"1 1\na 0x1p3\n", "found \"0x1p3\""}, {"2 1\na 1\n", "ends early: 1 word missing"},
      {"1 1\na 1\nb 2\n", "has more words than its first line says"}};
  for (const auto& [content, message] : cases) {
    const auto vectors = Read(content);
    ASSERT_FALSE(vectors.ok()) << content;
    EXPECT_THAT(vectors.status().message(), HasSubstr(message)) << content;
  }
}

}  // namespace
}  // namespace cloze
