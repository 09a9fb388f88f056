#include "tools/gauge.h"

#include <cmath>
#include <limits>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/types/span.h"
#include "tasks/build.h"
#include "tasks/inference/evaluate.h"
#include "tools/evaluation.h"
#include "tools/infer.h"
#include "tools/input.h"
#include "tools/process.h"

namespace cloze {
namespace {

class LabelledGauge : public Gauge {
 public:
  absl::Status Open(const std::string& folder, const GaugeOptions& options, Session& session) {
    ASSIGN_OR_RETURN(found_, TaskOf(folder, session.config()));
    auto& [task, loaded] = found_;
    RETURN_IF_ERROR(SetData(options.data, options.overrides, &loaded));
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session.TokenizerOr());
    RETURN_IF_ERROR(task->Bind(session.config(), tokenizer, loaded.spec.seed()));
    ASSIGN_OR_RETURN(ScratchFolder cache, ScratchFolder::Create());
    cache_.emplace(std::move(cache));
    ASSIGN_OR_RETURN(
        built_, BuildStore(loaded, *task, loaded.spec.validation(), session.config(), *tokenizer,
                    {.cache_dir = cache_->path(), .progress = nullptr, .stop = StopOnSignals()}));
    return absl::OkStatus();
  }

  absl::StatusOr<Measured> Measure(Session& session) override {
    RETURN_IF_ERROR(session.WordEmbeddings().status());  // reads them all
    Measured m;
    const auto on_text = [&](const TextLogits& text) {
      std::string key = found_.task->AnswerKey(text);
      if (!key.empty()) m.answers.push_back(std::move(key));
    };
    ASSIGN_OR_RETURN(
        const MetricResults results, Evaluate(session.model(), *found_.task, built_->store,
                                         {.compute = session.compute(),
                                             .stop = StopOnSignals(),
                                             .on_text = on_text,
                                             .needs_finite = true}));
    // A run may choose by a metric of other data, such as pair_accuracy.
    std::string name = found_.loaded.spec.evaluation().metric();
    if (name.empty() || !results.Value(name).ok()) name = results.values.front().first;
    ASSIGN_OR_RETURN(m.value, results.Value(name));
    ASSIGN_OR_RETURN(m.metric, FindMetric(found_.task->metrics(), name));
    return m;
  }

 private:
  TaskAndSpec found_;
  std::optional<ScratchFolder> cache_;
  std::optional<BuiltStore> built_;
};

// Replaces all numbers by 0, so that answers with other scores are equal.
void DropNumbers(OrderedJson* json) {
  if (json->is_number()) *json = 0;
  if (!json->is_structured()) return;
  for (OrderedJson& member : *json) DropNumbers(&member);
}

class TextGauge : public Gauge {
 public:
  absl::Status Open(const std::string& folder, const GaugeOptions& options, Session& session) {
    file_ = options.texts;
    ASSIGN_OR_RETURN(
        const auto task, RestoreTask(folder, session.config(), session.config().max_tokens()));
    if (task != nullptr && task->has_discrete_answers()) command_ = task->command();
    ASSIGN_OR_RETURN(vectors_, VectorsOf(folder));
    InputOptions input;
    input.path = options.texts;
    input.vocab_size = session.config().vocab;
    input.pairs = task != nullptr && task->reads_pairs();
    LoadedSpec reading;
    ASSIGN_OR_RETURN(*reading.spec.mutable_train(), TrainingData(folder, session.config()));
    RETURN_IF_ERROR(SetData({options.texts}, options.overrides, &reading));
    input.data = reading.spec.validation();
    if (input.data.format() != DataSpec::BY_EXTENSION)
      input.format = absl::AsciiStrToLower(DataSpec::Format_Name(input.data.format()));
    const size_t most = input.data.max_examples() > 0 ? input.data.max_examples() : SIZE_MAX;
    input.records = std::min<size_t>(input.records, most);
    ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
    std::vector<Record> records;
    do {
      RETURN_IF_ERROR(reader.Next(&records));
      records_.insert(records_.end(), records.begin(), records.end());
    } while (!records.empty() && records_.size() < most);
    records_.resize(std::min(records_.size(), most));
    if (!records_.empty()) return absl::OkStatus();
    return Error(Exit::kData, QuotePath(file_), ": no texts: expected one per line");
  }

  absl::StatusOr<Measured> Measure(Session& session) override {
    Measured m;
    m.metric = {command_.empty() ? "cosine" : "equal_answers", Better::kLarger};
    m.value = 1;
    if (command_.empty()) {
      RETURN_IF_ERROR(AddVectors(session, &m));
      return m;
    }
    ASSIGN_OR_RETURN(const auto predictor,
        Predictor::Create(session, {.command = command_, .source = QuotePath(file_)}));
    const auto add = [&](const Record&, const OrderedJson& answer) {
      OrderedJson words = answer;
      DropNumbers(&words);
      m.answers.push_back(ToJsonLine(words));
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(ForParts(
        [&](absl::Span<const Record> records) { return predictor->Answer(records, add); }));
    return m;
  }

 private:
  absl::Status AddVectors(Session& session, Measured* m) {
    CutCounts cut;
    return ForParts([&](absl::Span<const Record> records) -> absl::Status {
      std::vector<Query> queries;
      for (const Record& record : records) {
        ASSIGN_OR_RETURN(Example example,
            EncodeRecord(Prepared(record, vectors_), InputOf(session, vectors_), &cut));
        queries.push_back({std::move(example)});
      }
      return session.Hidden(queries, true, [&](int64_t, int, ConstMat hidden) {
        m->vectors.push_back(
            Pooled(hidden, vectors_.has_value() ? vectors_->pool : "mean", /*normalize=*/false));
      });
    });
  }

  // Calls f for consecutive parts of the records. kInterrupted after a signal.
  absl::Status ForParts(absl::FunctionRef<absl::Status(absl::Span<const Record>)> f) const {
    constexpr size_t kAtOnce = 1024;
    for (size_t i = 0; i < records_.size(); i += kAtOnce) {
      RETURN_IF_ERROR(CheckSignals());
      RETURN_IF_ERROR(f(absl::MakeSpan(records_).subspan(i, kAtOnce)));
    }
    return absl::OkStatus();
  }

  std::string file_, command_;  // no command: vectors are compared
  std::optional<SentenceVectors> vectors_;
  std::vector<Record> records_;
};

double Cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i)
    ab += double{a[i]} * b[i], aa += double{a[i]} * a[i], bb += double{b[i]} * b[i];
  return ab / std::sqrt(aa * bb);
}

template <typename T>
absl::StatusOr<std::unique_ptr<Gauge>> Opened(
    const std::string& folder, const GaugeOptions& options, Session& session) {
  auto gauge = std::make_unique<T>();
  RETURN_IF_ERROR(gauge->Open(folder, options, session));
  return gauge;
}

}  // namespace

double EqualShare(const Measured& before, const Measured& after) {
  if (before.answers.empty()) return std::numeric_limits<double>::quiet_NaN();
  double equal = 0;
  for (size_t i = 0; i < before.answers.size(); ++i) equal += before.answers[i] == after.answers[i];
  return equal / static_cast<double>(before.answers.size());
}

double PointsLost(const Measured& before, const Measured& after) {
  if (before.metric.name == "equal_answers") return 100 * (1 - EqualShare(before, after));
  if (before.metric.name == "cosine") {
    double sum = 0;
    for (size_t i = 0; i < before.vectors.size(); ++i)
      sum += Cosine(before.vectors[i], after.vectors[i]);
    return 100 * (1 - sum / static_cast<double>(before.vectors.size()));
  }
  if (before.metric.better == Better::kLarger) return 100 * (before.value - after.value);
  return 100 * (after.value - before.value) / before.value;
}

absl::StatusOr<std::unique_ptr<Gauge>> OpenGauge(
    const std::string& folder, const GaugeOptions& options, Session& session) {
  return options.texts.empty() ? Opened<LabelledGauge>(folder, options, session)
                               : Opened<TextGauge>(folder, options, session);
}

}  // namespace cloze
