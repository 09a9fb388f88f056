// The files of sentence-transformers in the folder of a run: MANIFEST does not list them, but a
// change of one is noticed, and a sweep publishes those of its best run.
#include <gmock/gmock.h>

#include <filesystem>

#include "absl/strings/str_replace.h"
#include "core/manifest/manifest.h"
#include "encoder/folder/sentence_vectors.h"
#include "tasks/jobs/runs.h"
#include "tasks/jobs/verify.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

using testing::HasSubstr;

class SentenceFolder : public TrainerTest {
 protected:
  // Trains for two steps; returns the folder.
  std::string Run(const std::string& name, const std::string& pooling) {
    Write("pairs.tsv", "text\tother\na cat\tthe dog\nthe mat\tbig box\nred cat\ta mat\n");
    const auto spec = ParseSpec(
        absl::StrCat(NewEncoder(), " sentence_embedding { max_tokens: 16 query_prompt: \"the\" ",
            pooling, " } train { files: \"", Path("pairs.tsv"),
            "\" text_field: \"text\" text_pair_field: \"other\" } batch { examples: 3 } "
            "schedule { steps: 2 } output { directory: \"",
            Path(name), "\" }"),
        "test");
    EXPECT_TRUE(spec.ok()) << spec.status();
    const auto summary = Train(*spec);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return Path(name);
  }
  static absl::Status Verify(const std::string& folder) {
    const auto verdicts = VerifyRun(folder);
    return verdicts.ok() ? verdicts->at(0).status : verdicts.status();
  }
};

TEST_F(SentenceFolder, AChangedOrMissingFileIsNoticed) {
  const std::string run = Run("run", "");
  ASSERT_TRUE(Verify(run).ok()) << Verify(run);
  using Changes = std::vector<std::pair<absl::string_view, absl::string_view>>;
  const std::pair<std::string, Changes> files[] = {
      {"1_Pooling/config.json", {{"max_tokens\": false", "max_tokens\": true"},
                                    {"mean_tokens\": true", "mean_tokens\": false"}}},
      {"modules.json", {{"models.Normalize", "models.Other"}}},
      {"config_sentence_transformers.json", {{"\"query\": \"the\"", "\"query\": \"a\""}}},
      {"sentence_bert_config.json", {{"16", "12"}}}};
  for (const auto& [name, changes] : files) {
    SCOPED_TRACE(name);
    const std::string path = run + "/" + name, text = ReadFile(path, 10000).value(),
                      changed = absl::StrReplaceAll(text, changes);
    ASSERT_NE(changed, text);
    ASSERT_TRUE(WriteFileAtomically(path, changed).ok());
    EXPECT_EQ(ExitOf(Verify(run)), Exit::kMismatch) << Verify(run);
    EXPECT_FALSE(ReadSentenceVectors(run).ok());
    std::filesystem::remove(path);
    EXPECT_EQ(ExitOf(Verify(run)), Exit::kMismatch) << Verify(run);
    EXPECT_THAT(Verify(run).message(), HasSubstr(name));
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  }
  ASSERT_TRUE(Verify(run).ok()) << Verify(run);
}

TEST_F(SentenceFolder, ChangedFilesAreReadWithoutManifest) {
  const std::string run = Run("run", ""), path = run + "/sentence_bert_config.json";
  ASSERT_TRUE(WriteFileAtomically(path, R"({"max_seq_length": 12, "do_lower_case": false})").ok());
  EXPECT_THAT(ReadSentenceVectors(run).status().message(), HasSubstr("or delete"));
  std::filesystem::remove(run + "/" + kManifestName);
  const auto vectors = ReadSentenceVectors(run);
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_EQ((*vectors)->max_tokens, 12);
}

TEST_F(SentenceFolder, TheBestRunReplacesTheFilesOfAnEarlierOne) {
  for (const std::string pool : {"mean", "max"}) {
    const std::string run = Run(pool, pool == "max" ? "pooling: MAX normalize: false" : "");
    ASSERT_TRUE(PublishRun(run, Path("best")).ok());
    const auto vectors = ReadSentenceVectors(Path("best"));
    ASSERT_TRUE(vectors.ok()) << vectors.status();
    EXPECT_EQ((*vectors)->pool, pool);
    EXPECT_EQ((*vectors)->normalize, pool == "mean");
  }
}

}  // namespace
}  // namespace cloze
