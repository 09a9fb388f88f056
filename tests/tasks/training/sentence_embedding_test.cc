// Whole training runs of sentence_embedding: the same bits after kills and with any number of
// threads, the folder of sentence-transformers, and what it refuses.
#include "absl/strings/match.h"
#include "encoder/folder/sentence_vectors.h"
#include "tests/tasks/training/train_on_ranks.h"
#include "tests/tasks/training/trainer_fixture.h"

namespace cloze {
namespace {

class SentenceEmbeddingRun : public TrainerTest {
 protected:
  SentenceEmbeddingRun() {
    std::string pairs = "title\ttext\n", scored = "a,b,score\n", groups, labelled = "text\tlabel\n",
                texts;
    const std::vector<std::string> words = {"cat", "dog", "mat", "box", "red", "big", "sat", "ran"};
    for (int i = 0; i < 48; ++i) {
      const std::string &one = words[i % 8], &two = words[i / 8], title = one + " the " + two;
      absl::StrAppend(&pairs, title, "\tthe ", two, " sat on a ", one, "\n");
      absl::StrAppend(&scored, title, ",a ", two, " ", one, ",", i % 6, "\n");
      absl::StrAppend(&groups, R"({"query": ")", title, R"(", "pos": ["a )", two, " ", one,
          R"(", "the )", two, " ", one, R"("], "neg": ["on )", one, R"( ."]})", "\n");
      absl::StrAppend(&labelled, title, "\t", one, "\n");
      absl::StrAppend(&texts, title, " .\n");
    }
    Write("pairs.tsv", pairs);
    Write("scored.csv", scored);
    Write("groups.jsonl", groups);
    Write("labelled.tsv", labelled);
    Write("texts.txt", texts);
  }
  // A run of ten steps with four passes each.
  LoadedSpec Embedding(const std::string& data, const std::string& fields, const std::string& task,
      const std::string& run, const std::string& validation = "scored.csv") {
    auto loaded = ParseSpec(
        absl::StrCat(NewEncoder(), " sentence_embedding { max_tokens: 16 ", task,
            " } train { files: \"", Path(data), "\" ", fields,
            " } batch { examples: 12 micro_tokens: 64 } optimizer { learning_rate: 0.003 } "
            "schedule { steps: 10 } output { directory: \"",
            Path(run), "\" checkpoint_every_steps: 4 }",
            validation.empty() ? ""
                               : absl::StrCat("validation { files: \"", Path(validation),
                                     "\" text_field: \"a\" text_pair_field: \"b\" label_field: "
                                     "\"score\" } evaluation { every_steps: 5 }")),
        "test");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *loaded;
  }
  static constexpr char kPairFields[] = "text_field: \"title\" text_pair_field: \"text\"";
};

// A text of the collection is itself the only relevant document, so that any model finds it first.
TEST_F(SentenceEmbeddingRun, EvaluatesARetrievalCollection) {
  std::filesystem::create_directories(Path("beir"));
  Write("beir/corpus.jsonl", R"({"_id": "1", "title": "the cat", "text": "sat on a mat ."})"
                             "\n"
                             R"({"_id": "2", "text": "the big dog ran"})"
                             "\n");
  Write("beir/queries.jsonl", R"({"_id": "q", "text": "the big dog ran"})"
                              "\n");
  Write("beir/qrels.tsv", "q\t2\t3\nq\tgone\t1\n");
  LoadedSpec spec = Embedding("texts.txt", "", "loss: SIMCSE", "run", "");
  spec.spec.mutable_validation()->add_files(Path("beir"));
  spec.spec.mutable_evaluation()->set_every_steps(5);
  spec.spec.mutable_evaluation()->set_metric("recall_at_100");
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->metric.name, "recall_at_100");
  EXPECT_EQ(*summary->best.Value("recall_at_100"), 0.5);

  spec.spec.mutable_evaluation()->set_max_examples(5);
  EXPECT_THAT(Train(spec).status().message(), HasSubstr("is evaluated as a whole"));
  spec.spec.mutable_train()->set_files(0, Path("beir"));
  EXPECT_THAT(Train(spec).status().message(), HasSubstr("is a retrieval collection"));
}

TEST_F(SentenceEmbeddingRun, APrintedSpecAlsoReadsATextPerLine) {
  const LoadedSpec spec = Embedding("texts.txt", "", "loss: SIMCSE", "run");
  const auto again = ParseSpec(PrintEffective(spec.spec), "again");
  ASSERT_TRUE(again.ok()) << again.status();
  const auto summary = Train(*again);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_GT(summary->loss, 0) << "the file is one document";
}

TEST_F(SentenceEmbeddingRun, SameBitsAfterResumes) {
  ExpectSameBitsAfterResumes(
      [&](const std::string& run) { return Embedding("pairs.tsv", kPairFields, "", run); });
}

// Each rank computes some passes of a step, and all the loss of all of them.
TEST_F(SentenceEmbeddingRun, RanksLeaveTheWeightsOfOneRank) {
  ASSERT_TRUE(Train(Embedding("pairs.tsv", kPairFields, "", "one")).ok());
  const LoadedSpec spec = Embedding("pairs.tsv", kPairFields, "", "three");
  TrainOnRanks(spec);
  EXPECT_TRUE(Weights("one") == Weights("three"));
}

TEST_F(SentenceEmbeddingRun, EveryLossAndEveryKindOfData) {
  const std::string groups = R"(text_field: "query" text_pair_field: "pos" negative_field: "neg")";
  const std::string scored = R"(text_field: "a" text_pair_field: "b" label_field: "score")";
  const struct {
    std::string data, fields, task;
  } runs[] = {{"groups.jsonl", groups, "symmetric: true query_prompt: \"the\""},
      {"groups.jsonl", groups, "loss: TRIPLET pooling: MAX normalize: false"},
      {"scored.csv", scored, "loss: COSENT dimensions: 32 dimensions: 8"},
      {"labelled.tsv", "", "pooling: CLASS"}, {"texts.txt", "", "loss: SIMCSE"}};
  for (const auto& [data, fields, task] : runs) {
    SCOPED_TRACE(task);
    const std::string run = absl::StrCat("run", &task - &runs[0].task);
    const auto summary = Train(Embedding(data, fields, task, run));
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->metric.name, "spearman_cosine");
    EXPECT_TRUE(std::isfinite(summary->loss));
    EXPECT_GT(summary->loss, 0) << "a batch of one text has no negatives";
    const auto vectors = ReadSentenceVectors(Path(run));
    ASSERT_TRUE(vectors.ok() && vectors->has_value()) << vectors.status();
    EXPECT_EQ((*vectors)->normalize, !absl::StrContains(task, "normalize: false"));
    EXPECT_EQ((*vectors)->max_tokens, 16);
    const auto checkpoint = ReadSentenceVectors(Path(run + "/step-00000010"));
    ASSERT_TRUE(checkpoint.ok() && checkpoint->has_value()) << checkpoint.status();
    EXPECT_EQ((*checkpoint)->pool, (*vectors)->pool);
  }
}

// Batches of several passes learn what one pass learns, up to rounding.
TEST_F(SentenceEmbeddingRun, SizeOfPassesChangesLastBitsOnly) {
  LoadedSpec several = Embedding("pairs.tsv", kPairFields, "", "several", ""),
             one = Embedding("pairs.tsv", kPairFields, "", "one", "");
  one.spec.mutable_batch()->set_micro_tokens(4096);
  for (LoadedSpec* spec : {&several, &one}) {
    spec->spec.mutable_schedule()->set_steps(2);
    ASSERT_TRUE(Train(*spec).ok());
  }
  const std::vector<float> a = Values("several"), b = Values("one");
  ASSERT_EQ(a.size(), b.size());
  int64_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-4);
    same += a[i] == b[i];
  }
  EXPECT_LT(same, a.size());
}

TEST_F(SentenceEmbeddingRun, PairsWithoutScores) {
  LoadedSpec spec = Embedding("pairs.tsv", kPairFields, "", "run", "");
  DataSpec& validation = *spec.spec.mutable_validation();
  validation = spec.spec.train();
  const auto summary = Train(spec);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->metric.name, "accuracy");
  EXPECT_GT(summary->best.values[0].second, 0);
}

TEST_F(SentenceEmbeddingRun, WrongData) {
  const auto error = [&](const std::string& file, const std::string& text,
                         const std::string& fields, const std::string& task) {
    Write(file, text);
    const auto summary = Train(Embedding(file, fields, task, "wrong", ""));
    return std::string(summary.status().message());
  };
  EXPECT_THAT(error("a.tsv", "title\ttext\nthe cat\t\n", kPairFields, ""),
      HasSubstr("a.tsv:2: text_pair_field: is empty: expected a text"));
  EXPECT_THAT(error("b.jsonl", R"({"title": "the cat", "text": []})", kPairFields, ""),
      HasSubstr("b.jsonl:1: text_pair_field: is empty"));
  EXPECT_THAT(error("c.tsv", "title\ttext\tlabel\nthe\tcat\tnan\n", kPairFields, "loss: COSENT"),
      HasSubstr("c.tsv:2: label_field: \"nan\" is not a finite number"));
  EXPECT_THAT(error("d.tsv", "text\tlabel\nthe\ta\ncat\tb\n", "", ""),
      HasSubstr("no two texts have the same label"));
  EXPECT_THAT(error("e.tsv", "title\ttext\tlabel\nthe\tcat\t5\n", kPairFields, "loss: COSINE"),
      HasSubstr("e.tsv:2: label_field: 5 is not from -1 to 1"));
  EXPECT_THAT(error("f.tsv", "title\ttext\nthe\tcat\n", kPairFields, "dimensions: 64"),
      HasSubstr("sentence_embedding.dimensions: 64, but vectors of the model have 32 columns"));
}

}  // namespace
}  // namespace cloze
