#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/run.h"

namespace cloze {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class VectorsTest : public testing::Test {
 protected:
  VectorsTest() {
    std::ofstream text(folder_ + "/text.txt");
    for (int i = 0; i < 400; ++i)
      text << (i % 2 == 0 ? "The cat, the dog and the cow eat grass.\n" : "one two six ten one\n");
  }
  RunResult Vectors(const std::string& more) {
    return RunCloze("vectors --text " + folder_ + "/text.txt --dim 12 --subsample 0 " + more);
  }
  const std::string folder_ = TemporaryFolder(), out_ = folder_ + "/a.vec";
};

TEST_F(VectorsTest, WritesTheSameFileWithAnyNumberOfThreads) {
  const RunResult one = Vectors("--threads 1 --out " + out_);
  ASSERT_EQ(one.exit, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("a.vec: 13 words of 12 dimensions"));
  EXPECT_THAT(one.err, HasSubstr("words/s  loss"));
  EXPECT_EQ(Vectors("--out " + out_).exit, 73) << "exists";
  ASSERT_EQ(Vectors("--threads 3 --out " + folder_ + "/b.vec").exit, 0);
  EXPECT_EQ(Content(out_), Content(folder_ + "/b.vec"));
  EXPECT_EQ(Content(out_).substr(0, 10), "13 12\nthe ");
  ASSERT_EQ(RunCloze("version", "gzip -k " + folder_ + "/text.txt && ").exit, 0);
  const RunResult packed =
      RunCloze("vectors --text " + folder_ + "/text.txt.gz --dim 12 --subsample 0 --out " +
               folder_ + "/c.vec");
  ASSERT_EQ(packed.exit, 0) << packed.err;
  EXPECT_EQ(Content(out_), Content(folder_ + "/c.vec"));
  ASSERT_EQ(Vectors("--method cbow --max-n 0 --force --out " + out_).exit, 0);
  EXPECT_NE(Content(out_), Content(folder_ + "/b.vec"));
}

TEST_F(VectorsTest, NeighborsAndAnalogyReadThem) {
  std::ofstream(out_) << "5 2\nking 1 1\nman 1 0\nwoman 0 0.5\nqueen 0 1.5\nfar -1 -1\n";
  const RunResult near = RunCloze("neighbors --top 2 --model " + out_ + " king");
  ASSERT_EQ(near.exit, 0) << near.err;
  const json row = json::parse(near.out);
  EXPECT_EQ(row["neighbors"][0]["token"], "man");
  EXPECT_NEAR(row["neighbors"][0]["score"], std::sqrt(0.5), 1e-6);
  const RunResult analogy = RunCloze("analogy --top 1 --model " + out_ + " king man woman");
  ASSERT_EQ(analogy.exit, 0) << analogy.err;
  EXPECT_EQ(json::parse(analogy.out)["neighbors"][0]["token"], "queen");
  const RunResult unknown = RunCloze("analogy --model " + out_ + " king man womman");
  EXPECT_EQ(unknown.exit, 65);
  EXPECT_THAT(
      unknown.err, HasSubstr("\"womman\" has no vector in the file; did you mean \"woman\"?"));
  std::ofstream(out_) << "5 2\nking 1";
  EXPECT_EQ(RunCloze("neighbors --model " + out_ + " king").exit, 65);
}

TEST_F(VectorsTest, ExplainsWrongUse) {
  EXPECT_EQ(RunCloze("vectors --text " + folder_ + "/none --out " + out_).exit, 66);
  EXPECT_EQ(Vectors("--min-n 4 --max-n 3 --out " + out_).exit, 2);
  EXPECT_EQ(Vectors("--blanks --lowercase --out " + out_).exit, 2);
  EXPECT_EQ(Vectors("--epochs 10000 --out " + folder_ + "/none/a.vec").exit, 73) << "at once";
  const RunResult rare = Vectors("--min-count 9999 --out " + out_);
  EXPECT_EQ(rare.exit, 65);
  EXPECT_THAT(rare.err, HasSubstr("lower that number"));
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(VectorsTest, AnInterruptLeavesNothing) {
  const RunResult stopped =
      RunCloze("vectors --text " + folder_ + "/text.txt --subsample 0 --epochs 10000 --out " + out_,
          "timeout --foreground --preserve-status -s INT 1 ");
  EXPECT_EQ(stopped.exit, 75) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopped; nothing was written"));
  EXPECT_FALSE(std::filesystem::exists(out_));
}

}  // namespace
}  // namespace cloze
