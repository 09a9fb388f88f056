#include "tasks/training/run_inputs.h"

#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class StartVectorsTest : public TrainerTest {
 protected:
  std::string File(const std::string& name, int dim) {
    std::string text = absl::StrCat("3 ", dim, "\n");
    for (const char* word : {"cat", "mat", "unheard"}) {
      text += word;
      for (int i = 0; i < dim; ++i) absl::StrAppend(&text, " ", word[0] == 'c' ? i : -3);
      text += "\n";
    }
    Write(name, text);
    return Path(name);
  }
  LoadedSpec With(const std::string& file, const std::string& run) {
    return Spec(Mlm("word_vectors: \"" + file + "\" "), "text.txt", run, 1);
  }
};

TEST_F(StartVectorsTest, WordsTakeTheirVectors) {
  const auto tokenizer = SmallTokenizer();
  auto config = ConfigFromSpec(Spec(Mlm(), "text.txt", "run", 1).spec.model().encoder());
  ASSERT_TRUE(config.ok()) << config.status();
  const auto start = ReadStartVectors(With(File("a.vec", 32), "run"), *config, *tokenizer);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_THAT(start->ids, testing::ElementsAre(tokenizer->id("cat"), tokenizer->id("mat")));
  double squares = 0;
  for (const float value : start->values) squares += value * value;
  EXPECT_NEAR(std::sqrt(squares / 64), config->initializer.range, 1e-6);
  EXPECT_FLOAT_EQ(start->values[5] / start->values[1], 5);
  std::vector<float> table(tokenizer->vocab_size() * 32, 7);
  start->CopyTo(View(table.data(), tokenizer->vocab_size(), 32));
  EXPECT_EQ(table[tokenizer->id("cat") * 32 + 9], start->values[9]);
  EXPECT_EQ(table[tokenizer->id("mat") * 32 + 9], start->values[32 + 9]);
  EXPECT_EQ(table[tokenizer->id("sat") * 32], 7);
}

TEST_F(StartVectorsTest, ARunStartsFromThem) {
  const auto run = [&](const std::string& more, const std::string& folder) {
    const auto summary = Train(Spec(Mlm(more), "text.txt", folder, 1));
    EXPECT_TRUE(summary.ok()) << summary.status();
  };
  run("", "random");
  run("word_vectors: \"" + File("a.vec", 32) + "\" ", "vectors");
  EXPECT_THAT(progress_, HasSubstr("model.encoder.word_vectors: 2 of "));
  EXPECT_NE(Weights("random"), Weights("vectors"));
}

TEST_F(StartVectorsTest, RefusesWhatDoesNotFit) {
  const auto wide = Train(With(File("b.vec", 16), "run"));
  EXPECT_EQ(ExitOf(wide.status()), Exit::kMismatch);
  EXPECT_THAT(wide.status().message(),
      HasSubstr("has 16 dimensions: expected the size of the embeddings, 32"));
  EXPECT_THAT(wide.status().message(), HasSubstr("model.encoder.word_vectors: "));
  Write("c.vec", "1 32\nunheard" + std::string(" 1") + "\n");
  EXPECT_EQ(ExitOf(Train(With(Path("c.vec"), "run")).status()), Exit::kData);
  EXPECT_EQ(ExitOf(Train(With(Path("none.vec"), "run")).status()), Exit::kNoInput);
  const auto wrong = CheckInputs(With(Path("b.vec"), "run"));
  ASSERT_EQ(wrong.size(), 1);
  EXPECT_EQ(ExitOf(wrong[0]), Exit::kMismatch);
}

}  // namespace
}  // namespace cloze
