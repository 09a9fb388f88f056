// Small model folders with a tokenizer.
#ifndef CLOZE_TESTS_TOOLS_LIBRARY_MODELS_H_
#define CLOZE_TESTS_TOOLS_LIBRARY_MODELS_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "encoder/folder/sentence_vectors.h"
#include "encoder/model.h"
#include "tests/tasks/data/test_files.h"
#include "tests/test_folder.h"

namespace cloze {

// Writes a model of random weights into `folder`, which it creates.
inline void WriteModel(const std::string& folder, HeadKind head, uint64_t seed = 1) {
  std::filesystem::create_directories(folder);
  const std::unique_ptr<Tokenizer> tokenizer = SmallTokenizer();
  ModelConfig config(*FindFamily("bert"));
  config.hidden = 32, config.heads = 2, config.layers = 2, config.intermediate = 64;
  config.vocab = tokenizer->vocab_size(), config.positions.count = 24;
  config.initializer.range = 0.3;  // answers that differ
  config.head = head;
  if (head == HeadKind::kSequenceClassification) config.labels = {"bad", "good", "so so"};
  if (head == HeadKind::kTokenTagging) config.labels = {"B-A", "I-A", "O"};
  Model model(config, false);
  model.Initialize(seed);
  ASSERT_TRUE(SaveWeights(folder, config, model.params()).ok());
  ASSERT_TRUE(SaveTokenizer(*tokenizer, folder, config.positions.count).ok());
}

// One folder of each kind: classifier, tagger, masked, sentence and plain.
class ModelsTest : public testing::Test {
 protected:
  ModelsTest() {
    WriteModel(Path("classifier"), HeadKind::kSequenceClassification);
    WriteModel(Path("tagger"), HeadKind::kTokenTagging);
    WriteModel(Path("masked"), HeadKind::kMaskedLm);
    WriteModel(Path("plain"), HeadKind::kNone);
    WriteModel(Path("sentence"), HeadKind::kNone);
    SentenceVectors vectors;
    vectors.pool = "cls", vectors.normalize = true, vectors.max_tokens = 12;
    vectors.query_prompt = "cat: ";
    EXPECT_TRUE(WriteSentenceVectors(vectors, 32, Path("sentence")).ok());
  }
  std::string Path(const std::string& name) const { return JoinPath(folder_.path(), name); }

  // Texts of many lengths; some are empty or longer than the models.
  static std::vector<std::string> Texts() {
    std::vector<std::string> texts = {"the cat sat on the mat.", "", "  ", "mats, cats", "a"};
    for (int n = 1; n < 40; ++n) {
      std::string& text = texts.emplace_back();
      for (int i = 0; i < n; ++i)
        text += (i * n) % 3 == 0 ? "cat " : (i + n) % 5 < 2 ? "on, " : "s";
    }
    return texts;
  }

  const TestFolder folder_;
};

// Threads of this process.
inline int64_t ThreadCount() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

}  // namespace cloze

#endif  // CLOZE_TESTS_TOOLS_LIBRARY_MODELS_H_
