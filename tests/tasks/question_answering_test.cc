// Question answering: PyTorch's numbers, the loss by dual numbers, windows, answers and metrics.
#include <cmath>

#include "core/base/file.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/model_folder.h"
#include "tasks/answer_spans.h"
#include "tasks/packer.h"
#include "tasks/squad.h"
#include "tests/reference/dual.h"
#include "tests/reference/reference.h"
#include "tests/tasks/data/test_files.h"
#include "tests/tasks/stores.h"

namespace cloze {
namespace {

using testing::ElementsAre;

std::unique_ptr<Task> QuestionTask(int32_t max_tokens = 64, int32_t overlap = 0,
    bool unanswerable = false, const Tokenizer* tokenizer = nullptr) {
  TaskSpec spec;
  spec.mutable_question_answering()->set_max_tokens(max_tokens);
  spec.mutable_question_answering()->set_overlap(overlap);
  spec.mutable_question_answering()->set_unanswerable(unanswerable);
  auto task = MakeTask(spec);
  EXPECT_TRUE(task->Bind(ModelConfig(), tokenizer, 1).ok());
  return task;
}

class Golden {
 public:
  Golden() : file_(*SafetensorsReader::Open(folder_ + "/reference.safetensors")) {
    auto model = LoadConfig(folder_);
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = std::make_unique<Model>(*model, true);
    std::vector<std::string> fresh;
    EXPECT_TRUE(model_->Load(folder_, 1, &fresh).ok());
    EXPECT_TRUE(fresh.empty());
    const auto ids = Ints("input_ids"), mask = Ints("attention_mask"),
               types = Ints("token_type_ids"), start = Ints("start_positions"),
               end = Ints("end_positions");
    longest_ = file_.Find("input_ids")->shape[1];
    for (size_t s = 0; s < start.size(); ++s) {
      Example e;
      for (int64_t i = s * longest_; mask[i] == 1 && i < int64_t(s + 1) * longest_; ++i) {
        e.ids.push_back(static_cast<int32_t>(ids[i]));
        e.second += types[i] == 0;
        places_.push_back(i);
      }
      e.rows = {static_cast<int32_t>(start[s]), static_cast<int32_t>(end[s])};
      e.labels = {0, 1};
      task_->PrepareExample(s, 0, &e);
      AddExample(e, s, &batch_);
    }
    batch_.Pad();
  }
  std::vector<int32_t> Ints(const std::string& name) {
    std::vector<int32_t> out(file_.Find(name)->elements());
    EXPECT_TRUE(file_.ReadI32(name, absl::MakeSpan(out)).ok());
    return out;
  }
  std::vector<float> Floats(const std::string& name) {
    std::vector<float> out(file_.Find(name)->elements());
    EXPECT_TRUE(file_.ReadF32(name, absl::MakeSpan(out)).ok()) << name;
    return out;
  }

  const std::string folder_ = std::string(CLOZE_SOURCE_DIR) + "/tests/golden/question_answering";
  SafetensorsReader file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Task> task_ = QuestionTask();
  Batch batch_;
  std::vector<int64_t> places_;  // of each row in the padded reference
  int64_t longest_ = 0;
};

TEST(QuestionAnsweringGolden, HiddenStatesAndLogits) {
  Golden g;
  const Pass pass = g.model_->NewPass(g.batch_, DType::kF32);
  const int64_t hidden = g.model_->config().hidden;
  int seen = 0;
  g.model_->backbone().encoder()->Observe(pass, [&](int layer, ConstMat y) {
    const auto expected = g.Floats("hidden_states." + std::to_string(layer));
    ++seen;
    for (size_t r = 0; r < g.places_.size(); ++r) {
      for (int64_t c = 0; c < hidden; ++c)
        ASSERT_NEAR(y.f32(r)[c], expected[g.places_[r] * hidden + c], 1e-5) << layer << " " << r;
    }
  });
  EXPECT_EQ(seen, 3);
  const Mat logits = g.model_->head().Logits(pass, g.model_->backbone().Infer(pass));
  const auto start = g.Floats("start_logits"), end = g.Floats("end_logits");
  for (size_t r = 0; r < g.places_.size(); ++r) {
    EXPECT_NEAR(logits.f32(r)[0], start[g.places_[r]], 1e-5);
    EXPECT_NEAR(logits.f32(r)[1], end[g.places_[r]], 1e-5);
  }
}

// The reference's own loss and gradients also count the padding of its rectangular batch, which a
// packed batch does not have. So the loss and the gradients of the output layer are computed here,
// in double, from the reference's logits and hidden states at real positions.
TEST(QuestionAnsweringGolden, LossAndGradientsOfTheOutputLayer) {
  Golden g;
  const Pass pass = g.model_->NewPass(g.batch_, DType::kF32, true, 1);
  const Backbone::Saved saved = g.model_->backbone().Forward(pass);
  Mat dy = pass.New(saved.y.rows, saved.y.cols);
  EXPECT_EQ(g.task_->LossWeight(g.batch_), 3);
  const LossSum loss =
      g.model_->head().Loss(pass, saved.y, 1 / 3.0f, dy, g.task_->LossOf(g.model_->head(), pass));
  const int64_t hidden = g.model_->config().hidden;
  const auto states = g.Floats("hidden_states.2");
  const std::vector<float> logits[] = {g.Floats("start_logits"), g.Floats("end_logits")};
  const std::vector<int32_t> targets[] = {g.Ints("start_positions"), g.Ints("end_positions")};
  std::vector<double> weight(2 * hidden), bias(2);
  double expected = 0;
  for (int64_t s = 0; s < g.batch_.sequences(); ++s) {
    for (int kind = 0; kind < 2; ++kind) {
      double sum = 0;
      for (int64_t r = g.batch_.cu_seqlens[s]; r < g.batch_.cu_seqlens[s + 1]; ++r)
        sum += std::exp(double{logits[kind][g.places_[r]]});
      expected += (std::log(sum) - logits[kind][s * g.longest_ + targets[kind][s]]) / 6;
      for (int64_t r = g.batch_.cu_seqlens[s]; r < g.batch_.cu_seqlens[s + 1]; ++r) {
        const bool target = g.places_[r] == s * g.longest_ + targets[kind][s];
        const double d = (std::exp(double{logits[kind][g.places_[r]]}) / sum - target) / 6;
        bias[kind] += d;
        for (int64_t c = 0; c < hidden; ++c)
          weight[kind * hidden + c] += d * states[g.places_[r] * hidden + c];
      }
    }
  }
  EXPECT_NEAR(loss.loss / 3, expected, 1e-5);
  ParamStore& params = g.model_->params();
  const float* found = params.grad(params.Find("qa_outputs.weight")).f32();
  for (int64_t i = 0; i < 2 * hidden; ++i) EXPECT_NEAR(found[i], weight[i], 1e-5) << i;
  for (int kind = 0; kind < 2; ++kind)
    EXPECT_NEAR(params.grad(params.Find("qa_outputs.bias")).f32()[kind], bias[kind], 1e-5);
}

// The mean of the cross entropies of start and end over the rows of each sequence.
template <typename S>
S ReferenceLoss(const std::vector<S>& logits, const std::vector<int32_t>& lengths,
    const std::vector<std::vector<int32_t>>& targets) {
  S loss = 0;
  int64_t first = 0;
  for (size_t s = 0; s < lengths.size(); ++s) {
    reference::Table<S> table(2, lengths[s]);
    for (int32_t i = 0; i < lengths[s]; ++i) {
      for (int kind = 0; kind < 2; ++kind) table(kind, i) = logits[2 * (first + i) + kind];
    }
    loss += reference::CrossEntropy(table, targets[s]) / S(2);
    first += lengths[s];
  }
  return loss;
}

TEST(QuestionAnsweringLoss, HasTheDerivativesOfDualNumbers) {
  const std::vector<int32_t> lengths = {5, 1, 9};
  const std::vector<std::vector<int32_t>> targets = {{2, 4}, {0, 0}, {7, 7}};
  const auto task = QuestionTask();
  Batch batch;
  for (size_t s = 0; s < lengths.size(); ++s) {
    Example e;
    e.ids.resize(lengths[s]);
    e.rows = targets[s];
    e.labels = {0, 1};
    task->PrepareExample(s, 0, &e);
    AddExample(e, s, &batch);
  }
  batch.Pad();
  std::vector<float> logits(2 * batch.tokens());
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(7.0f * i) * 3;
  std::vector<float> gradient = logits;
  ModelConfig config = Golden().model_->config();
  Model model(config, false);
  const Pass pass = model.NewPass(batch, DType::kF32);
  const Mat rows = {gradient.data(), batch.tokens(), 2, 2, DType::kF32};
  const LossSum loss = task->Loss(model.head(), pass, rows, 0, 0.25f, pass.arena);
  std::vector<reference::Dual> duals(logits.begin(), logits.end());
  EXPECT_NEAR(loss.loss, ReferenceLoss(duals, lengths, targets).v, 1e-5);
  for (size_t i = 0; i < duals.size(); ++i) {
    duals[i].d = 1;
    EXPECT_NEAR(gradient[i], 0.25 * ReferenceLoss(duals, lengths, targets).d, 1e-6) << i;
    duals[i].d = 0;
  }
}

class QuestionsTest : public FilesTest {
 protected:
  static std::string Squad(const std::string& context, const std::string& qas) {
    return absl::StrCat(R"({"version": "2", "data": [{"title": "t", "paragraphs": [{"context": ")",
        context, R"(", "qas": [)", qas, "]}]}]}");
  }
  std::vector<std::string> Windows(Task& task, const std::string& file) {
    const auto built = task.Build(Data("q.json", file), DataUse::kEvaluation, *tokenizer_,
        {.cache_dir = Path("cache"), .progress = nullptr});
    EXPECT_TRUE(built.ok()) << built.status();
    std::vector<std::string> windows;
    Example e;
    for (int64_t i = 0; built.ok() && i < built->store.size(); ++i) {
      EXPECT_TRUE(built->store.Read(i, &e).ok());
      std::string text;
      for (const int32_t id : e.ids) absl::StrAppend(&text, tokenizer_->token(id), " ");
      windows.push_back(absl::StrCat(text, "| ", e.second, " | ", e.rows[0], "-", e.rows[1],
          e.continues ? " | continues" : ""));
    }
    return windows;
  }
  // The answer when row r of the only window has these logits of start and end.
  std::string Answer(const Task& task, const Record& record, const std::vector<float>& logits) {
    CutCounts cut;
    const auto windows = task.Encode(record, {tokenizer_.get(), 64}, &cut);
    EXPECT_TRUE(windows.ok()) << windows.status();
    EXPECT_EQ(windows->size(), 1);
    EXPECT_EQ(windows->front().rows.size() * 2, logits.size());
    const Golden golden;
    return ToJsonLine(task.NewDecoder(*golden.model_, {})(
        record, {*windows, View(logits.data(), logits.size() / 2, 2)}));
  }
  const std::unique_ptr<Tokenizer> tokenizer_ = SmallTokenizer();
};

TEST_F(QuestionsTest, WindowsOverlapAndHoldTheirAnswers) {
  const auto task = QuestionTask(16, 4);
  const std::string file = Squad("a b c d e f g h i j k l m",
      R"({"question": "the cat", "answers": [{"text": "j k", "answer_start": 18}]},
         {"question": "on", "answers": [], "is_impossible": true})");
  EXPECT_THAT(Windows(*task, file),
      ElementsAre("<class> the cat <sep> a b c d e f g h i j k <sep> | 4 | 13-14",
          "<class> the cat <sep> h i j k l m <sep> | 4 | 6-7 | continues",
          "<class> on <sep> a b c d e f g h i j k l <sep> | 3 | 0-0",
          "<class> on <sep> i j k l m <sep> | 3 | 0-0 | continues"));
}

TEST_F(QuestionsTest, MaxExamplesCountsWhatIsRead) {
  std::string file = R"({"version": "2", "data": [{"title": "t", "paragraphs": [)";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&file, i > 0 ? ", " : "", R"({"context": "a )", i,
        R"(", "qas": [{"question": "b", "answers": [{"text": "a", "answer_start": 0}]}]})");
  }
  DataSpec data = Data("split.json", file + "]}]}");
  data.set_share(0.5);
  data.set_max_examples(10);
  const auto questions = ReadQuestions(data);
  ASSERT_TRUE(questions.ok()) << questions.status();
  EXPECT_EQ(questions->size(), 10);
}

TEST_F(QuestionsTest, AnswersThatAreNotAtTheirStartAreCounted) {
  const auto questions =
      ReadQuestions(Data("q.json", R"({"data": [{"paragraphs": [{"context": "a ü cat",
      "qas": [{"question": "b", "answers": [{"text": "cat", "answer_start": 4}]},
              {"question": "c", "answers": [{"text": "cat", "answer_start": 3},
                                            {"text": "a", "answer_start": 0}]}]}]}]})"));
  ASSERT_TRUE(questions.ok()) << questions.status();
  EXPECT_EQ(CountMisplaced(*questions), 1);
}

TEST_F(QuestionsTest, TheCheckSkipsStreams) {
  DataSpec data;
  data.add_files("-");
  EXPECT_TRUE(QuestionTask()->CheckData(data).ok());
  data.add_files(Path("gone.json"));
  EXPECT_EQ(ExitOf(QuestionTask()->CheckData(data)), Exit::kNoInput);
}

TEST_F(QuestionsTest, BrokenFilesAreRefused) {
  const auto task = QuestionTask();
  const auto error = [&](const std::string& file) {
    return task
        ->Build(Data("q.json", file), DataUse::kTraining, *tokenizer_,
            {.cache_dir = Path("cache"), .progress = nullptr})
        .status();
  };
  ExpectError(error("{\"data\": 1}"), Exit::kData, "data: expected a list");
  ExpectError(error(Squad("a b", R"({"question": 3})")), Exit::kData,
      "data[0].paragraphs[0].qas[0].question: expected a string");
  ExpectError(
      error(Squad("a b", R"({"question": "a", "answers": [{"text": "b c", "answer_start": 2}]})")),
      Exit::kData, "qas[0].answers[0].answer_start: expected a place inside the context");
  ExpectError(error("{\"data\": []}"), Exit::kData, "0 usable examples");
  ExpectError(error("{\"data\": [}"), Exit::kData, "q.json");
}

TEST_F(QuestionsTest, AnswersAreSpansOfTheContextWithOffsets) {
  Record record;
  record.kind = Record::Kind::kPair;
  record.text = "the cat";
  record.text_pair = "\u00e9 b cat";  // <class> the cat <sep> e b cat <sep>
  std::vector<float> logits(16);
  const auto task = QuestionTask(64, 0, false, tokenizer_.get());
  logits[2 * 5] = 40, logits[2 * 6 + 1] = 40;
  EXPECT_EQ(Answer(*task, record, logits),
      R"({"answer": "b cat", "score": 1, "start": 2, "end": 7, "byte_start": 3, "byte_end": 8})");
  // Tokens of the question are no answer, and an end is not before its start.
  logits[2 * 1] = 90, logits[2 * 4 + 1] = 60;
  EXPECT_THAT(Answer(*task, record, logits), testing::HasSubstr("\"answer\": \"b cat\""));
  const auto none = QuestionTask(64, 0, true, tokenizer_.get());
  EXPECT_THAT(Answer(*none, record, logits), testing::HasSubstr("\"answer\": \"b cat\""));
  logits[0] = 50, logits[1] = 50;
  EXPECT_THAT(Answer(*none, record, logits), testing::HasSubstr("{\"answer\": null, \"score\": "));
  record.kind = Record::Kind::kText;
  CutCounts cut;
  ExpectError(task->Encode(record, {tokenizer_.get(), 64}, &cut).status(), Exit::kData,
      "expected a question and its context");
}

TEST(SquadF1, CountsARepeatedWordOnce) {
  EXPECT_NEAR(SquadF1({"cat", "cat"}, {"cat"}), 2 / 3.0, 1e-9);
  EXPECT_NEAR(SquadF1({"cat"}, {"cat", "cat"}), 2 / 3.0, 1e-9);
  EXPECT_EQ(SquadF1({}, {}), 1);
  EXPECT_EQ(SquadF1({"cat"}, {}), 0);
}

// Expected words: normalize_answer of the SQuAD script, run by Python.
TEST(SquadWords, AreThoseOfPython) {
  using Words = std::vector<std::string>;
  const std::vector<std::pair<std::string, Words>> cases = {{"The CAT, a dog.", {"cat", "dog"}},
      {"ΟΔΟΣ", {"οδος"}},  // a final sigma
      {"ΟΔΟΣ. ΣΑΣ'Α Σ", {"οδος", "σασα", "σ"}},
      {"ΑΣ\u0301 Α\u00adΣ", {"ας\u0301", "α\u00adς"}},  // marks and soft hyphens are skipped
      {"İstanbul", {"i\u0307stanbul"}},
      {"AİA", {"ai\u0307"}},  // the last a stands alone after the dot
      {"a\u0301 the\u0301 ane", {"\u0301", "\u0301", "ane"}},
      {"the\u2014an\u2014b", {"\u2014", "\u2014b"}},
      {"x\x1cy\x1fz\u0085w\u2028v\u180eu", {"x", "y", "z", "w", "v\u180eu"}},
      {"_a_ $5 a1 the2 \u00bd", {"5", "a1", "the2", "\u00bd"}}};
  for (const auto& [text, words] : cases) EXPECT_EQ(SquadWords(text), words) << text;
}

// The answer of two windows, tokens 1 to 6 and 4 to 9 of a context.
struct TwoWindows {
  explicit TwoWindows(const Tokenizer& tokenizer) {
    spec.set_max_tokens(10);
    spec.set_overlap(4);
    spec.set_longest_answer(3);
    encoded = EncodeQuestion(tokenizer, spec, "on", "a b c d e f g h i");
    for (const Example& window : encoded.windows) rows += window.ids.size();
    logits.resize(2 * rows);
  }
  FoundAnswer Find() const {
    return FindAnswer(encoded, spec, {encoded.windows, View(logits.data(), rows, 2)});
  }
  QuestionAnsweringSpec spec;
  EncodedQuestion encoded;
  int64_t rows = 0;
  std::vector<float> logits;
};

TEST_F(QuestionsTest, AnswersHaveAtMostTheLongestLength) {
  TwoWindows two(*tokenizer_);
  float* context = &two.logits[2 * two.encoded.prefix];
  context[0] = 9, context[2 * 3 + 1] = 9, context[2 * 2 + 1] = 4;  // a, d and c
  EXPECT_EQ(two.Find().bytes.end, 5) << "four tokens are too many";
  two.spec.set_longest_answer(4);
  EXPECT_EQ(two.Find().bytes.end, 7);
}

TEST_F(QuestionsTest, TheWindowLeastForNoAnswerDecides) {
  TwoWindows two(*tokenizer_);
  ASSERT_EQ(two.encoded.windows.size(), 2);
  two.spec.set_unanswerable(true);
  float* context = &two.logits[2 * two.encoded.prefix];
  context[0] = 3, context[1] = 3;
  const size_t second = 2 * two.encoded.windows[0].ids.size();
  two.logits[0] = 2, two.logits[1] = 2;                // less than the answer
  two.logits[second] = 8, two.logits[second + 1] = 8;  // the answer is not in this window
  EXPECT_FALSE(two.Find().none);
  two.logits[0] = 4;
  two.logits[1] = 4;
  EXPECT_TRUE(two.Find().none);
}

TEST_F(QuestionsTest, MetricsAreThoseOfSquad) {
  const auto task = QuestionTask(64, 0, true, tokenizer_.get());
  const std::string file = Squad("the cat, sat on a mat",
      R"({"question": "a", "answers": [{"text": "mat", "answer_start": 18},
                                       {"text": "The cat", "answer_start": 0}]},
         {"question": "b", "answers": [{"text": "cat, sat on", "answer_start": 4}]},
         {"question": "c", "answers": []})");
  const auto built = task->Build(Data("q.json", file), DataUse::kEvaluation, *tokenizer_,
      {.cache_dir = Path("cache"), .progress = nullptr});
  ASSERT_TRUE(built.ok()) << built.status();
  const Golden golden;
  const auto evaluation = task->NewEvaluation(*golden.model_, built->store.stats(), {});
  // Every question is answered by "cat" (row 4).
  for (int64_t i = 0; i < built->store.size(); ++i) {
    Example e;
    ASSERT_TRUE(built->store.Read(i, &e).ok());
    task->PrepareExample(i, 0, &e);
    std::vector<float> logits(2 * e.rows.size());
    logits[8] = logits[9] = 20;
    evaluation->Add({.logits = logits}, {&e, 1});
  }
  const MetricResults results = evaluation->Results();
  // "cat" is exactly "The cat"; of "cat sat on" it is one word of three: F1 is 2 / 4.
  EXPECT_NEAR(*results.Value("exact_match"), 1 / 3.0, 1e-9);
  EXPECT_NEAR(*results.Value("f1"), 1.5 / 3, 1e-9);
  EXPECT_EQ(results.values.front().first, "f1");
}

TEST_F(QuestionsTest, SharedQuestions) {
  DataSpec data;
  data.add_files(Shared("questions/xquad_en_dev.json"));
  if (!PathExists(data.files(0))) GTEST_SKIP() << "needs " << data.files(0);
  const auto task = QuestionTask(64, 16);
  const auto built = task->Build(
      data, DataUse::kEvaluation, *tokenizer_, {.cache_dir = Path("cache"), .progress = nullptr});
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_GT(built->store.stats().documents, 100);
  int64_t answered = 0;
  Example e;
  for (int64_t i = 0; i < built->store.size(); ++i) {
    ASSERT_TRUE(built->store.Read(i, &e).ok());
    ASSERT_LE(e.rows[0], e.rows[1]);
    answered += e.rows[0] > 0;
  }
  EXPECT_GE(answered, built->store.stats().documents * 9 / 10);
}

}  // namespace
}  // namespace cloze
