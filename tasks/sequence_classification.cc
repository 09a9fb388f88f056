// Sequence classification: one label, several labels or a number for each text or pair of texts.
#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "tasks/build.h"
#include "tasks/data/readers.h"
#include "tasks/labels.h"

namespace cloze {
namespace {

using Spec = SequenceClassificationSpec;

// A text, and its target in `labels` or `values`.
struct LabelledText {
  TextExample text;
  Example target;
};

float Logistic(float x) { return 1 / (1 + std::exp(-x)); }

// For each of several labels, true if its probability is at least `threshold`.
std::vector<bool> AtLeast(absl::Span<const float> logits, float threshold) {
  std::vector<bool> chosen;
  for (const float x : logits) chosen.push_back(Logistic(x) >= threshold);
  return chosen;
}

// The mean of the logits of a text's windows.
std::vector<float> MeanLogits(const TextLogits& text) {
  std::vector<float> mean(text.logits.cols);
  for (int64_t r = 0; r < text.logits.rows; ++r) {
    for (int64_t c = 0; c < text.logits.cols; ++c) mean[c] += text.logits.f32(r)[c];
  }
  for (float& x : mean) x /= static_cast<float>(text.logits.rows);
  return mean;
}

// Metrics of texts; the loss is that of a text's mean logits, without weights of labels.
class TextMetrics : public TextEvaluation {
 public:
  TextMetrics(const Model& model, const Spec& spec, const std::vector<std::string>& labels)
      : TextEvaluation(model), spec_(spec), labels_(labels.size()), single_(labels),
        several_(labels) {}

 private:
  void AddLoss(const Pass&, ConstMat, Mat) override {}
  void AddText(const TextLogits& text) override {
    const Example& example = text.windows.front();
    std::vector<float> mean = MeanLogits(text);
    const int64_t n = mean.size();
    const Mat logits = {mean.data(), 1, n, n, DType::kF32};
    switch (spec_.kind()) {
      case Spec::SINGLE_LABEL:
        single_.Add(example.labels[0], static_cast<int>(BestIndex(mean)));
        if (example.labels[0] == n) break;  // a label that the model does not have
        ++with_loss_;
        loss_ += SoftmaxCrossEntropy(logits, example.labels.data(), 0, arena_).loss;
        break;
      case Spec::MULTI_LABEL:
        ++with_loss_;
        several_.Add(example.values, AtLeast(mean, spec_.threshold()));
        loss_ += BinaryCrossEntropy(logits, example.values.data(), 0, arena_).loss;
        break;
      case Spec::REGRESSION: number_.Add(example.values[0], mean[0]); break;
    }
  }
  MetricResults Count() override {
    if (spec_.kind() == Spec::REGRESSION) return number_.Results();
    const bool single = spec_.kind() == Spec::SINGLE_LABEL;
    MetricResults results = single ? single_.Results() : several_.Results();
    results.values.emplace_back("loss", loss_ / with_loss_ / (single ? 1 : labels_));
    return results;
  }

  const Spec& spec_;
  size_t labels_;
  ClassificationMetric single_;
  MultiLabelMetric several_;
  RegressionMetric number_;
  Arena arena_;
  double loss_ = 0;
  int64_t with_loss_ = 0;  // texts whose label the model has
};

// problem_type of each kind, in transformers.
constexpr const char* kProblemTypes[] = {
    "single_label_classification", "multi_label_classification", "regression"};

// The kind of a model folder; without problem_type, a single label is a number (as in
// transformers).
Spec::Kind KindOf(const ModelConfig& config, JsonFields& fields) {
  const size_t labels = config.labels.size();
  const std::string& type = config.problem_type;
  const auto* const known =
      std::find(std::begin(kProblemTypes), std::end(kProblemTypes), absl::string_view(type));
  if (!type.empty() && known == std::end(kProblemTypes)) {
    fields.Fail("problem_type", Quote(type), ": expected \"",
        absl::StrJoin(kProblemTypes, "\" or \""), "\"");
    return Spec::SINGLE_LABEL;
  }
  const Spec::Kind kind = !type.empty() ? static_cast<Spec::Kind>(known - kProblemTypes)
                          : labels == 1 ? Spec::REGRESSION
                                        : Spec::SINGLE_LABEL;
  if (kind == Spec::SINGLE_LABEL && labels == 1)
    fields.Fail("id2label", "expected more than one label");
  if (kind == Spec::REGRESSION && labels != 1)
    fields.Fail("id2label", labels, " labels: expected one number for a regression");
  return kind;
}

class SequenceClassification : public Task {
 public:
  explicit SequenceClassification(const Spec& spec)
      : Task("sequence_classification", HeadKind::kSequenceClassification, "predict"), spec_(spec) {
  }

  int32_t max_tokens() const override { return spec_.max_tokens(); }
  bool reads_pairs() const override { return pairs_; }
  int64_t SampleRow(int64_t) const override { return 0; }

  absl::StatusOr<std::vector<std::string>> LearnLabels(const DataSpec& train,
      const ModelConfig& folder, const std::atomic<bool>* stop) const override {
    if (spec_.labels_size() > 0)
      return std::vector<std::string>(spec_.labels().begin(), spec_.labels().end());
    if (spec_.kind() == Spec::REGRESSION) return std::vector<std::string>{"LABEL_0"};
    ASSIGN_OR_RETURN(auto learned, LearnClassLabels(train, spec_, stop));
    return KeepLabels(folder, head(), std::move(learned));
  }
  void Describe(const DataSpec& train, ModelConfig* config) const override {
    config->head = head();
    config->pooler = spec_.pooler();
    config->problem_type = kProblemTypes[spec_.kind()];
    Json& fields = config->task_fields;
    fields["max_tokens"] = spec_.max_tokens();
    if (spec_.long_texts() != Spec::HEAD)
      fields["long_texts"] = absl::AsciiStrToLower(Spec::LongTexts_Name(spec_.long_texts()));
    if (!train.text_pair_field().empty()) fields["pairs"] = true;
    if (spec_.kind() == Spec::MULTI_LABEL) fields["threshold"] = Decimal(spec_.threshold());
  }
  void Restore(const ModelConfig& config, JsonFields& fields, int64_t longest) override {
    int32_t max_tokens = 0;  // folders from elsewhere have none of these members
    fields.Integer("max_tokens", false, 8, 1'000'000, &max_tokens);
    spec_.set_max_tokens(max_tokens > 0 ? std::min<int64_t>(longest, max_tokens) : longest);
    const std::string name = absl::AsciiStrToUpper(fields.String("long_texts"));
    Spec::LongTexts long_texts = Spec::HEAD;
    if (!name.empty() && !Spec::LongTexts_Parse(name, &long_texts))
      fields.Fail("long_texts", Quote(name), ": expected head, tail, head_tail or windows");
    spec_.set_long_texts(long_texts);
    float threshold = spec_.threshold();
    fields.Number("threshold", 0, 1, &threshold);
    spec_.set_threshold(threshold);
    spec_.set_kind(KindOf(config, fields));
    pairs_ = fields.Bool("pairs", false);
    singles_ = max_tokens > 0 && !pairs_;
  }

  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse use, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {}));
    ASSIGN_OR_RETURN(const LabelIds ids, LabelIds::Create(labels()));
    StoreKind kind = StoreKindOf("classification", tokenizer, labels(), spec_.max_tokens(), true);
    // Only what is not the default, so that caches of old runs keep their names.
    if (spec_.long_texts() != Spec::HEAD) kind.key.AddNumber(spec_.long_texts());
    // One more label stands for all that the model does not have.
    const bool unseen = use == DataUse::kEvaluation && spec_.kind() == Spec::SINGLE_LABEL;
    if (unseen) {
      ++kind.labels;
      kind.key.AddText("unseen labels");
    }
    if (spec_.kind() != Spec::SINGLE_LABEL) {
      kind.targets = spec_.kind() == Spec::REGRESSION ? Targets::kNumber : Targets::kSet;
      kind.key.AddText(Spec::Kind_Name(spec_.kind()));
      kind.key.AddText(spec_.label_separator());
    }
    return OpenOrBuild(data, std::move(kind), tokenizer, options,
        [&](ExampleStoreWriter* writer, DataStats* stats) {
          return Fill(data, ids, unseen, tokenizer, options, writer, stats);
        });
  }
  absl::Status WeighLabels(const ExampleStore& train, std::vector<std::string>* notes) override {
    return SetWeights(
        spec_.class_weights(), spec_.balance_classes(), spec_.label_smoothing(), train, notes);
  }

  LossSum Loss(const Head& head, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const override {
    const float* values = pass.batch.values.data() + first * logits.cols;
    switch (spec_.kind()) {
      case Spec::SINGLE_LABEL: break;
      case Spec::MULTI_LABEL: return BinaryCrossEntropy(logits, values, scale, arena);
      case Spec::REGRESSION: return SquaredError(logits, values, scale, arena);
    }
    return Task::Loss(head, pass, logits, first, scale, arena);
  }
  double LossWeight(const Batch& batch) const override {
    return spec_.kind() == Spec::SINGLE_LABEL ? Task::LossWeight(batch)
                                              : static_cast<double>(batch.values.size());
  }
  int64_t TargetRows(int64_t rows, int64_t examples, const DataShape& data) const override {
    const int64_t most = examples > 0 ? examples : rows;
    return std::min(most, ShareOfRows(rows, 2 / std::max(data.mean_length, 4.0)));
  }

  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions&) const override {
    return std::make_unique<TextMetrics>(model, spec_, labels());
  }
  absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts* cut) const override;
  Decoder NewDecoder(const Model&, const DecodeOptions&) const override {
    return [this](const Record&, const TextLogits& text) { return Answer(MeanLogits(text)); };
  }

 private:
  absl::Status Fill(const DataSpec& data, const LabelIds& ids, bool unseen,
      const Tokenizer& tokenizer, const BuildOptions& options, ExampleStoreWriter* writer,
      DataStats* stats) const;
  absl::Status SetTarget(
      const TextReader& reader, const LabelIds& ids, bool unseen, LabelledText* item) const;
  OrderedJson Answer(std::vector<float> logits) const;

  Spec spec_;
  bool pairs_ = false, singles_ = false;  // the model was trained on pairs, or on single texts only
};

absl::Status SequenceClassification::SetTarget(
    const TextReader& reader, const LabelIds& ids, bool unseen, LabelledText* item) const {
  const auto id_of = [&](const std::string& label) {
    return ids.IdOf(label, "label_field", [&] { return reader.Where(item->text.line); });
  };
  const std::string& text = item->text.label;
  float number = 0;
  switch (spec_.kind()) {
    case Spec::SINGLE_LABEL: {
      if (unseen && !ids.Has(text)) {
        item->target.labels = {static_cast<int32_t>(ids.size())};
        break;
      }
      ASSIGN_OR_RETURN(const int32_t id, id_of(text));
      item->target.labels = {id};
      break;
    }
    case Spec::MULTI_LABEL:
      item->target.values.assign(ids.size(), 0);
      for (const std::string& label : LabelsOf(item->text, spec_.label_separator())) {
        ASSIGN_OR_RETURN(const int32_t id, id_of(label));
        item->target.values[id] = 1;
      }
      break;
    case Spec::REGRESSION:
      if (!absl::SimpleAtof(text, &number) || !std::isfinite(number))
        return Error(Exit::kData, reader.Where(item->text.line), ": label_field: \"", Quote(text),
            "\" is not a finite number; REGRESSION learns numbers, SINGLE_LABEL and MULTI_LABEL "
            "names");
      item->target.values = {number};
  }
  return absl::OkStatus();
}

absl::Status SequenceClassification::Fill(const DataSpec& data, const LabelIds& ids, bool unseen,
    const Tokenizer& tokenizer, const BuildOptions& options, ExampleStoreWriter* writer,
    DataStats* stats) const {
  ASSIGN_OR_RETURN(TextReader reader,
      TextReader::Open(
          data, spec_.kind() == Spec::MULTI_LABEL ? Labels::kSeveral : Labels::kRequired));
  const auto read = [&](LabelledText* item, int64_t* bytes) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&item->text));
    if (!more) return false;
    *bytes += item->text.text.size() + item->text.text_pair.size();
    RETURN_IF_ERROR(SetTarget(reader, ids, unseen, item));
    return true;
  };
  const bool pair = !data.text_pair_field().empty();
  const auto encode = [&](const LabelledText& item, EncodedText* out) {
    const auto& [text, text_pair] = std::tie(item.text.text, item.text.text_pair);
    *out = SequencesOfText(
        tokenizer, text, pair ? &text_pair : nullptr, spec_.max_tokens(), spec_.long_texts());
    out->stats.empty_documents = out->stats.text_tokens == 0;
    out->stats.bytes = text.size() + text_pair.size();
    out->stats.invalid_bytes = CountInvalidUtf8(text) + CountInvalidUtf8(text_pair);
    for (Example& window : out->windows) {
      window.labels = item.target.labels;
      window.values = item.target.values;
    }
  };
  return FillWithTexts<LabelledText>(read, encode, Ticker(reader, options), writer, stats);
}

OrderedJson SequenceClassification::Answer(std::vector<float> logits) const {
  const auto scores = [&] {
    OrderedJson json = OrderedJson::object();
    for (size_t i = 0; i < logits.size(); ++i)
      json.get_ref<OrderedJson::object_t&>().emplace_back(labels()[i], Decimal(logits[i]));
    return json;
  };
  switch (spec_.kind()) {
    case Spec::SINGLE_LABEL: {
      Softmax(logits.data(), logits.size());
      const int64_t best = BestIndex(logits);
      return {{"label", labels()[best]}, {"score", Decimal(logits[best])}, {"scores", scores()}};
    }
    case Spec::MULTI_LABEL: {
      const std::vector<bool> chosen = AtLeast(logits, spec_.threshold());
      OrderedJson names = OrderedJson::array();
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i]) names.push_back(labels()[i]);
        logits[i] = Logistic(logits[i]);
      }
      return {{"labels", std::move(names)}, {"scores", scores()}};
    }
    case Spec::REGRESSION: return {{"label", labels()[0]}, {"score", Decimal(logits[0])}};
  }
  CLOZE_CHECK(false);
}

absl::StatusOr<std::vector<Example>> SequenceClassification::Encode(
    const Record& record, const ModelInput& input, CutCounts* cut) const {
  const bool pair = record.kind == Record::Kind::kPair;
  if (!record.ids.empty() || (!pair && record.kind != Record::Kind::kText)) {
    ASSIGN_OR_RETURN(Example example, EncodeRecord(record, input, cut));
    example.rows = {0};
    return std::vector<Example>{std::move(example)};
  }
  if (pairs_ && !pair) {
    return Error(Exit::kData,
        "one text, but this model was trained on pairs: expected \"text_pair\" (in text lines, a "
        "tab "
        "and the second text)");
  }
  if (singles_ && pair)
    return Error(Exit::kData, "a pair of texts; this model was trained on single ones");
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
  EncodedText text = SequencesOfText(*tokenizer, record.text, pair ? &record.text_pair : nullptr,
      spec_.max_tokens(), spec_.long_texts());
  cut->Add(text.stats.cut_tokens, text.windows.size(), spec_.max_tokens());
  return std::move(text.windows);
}

}  // namespace

std::unique_ptr<Task> MakeSequenceClassification(const Spec& spec) {
  return std::make_unique<SequenceClassification>(spec);
}

}  // namespace cloze
