// Extractive question answering: the span of a context that answers a question (SQuAD).
#include <algorithm>
#include <atomic>

#include "core/ops/profile.h"
#include "tasks/answer_spans.h"
#include "tasks/squad.h"
#include "tasks/store_builder.h"
#include "tasks/task.h"

namespace cloze {
namespace {

// The metrics of SQuAD's evaluation script.
class AnswerMetrics : public TextEvaluation {
 public:
  AnswerMetrics(const Task& task, const Model& model, const QuestionAnsweringSpec& spec,
      const Tokenizer& tokenizer, const std::vector<Question>& questions)
      : TextEvaluation(model), task_(task), spec_(spec), tokenizer_(tokenizer),
        questions_(questions) {}

 private:
  LossSum Loss(const Pass& pass, Mat logits, int64_t* items) const override {
    *items = pass.batch.sequences();
    return task_.Loss(model_.head(), pass, logits, 0, 0, pass.arena);
  }
  void AddText(const TextLogits& text) override {
    const Question& question = questions_[count_++];
    const EncodedQuestion encoded =
        EncodeQuestion(tokenizer_, spec_, question.question, question.context);
    const FoundAnswer found = FindAnswer(encoded, spec_, text);
    const auto predicted =
        SquadWords(found.none ? std::string() : Slice(question.context, found.bytes));
    std::vector<std::vector<std::string>> golds;
    for (const Question::Answer& answer : question.answers) {
      if (auto gold = SquadWords(answer.text); !gold.empty()) golds.push_back(std::move(gold));
    }
    double exact = golds.empty() && predicted.empty(), f1 = exact;
    for (const auto& gold : golds) {
      exact = std::max<double>(exact, predicted == gold);
      f1 = std::max(f1, SquadF1(predicted, gold));
    }
    exact_ += exact;
    f1_ += f1;
  }
  MetricResults Count() override {
    const auto count = static_cast<double>(count_);
    return {{{"f1", f1_ / count}, {"exact_match", exact_ / count}, {"loss", MeanLoss()}}};
  }

  const Task& task_;
  const QuestionAnsweringSpec& spec_;
  const Tokenizer& tokenizer_;
  const std::vector<Question>& questions_;
  double exact_ = 0, f1_ = 0;
  int64_t count_ = 0;
};

class QuestionAnswering : public Task {
 public:
  explicit QuestionAnswering(const QuestionAnsweringSpec& spec)
      : Task("question_answering", HeadKind::kQuestionAnswering, "predict"), spec_(spec) {}

  int32_t max_tokens() const override { return spec_.max_tokens(); }
  std::vector<Metric> metrics() const override {
    return {{"f1", Better::kLarger}, {"exact_match", Better::kLarger}, {"loss", Better::kSmaller}};
  }
  bool reads_pairs() const override { return true; }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = head();
    config->task_fields = {{"max_tokens", spec_.max_tokens()}, {"overlap", spec_.overlap()},
        {"longest_question", spec_.longest_question()}, {"longest_answer", spec_.longest_answer()},
        {"unanswerable", spec_.unanswerable()}};
  }
  void Restore(const ModelConfig&, JsonFields& fields, int64_t longest) override {
    const auto read = [&](const char* name, int32_t least, int32_t fallback) {
      fields.Integer(name, false, least, kMaxLabelledTokens, &fallback);
      return fallback;
    };
    spec_.set_max_tokens(std::min<int64_t>(longest, read("max_tokens", 16, spec_.max_tokens())));
    spec_.set_overlap(read("overlap", 0, spec_.overlap()));
    spec_.set_longest_question(read("longest_question", 1, spec_.longest_question()));
    spec_.set_longest_answer(read("longest_answer", 1, spec_.longest_answer()));
    spec_.set_unanswerable(fields.Bool("unanswerable", spec_.unanswerable()));
  }

  // kMismatch unless pairs are encoded as <special> question ... context <special>.
  absl::Status Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed) override {
    RETURN_IF_ERROR(Task::Bind(config, tokenizer, seed));
    if (tokenizer == nullptr) return absl::OkStatus();
    const std::vector<TemplateItem>& pair = tokenizer->data().templates.pair;
    const size_t n = pair.size();
    if (n >= 4 && pair[0].text < 0 && pair[1].text == 0 && pair[n - 2].text == 1 &&
        pair[n - 1].text < 0)
      return absl::OkStatus();
    return Error(Exit::kMismatch, "the tokenizer's post_processor: expected a pair of texts with ",
        "one special token before it and one after it, for question_answering");
  }
  absl::Status CheckData(const DataSpec& data) const override {
    DataSpec first = AsJson(data);
    first.set_max_examples(1);
    return ForEachFile(first, [](const DataSpec& one) { return ReadQuestions(one).status(); });
  }
  absl::StatusOr<LabelledReader> OpenLabelled(const DataSpec& data) const override {
    ASSIGN_OR_RETURN(std::vector<Question> questions, ReadQuestions(data));
    return [questions = std::move(questions), i = size_t{0}](
               LabelledRecord* item) mutable -> absl::StatusOr<bool> {
      if (i == questions.size()) return false;
      Question& question = questions[i++];
      OrderedJson answers = OrderedJson::array();
      for (const Question::Answer& answer : question.answers) answers.push_back(answer.text);
      if (!question.id.empty()) item->answer["id"] = std::move(question.id);
      item->answer["true_answers"] = std::move(answers);
      item->record.kind = Record::Kind::kPair;
      item->record.text = std::move(question.question);
      item->record.text_pair = std::move(question.context);
      return true;
    };
  }
  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse use, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {}));
    std::vector<Question> questions;
    const auto read_all = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(questions, ReadQuestions(data));
      return absl::OkStatus();
    };
    if (use == DataUse::kEvaluation)
      RETURN_IF_ERROR(RequireFiles(data, "evaluations read the answers again"));
    const bool streams = HasStream(data);  // read only if there is no store of it
    if (!streams) RETURN_IF_ERROR(read_all());
    StoreKind kind =
        StoreKindOf("question_answering", tokenizer, {"start", "end"}, spec_.max_tokens(), true);
    kind.key.AddNumber(spec_.overlap());
    kind.key.AddNumber(spec_.longest_question());
    const DataSpec json = AsJson(data);  // for the key
    const auto fill = [&](ExampleStoreWriter* writer, DataStats* stats) {
      if (streams) RETURN_IF_ERROR(read_all());
      int64_t done = 0, total = 0;
      for (const Question& q : questions) total += q.context.size();
      std::atomic<int64_t> in_windows = 0;  // threads encode
      auto next = questions.begin();
      const auto read = [&](const Question** question, int64_t* bytes) -> absl::StatusOr<bool> {
        if (next == questions.end()) return false;
        *question = &*next++;
        *bytes += (*question)->context.size();
        done += (*question)->context.size();
        return true;
      };
      const auto encode = [&](const Question* question, EncodedText* out) {
        EncodedQuestion encoded =
            EncodeQuestion(tokenizer, spec_, question->question, question->context);
        SetTargets(question->answers, &encoded);
        encoded.stats.bytes = question->question.size() + question->context.size();
        in_windows += encoded.windows.size() > 1;
        *out = std::move(encoded);
      };
      const auto tick = [&] {
        if (options.progress) options.progress(done, total);
        return CheckStop(options);
      };
      RETURN_IF_ERROR(FillWithTexts<const Question*>(read, encode, tick, writer, stats));
      if (stats->cut_tokens == 0) stats->truncated = in_windows;
      return absl::OkStatus();
    };
    ASSIGN_OR_RETURN(
        BuiltStore built, OpenOrBuild(json, std::move(kind), tokenizer, options, fill));
    if (const int64_t misplaced = CountMisplaced(questions); misplaced > 0) {
      built.AddNote("warning: ", Counted(misplaced, "answer"),
          " not in the context at answer_start, which counts code points: the wrong words are "
          "learned");
    }
    if (use == DataUse::kEvaluation) held_out_ = questions;
    return built;
  }

  // The store has the rows of start and end; a batch has all rows of its sequences.
  void PrepareExample(uint64_t, double, Example* example) const override {
    const int32_t start = example->rows[0], end = example->rows[1];
    SetAllRows(example);
    example->labels.assign(example->rows.size(), 0);
    example->labels[start] |= 1 << kAnswerStart;
    example->labels[end] |= 1 << kAnswerEnd;
  }
  // The mean of the cross entropies of start and end over the rows of a sequence.
  LossSum Loss(const Head&, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const override;
  double LossWeight(const Batch& batch) const override {
    return static_cast<double>(batch.sequences());
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override { return rows; }

  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions&) const override {
    return std::make_unique<AnswerMetrics>(*this, model, spec_, *tokenizer(), held_out_);
  }
  absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts* cut) const override {
    if (record.kind != Record::Kind::kPair)
      return Error(Exit::kData,
          "expected a question and its context, as \"text\" and \"text_pair\" (or, in text lines, "
          "with a tab between them)");
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
    EncodedQuestion encoded = EncodeQuestion(*tokenizer, spec_, record.text, record.text_pair);
    for (Example& window : encoded.windows) SetAllRows(&window);
    cut->questions += encoded.stats.cut_tokens > 0;
    cut->Add(0, encoded.windows.size(), spec_.max_tokens());
    return std::move(encoded.windows);
  }
  // The best rows of start and end.
  bool has_discrete_answers() const override { return true; }
  std::string AnswerKey(const TextLogits& text) const override {
    const ConstMat logits = text.logits;
    std::string key;
    for (const int32_t kind : {kAnswerStart, kAnswerEnd}) {
      int64_t best = 0;
      for (int64_t r = 1; r < logits.rows; ++r)
        if (logits.f32(r)[kind] > logits.f32(best)[kind]) best = r;
      absl::StrAppend(&key, best, " ");
    }
    return key;
  }
  Decoder NewDecoder(const Model&, const DecodeOptions&) const override {
    return [this](const Record& record, const TextLogits& text) -> OrderedJson {
      const FoundAnswer found = FindAnswer(
          EncodeQuestion(*tokenizer(), spec_, record.text, record.text_pair), spec_, text);
      if (found.none) {
        return {{"answer", nullptr}, {"score", Decimal(found.score)}, {"start", nullptr},
            {"end", nullptr}, {"byte_start", nullptr}, {"byte_end", nullptr}};
      }
      OrderedJson answer = {
          {"answer", Slice(record.text_pair, found.bytes)}, {"score", Decimal(found.score)}};
      answer.update(OffsetsJson(found.bytes, found.chars));
      return answer;
    };
  }

 private:
  QuestionAnsweringSpec spec_;
  std::vector<Question> held_out_;  // of the store for evaluation
};

LossSum QuestionAnswering::Loss(
    const Head&, const Pass& pass, Mat logits, int64_t first, float scale, Arena& arena) const {
  CLOZE_CHECK(first == 0);  // two logits a row: all rows are one chunk
  const Arena::Mark mark = arena.mark();
  const Batch& batch = pass.batch;
  int64_t longest = 0;
  for (int64_t s = 0; s < batch.sequences(); ++s)
    longest = std::max<int64_t>(longest, batch.cu_seqlens[s + 1] - batch.cu_seqlens[s]);
  const Mat both = arena.New(2, longest, DType::kF32);  // a row for the starts, one for the ends
  LossSum sum;
  for (int64_t s = 0; s < batch.sequences() && !DryRun::active(); ++s) {
    const int64_t begin = batch.cu_seqlens[s], n = batch.cu_seqlens[s + 1] - begin;
    Mat rows = both;
    rows.cols = n;
    int32_t targets[2] = {};
    for (int64_t i = 0; i < n; ++i) {
      for (const int32_t kind : {kAnswerStart, kAnswerEnd}) {
        rows.f32(kind)[i] = logits.f32(begin + i)[kind];
        if (batch.targets[begin + i] >> kind & 1) targets[kind] = static_cast<int32_t>(i);
      }
    }
    const LossSum loss = SoftmaxCrossEntropy(rows, targets, scale / 2, arena);
    sum.loss += loss.loss / 2;
    sum.correct += loss.correct == 2;
    for (int64_t i = 0; i < n && scale != 0; ++i) {
      for (const int32_t kind : {kAnswerStart, kAnswerEnd})
        logits.f32(begin + i)[kind] = rows.f32(kind)[i];
    }
  }
  arena.Rewind(mark);
  return sum;
}

}  // namespace

std::unique_ptr<Task> MakeQuestionAnswering(const QuestionAnsweringSpec& spec) {
  return std::make_unique<QuestionAnswering>(spec);
}

}  // namespace cloze
