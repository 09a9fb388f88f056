#include "tools/int8_comparison.h"

#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/types/span.h"
#include "tasks/inference/evaluate.h"
#include "tools/evaluation.h"
#include "tools/infer.h"

namespace cloze {
namespace {

// Texts with the labels of the model's task. Their metric is compared.
struct LabelledTexts {
  LabelledData data;

  absl::Status Open(
      const std::string& folder, const ComparisonOptions& options, const Session& session) {
    ASSIGN_OR_RETURN(
        data, LabelledData::Open(folder, session.config(), options.data, options.overrides));
    ASSIGN_OR_RETURN(const Tokenizer* tokenizer, session.TokenizerOr());
    return data.Build(session.config(), tokenizer);
  }

  absl::StatusOr<AnswersAndScore> Answer(Session& session) const {
    RETURN_IF_ERROR(session.model().WordEmbeddings().status());  // reads them all
    AnswersAndScore result;
    const auto on_text = [&](const TextLogits& text) {
      std::string key = data.task->AnswerKey(text);
      if (!key.empty()) result.answers.push_back(std::move(key));
    };
    ASSIGN_OR_RETURN(
        const MetricResults results, Evaluate(session.model(), *data.task, data.built->store,
                                         {.compute = session.compute(),
                                             .stop = StopOnSignals(),
                                             .on_text = on_text,
                                             .needs_finite = true}));
    // A run may choose by a metric of other data, such as pair_accuracy.
    std::string name = data.loaded.spec.evaluation().metric();
    if (name.empty() || !results.Value(name).ok()) name = results.values.front().first;
    ASSIGN_OR_RETURN(result.value, results.Value(name));
    ASSIGN_OR_RETURN(result.metric, FindMetric(data.task->metrics(), name));
    return result;
  }
};

// Replaces all numbers by 0, so that answers with other scores are equal.
void DropNumbers(OrderedJson* json) {
  if (json->is_number()) *json = 0;
  if (!json->is_structured()) return;
  for (OrderedJson& member : *json) DropNumbers(&member);
}

// Texts without labels. Their answers or, without a command, their vectors are compared.
struct UnlabelledTexts {
  std::string file, command;
  std::optional<SentenceVectors> vectors;
  std::vector<Record> records;

  absl::Status Open(
      const std::string& folder, const ComparisonOptions& options, const Session& session) {
    file = options.texts;
    ASSIGN_OR_RETURN(
        const auto task, RestoreTask(folder, session.config(), session.config().max_tokens()));
    if (task != nullptr && task->has_discrete_answers()) command = task->command();
    ASSIGN_OR_RETURN(vectors, VectorsOf(folder));
    InputOptions input;
    input.path = file;
    input.vocab_size = session.config().vocab;
    input.pairs = task != nullptr && task->reads_pairs();
    LoadedSpec reading;
    ASSIGN_OR_RETURN(*reading.spec.mutable_train(), TrainingData(folder, session.config()));
    RETURN_IF_ERROR(SetData({file}, options.overrides, &reading));
    input.data = reading.spec.validation();
    if (input.data.format() != DataSpec::BY_EXTENSION)
      input.format = absl::AsciiStrToLower(DataSpec::Format_Name(input.data.format()));
    const size_t limit = input.data.max_examples() > 0 ? input.data.max_examples() : SIZE_MAX;
    input.records = std::min<size_t>(input.records, limit);
    ASSIGN_OR_RETURN(InputReader reader, InputReader::Open(input));
    std::vector<Record> batch;
    do {
      RETURN_IF_ERROR(reader.Next(&batch));
      records.insert(records.end(), batch.begin(), batch.end());
    } while (!batch.empty() && records.size() < limit);
    records.resize(std::min(records.size(), limit));
    if (!records.empty()) return absl::OkStatus();
    return Error(Exit::kData, QuotePath(file), ": no texts: expected one per line");
  }

  absl::StatusOr<AnswersAndScore> Answer(Session& session) const {
    constexpr size_t kAtOnce = 1024;
    AnswersAndScore result;
    result.metric = {command.empty() ? "cosine" : "equal_answers", Better::kLarger};
    result.value = 1;
    const RecordSource source = {.name = QuotePath(file)};
    std::unique_ptr<Predictor> predictor;
    if (!command.empty()) {
      ASSIGN_OR_RETURN(
          predictor, Predictor::Create(session, {.command = command, .source = source}));
    }
    CutCounts cut;
    TextPooling how = FolderPooling(vectors);
    how.normalize = false;
    const auto add_vector = [&](size_t, const absl::Status&, int, ConstMat hidden) {
      result.vectors.push_back(TextVector(hidden, how));
      return absl::OkStatus();
    };
    const auto add = [&](const Record&, const OrderedJson& answer) {
      OrderedJson words = answer;
      DropNumbers(&words);
      result.answers.push_back(ToJsonLine(words));
      return absl::OkStatus();
    };
    for (size_t i = 0; i < records.size(); i += kAtOnce) {
      RETURN_IF_ERROR(CheckSignals());
      const auto some = absl::MakeSpan(records).subspan(i, kAtOnce);
      RETURN_IF_ERROR(predictor != nullptr
                          ? predictor->Answer(some, add)
                          : ForEachHidden(session, some, source, vectors, true, &cut, add_vector));
    }
    return result;
  }
};

double Cosine(const std::vector<float>& a, const std::vector<float>& b) {
  return Dot(a, b) / std::sqrt(Dot(a, a) * Dot(b, b));
}

template <typename Data>
absl::StatusOr<Answerer> Opened(
    const std::string& folder, const ComparisonOptions& options, const Session& session) {
  const auto data = std::make_shared<Data>();
  RETURN_IF_ERROR(data->Open(folder, options, session));
  return [data](Session& other) { return data->Answer(other); };
}

}  // namespace

double EqualShare(const AnswersAndScore& before, const AnswersAndScore& after) {
  if (before.answers.empty()) return std::numeric_limits<double>::quiet_NaN();
  double equal = 0;
  for (size_t i = 0; i < before.answers.size(); ++i) equal += before.answers[i] == after.answers[i];
  return equal / static_cast<double>(before.answers.size());
}

double PointsLost(const AnswersAndScore& before, const AnswersAndScore& after) {
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

absl::StatusOr<Answerer> OpenComparison(
    const std::string& folder, const ComparisonOptions& options, Session& session) {
  return options.texts.empty() ? Opened<LabelledTexts>(folder, options, session)
                               : Opened<UnlabelledTexts>(folder, options, session);
}

}  // namespace cloze
