// Classifiers that read the mean or the largest of a text's hidden states.
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class PoolingRun : public TrainerTest {
 protected:
  LoadedSpec Classifier(const std::string& pooling, const std::string& run) {
    return Spec(
        absl::StrCat(NewEncoder(), " sequence_classification { max_tokens: 48 ", pooling, " }"),
        "classes.tsv", run, 12);
  }
};

TEST_F(PoolingRun, SameBitsAfterResumes) {
  ExpectSameBitsAfterResumes(
      [&](const std::string& run) { return Classifier("pooling: MAX", run); });
}

TEST_F(PoolingRun, TheFolderSaysHow) {
  const std::pair<const char*, Pool> cases[] = {
      {"", Pool::kClass}, {"pooling: MEAN", Pool::kMean}, {"pooling: MAX", Pool::kMax}};
  for (const auto& [pooling, expected] : cases) {
    SCOPED_TRACE(pooling);
    const std::string run = absl::StrCat("run", static_cast<int>(expected));
    ASSERT_TRUE(Train(Classifier(pooling, run)).ok());
    EXPECT_EQ(LoadConfig(Path(run))->pooling, expected);
    EXPECT_TRUE(LoadConfig(Path(run))->pooler);
    EXPECT_EQ(LoadConfig(Path(run))->head, HeadKind::kSequenceClassification);
    // transformers must not load it as its own classifier, which reads the first token.
    EXPECT_THAT(Read(Path(run + "/config.json")),
        HasSubstr(expected == Pool::kClass ? "BertForSequenceClassification" : "\"BertModel\""));
  }
  EXPECT_NE(Weights("run0"), Weights("run1"));
  EXPECT_NE(Weights("run1"), Weights("run2"));
}

}  // namespace
}  // namespace cloze
