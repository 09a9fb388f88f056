// Sequence classification: one label, several labels or a number for each text or pair of texts.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "tasks/data/readers.h"
#include "tasks/labelled_task.h"
#include "tasks/labels.h"
#include "tasks/probabilities.h"
#include "tasks/store_builder.h"
#include "tasks/text_metrics.h"

namespace cloze {
namespace {

using Spec = SequenceClassificationSpec;

// A text, and its target in `labels` or `values`.
struct LabelledText {
  TextExample text;
  Example target;
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

absl::StatusOr<TextReader> OpenTexts(
    const DataSpec& data, const Spec& spec, bool keep_lines = false) {
  return TextReader::Open(data, LabelsToRead(spec), keep_lines, LabelRuleOf(spec));
}

absl::Status SetTarget(
    const Spec& spec, const TextReader& reader, FoundLabels* found, LabelledText* item) {
  const auto where = [&] { return reader.Where(item->text.line); };
  const std::string& text = item->text.label;
  float number = 0;
  switch (spec.kind()) {
    case Spec::SINGLE_LABEL: {
      ASSIGN_OR_RETURN(const int32_t id, found->IdOf(text, where));
      item->target.labels = {id};
      break;
    }
    case Spec::MULTI_LABEL: {
      ASSIGN_OR_RETURN(item->target.values,
          found->ValuesOf(LabelsOf(item->text, spec.label_separator()), where));
      break;
    }
    case Spec::REGRESSION:
      if (!ParseDecimal(text, &number))
        return Error(Exit::kData, where(), ": label_field: \"", Quote(text),
            "\" is not a finite number in decimal notation",
            HasDecimalComma(text)
                ? " (a decimal comma? set decimal_comma: true beside label_field)"
                : "; REGRESSION learns numbers, SINGLE_LABEL and MULTI_LABEL names");
      item->target.values = {number};
  }
  return absl::OkStatus();
}

absl::Status Fill(const DataSpec& data, const Spec& spec, FoundLabels* found,
    const Tokenizer& tokenizer, const BuildOptions& options, ExampleStoreWriter* writer,
    DataStats* stats) {
  ASSIGN_OR_RETURN(TextReader reader, OpenTexts(data, spec));
  const auto read = [&](LabelledText* item, int64_t* bytes) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&item->text));
    if (!more) return found->Finish(data.files(0));
    *bytes += item->text.text.size() + item->text.text_pair.size();
    RETURN_IF_ERROR(SetTarget(spec, reader, found, item));
    return true;
  };
  const bool pair = !data.text_pair_field().empty();
  const auto encode = [&](const LabelledText& item, EncodedText* out) {
    const auto& [text, text_pair] = std::tie(item.text.text, item.text.text_pair);
    *out = SequencesOfText(
        tokenizer, text, pair ? &text_pair : nullptr, spec.max_tokens(), spec.long_texts());
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

// Returns the thresholds that were fitted to `labels` labels, if there are any.
std::vector<float> ReadThresholds(size_t labels, JsonFields& fields) {
  const Json* list = fields.Find("thresholds");
  std::vector<float> thresholds;
  if (list == nullptr) return thresholds;
  for (const Json& item : list->is_array() ? *list : Json::array()) {
    const double value = item.is_number() ? item.get<double>() : -1;
    if (value >= 0 && value <= 1) thresholds.push_back(static_cast<float>(value));
  }
  if (thresholds.size() != labels || list->size() != labels)
    fields.Fail("thresholds", "expected a probability for each of ", labels, " labels");
  return thresholds;
}

OrderedJson AnswerOf(
    const Decision& how, const std::vector<std::string>& labels, std::vector<float> scores) {
  how.ToProbabilities(&scores);
  if (how.kind == Spec::REGRESSION) return {{"label", labels[0]}, {"score", Decimal(scores[0])}};
  OrderedJson all = OrderedJson::object();
  for (size_t i = 0; i < scores.size(); ++i)
    all.get_ref<OrderedJson::object_t&>().emplace_back(labels[i], Decimal(scores[i]));
  if (how.kind == Spec::SINGLE_LABEL) {
    const int64_t best = BestIndex(scores);
    return {{"label", labels[best]}, {"score", Decimal(scores[best])}, {"scores", all}};
  }
  const std::vector<bool> chosen = how.Chosen(scores);
  OrderedJson names = OrderedJson::array();
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) names.push_back(labels[i]);
  }
  return {{"labels", std::move(names)}, {"scores", all}};
}

class SequenceClassification : public LabelledTask {
 public:
  explicit SequenceClassification(const Spec& spec)
      : LabelledTask("sequence_classification", HeadKind::kSequenceClassification, "predict",
            LabelSettings::Of(spec)),
        spec_(spec) {}

  int32_t max_tokens() const override { return spec_.max_tokens(); }
  bool reads_pairs() const override { return pairs_; }
  Example Sample(std::vector<int32_t> ids) const override { return WithRow(std::move(ids), 0); }

  std::vector<Metric> metrics() const override {
    if (spec_.kind() == Spec::REGRESSION)
      return {{"pearson", Better::kLarger}, {"spearman", Better::kLarger},
          {"mse", Better::kSmaller}, {"mae", Better::kSmaller}};
    if (spec_.kind() == Spec::MULTI_LABEL)
      return {{"micro_f1", Better::kLarger}, {"macro_f1", Better::kLarger},
          {"accuracy", Better::kLarger}, {"auc", Better::kLarger}, {"ece", Better::kSmaller},
          {"loss", Better::kSmaller}};
    return {{"accuracy", Better::kLarger}, {"macro_f1", Better::kLarger}, {"mcc", Better::kLarger},
        {"auc", Better::kLarger}, {"ece", Better::kSmaller}, {"loss", Better::kSmaller}};
  }
  void Describe(const DataSpec& train, ModelConfig* config) const override {
    config->head = head();
    config->pooler = spec_.pooler();
    if (spec_.has_pooling()) config->pooling = static_cast<Pool>(spec_.pooling());
    config->problem_type = kProblemTypes[spec_.kind()];
    Json& fields = config->task_fields;
    fields["max_tokens"] = spec_.max_tokens();
    if (spec_.long_texts() != Spec::HEAD)
      fields["long_texts"] = absl::AsciiStrToLower(Spec::LongTexts_Name(spec_.long_texts()));
    if (!train.text_pair_field().empty()) fields["pairs"] = true;
    if (spec_.kind() == Spec::MULTI_LABEL) fields["threshold"] = Decimal(spec_.threshold());
  }
  void DescribeFitted(const MetricResults& results, ModelConfig* config) const override {
    for (const auto& [name, json] : results.tables) {
      if (name == "temperature" || name == "thresholds")
        config->task_fields[name] = Json::parse(json);
    }
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
    fields.Number("temperature", 1e-3, 1e3, &temperature_);
    thresholds_ = ReadThresholds(config.labels.size(), fields);
    pairs_ = fields.Bool("pairs", false);
    singles_ = max_tokens > 0 && !pairs_;
  }

  absl::Status CheckData(const DataSpec& data) const override {
    return CheckFirst<TextExample>(data, LabelsToRead(spec_));
  }
  absl::StatusOr<LabelledReader> OpenLabelled(const DataSpec& data) const override;
  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse use, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    RETURN_IF_ERROR(RequireTokens(tokenizer, {}));
    ASSIGN_OR_RETURN(const LabelIds ids, LabelIds::Create(labels()));
    StoreKind kind = StoreKindOf("classification", tokenizer, labels(), spec_.max_tokens(), true);
    // Adds values other than the default only, so that caches of older runs keep their names.
    if (spec_.long_texts() != Spec::HEAD) kind.key.AddNumber(spec_.long_texts());
    // Further labels stand for those that the model lacks; MULTI_LABEL: one for all of them.
    const bool evaluates = use == DataUse::kEvaluation && spec_.kind() != Spec::REGRESSION;
    if (evaluates) {
      kind.labels += spec_.kind() == Spec::SINGLE_LABEL ? kMaxLabels : 1;
      kind.key.AddText("unseen labels");
    }
    if (spec_.kind() != Spec::SINGLE_LABEL) {
      kind.targets = spec_.kind() == Spec::REGRESSION ? Targets::kNumber : Targets::kSet;
      kind.key.AddText(Spec::Kind_Name(spec_.kind()));
      kind.key.AddText(spec_.label_separator());
    }
    for (const std::string& entry : spec_.label_map()) kind.key.AddText(entry);
    if (spec_.trim_labels()) kind.key.AddText("trim_labels");
    FoundLabels found(ids, evaluates);
    const auto fill = [&](ExampleStoreWriter* writer, DataStats* stats) {
      return Fill(data, spec_, &found, tokenizer, options, writer, stats);
    };
    ASSIGN_OR_RETURN(
        BuiltStore built, OpenOrBuild(data, std::move(kind), tokenizer, options, fill));
    built.unseen_labels = found.Unseen();
    if (!built.unseen_labels.empty())
      built.AddNote(
          "labels that the model does not have count as wrong: ", ListNames(built.unseen_labels));
    if (const std::string repeats = found.Repeats(); !repeats.empty())
      built.AddNote("warning: ", repeats);
    return built;
  }
  LossSum Loss(const Head& head, const Pass& pass, Mat logits, int64_t first, float scale,
      Arena& arena) const override {
    const std::vector<float>& all = pass.batch.values;  // empty in dry runs, which read no values
    const float* values = all.empty() ? nullptr : all.data() + first * logits.cols;
    switch (spec_.kind()) {
      case Spec::SINGLE_LABEL: break;
      case Spec::MULTI_LABEL: return BinaryCrossEntropy(logits, values, scale, arena);
      case Spec::REGRESSION: return SquaredError(logits, values, scale, arena);
    }
    return LabelledTask::Loss(head, pass, logits, first, scale, arena);
  }
  double LossWeight(const Batch& batch) const override {
    return spec_.kind() == Spec::SINGLE_LABEL ? LabelledTask::LossWeight(batch)
                                              : static_cast<double>(batch.values.size());
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override;
  int64_t TargetRows(int64_t rows, int64_t examples, const DataShape& data) const override {
    const int64_t most = examples > 0 ? examples : rows;
    return std::min(most, ShareOfRows(rows, 2 / std::max(data.mean_length, 4.0)));
  }

  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions& options) const override {
    return NewTextMetrics(model, spec_, HowToDecide(), options, labels(), tokenizer());
  }
  absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts* cut) const override;
  bool has_discrete_answers() const override { return spec_.kind() != Spec::REGRESSION; }
  std::string AnswerKey(const TextLogits& text) const override {
    if (spec_.kind() == Spec::REGRESSION) return "";
    const OrderedJson answer = AnswerOf(HowToDecide(), labels(), MeanLogits(text));
    return ToJsonLine(answer[spec_.kind() == Spec::MULTI_LABEL ? "labels" : "label"]);
  }
  std::vector<float> Probabilities(const TextLogits& text) const override {
    std::vector<float> scores = MeanLogits(text);
    HowToDecide().ToProbabilities(&scores);
    return scores;
  }
  Decoder NewDecoder(const Model&, const DecodeOptions&) const override {
    return [this, how = HowToDecide()](const Record&, const TextLogits& text) {
      return AnswerOf(how, labels(), MeanLogits(text));
    };
  }

 private:
  absl::StatusOr<std::vector<std::string>> LabelsInData(
      const DataSpec& train, const std::atomic<bool>* stop) const override {
    if (spec_.kind() == Spec::REGRESSION) return std::vector<std::string>{"LABEL_0"};
    return LearnClassLabels(train, spec_, stop);
  }
  Decision HowToDecide() const {
    Decision how = {spec_.kind(), temperature_, thresholds_};
    if (thresholds_.empty()) how.thresholds.assign(labels().size(), spec_.threshold());
    return how;
  }

  Spec spec_;
  float temperature_ = 1;
  std::vector<float> thresholds_;         // of each label; empty: that of the spec
  bool pairs_ = false, singles_ = false;  // the model was trained on pairs, or on single texts only
};

// MULTI_LABEL: known labels in the model's order, then unknown ones.
absl::StatusOr<LabelledReader> SequenceClassification::OpenLabelled(const DataSpec& data) const {
  ASSIGN_OR_RETURN(TextReader opened, OpenTexts(data, spec_, /*keep_lines=*/true));
  const auto reader = std::make_shared<TextReader>(std::move(opened));
  return [this, reader](LabelledRecord* item) -> absl::StatusOr<bool> {
    TextExample row;
    ASSIGN_OR_RETURN(const bool more, reader->Next(&row));
    if (!more) return false;
    double number = 0;
    if (spec_.kind() == Spec::MULTI_LABEL) {
      std::vector<std::string> names = LabelsOf(row, spec_.label_separator());
      absl::c_stable_sort(names, [&](const std::string& a, const std::string& b) {
        return absl::c_find(labels(), a) < absl::c_find(labels(), b);
      });
      item->answer = {{"true_labels", std::move(names)}};
    } else if (spec_.kind() == Spec::REGRESSION && ParseDecimal(row.label, &number)) {
      item->answer = {{"true_score", number}};
    } else {
      item->answer = {{"true_label", row.label}};
    }
    item->columns = reader->columns();
    item->where = reader->Where(row.line);
    item->record.text = std::move(row.text);
    item->record.text_pair = std::move(row.text_pair);
    item->record.cells = std::move(row.cells);
    return true;
  };
}

// MULTI_LABEL: the mean entropy of the labels. REGRESSION: the variance.
absl::StatusOr<double> SequenceClassification::ChanceLoss(const ExampleStore& train) const {
  if (spec_.kind() == Spec::SINGLE_LABEL) return LabelledTask::ChanceLoss(train);
  const size_t n = labels().size();
  std::vector<double> sums(n);
  double squares = 0, texts = 0;
  RETURN_IF_ERROR(ForSomeExamples(train, [&](const Example& example) {
    ++texts;
    for (size_t l = 0; l < n; ++l) sums[l] += example.values[l];
    squares += double(example.values[0]) * example.values[0];
  }));
  if (spec_.kind() == Spec::REGRESSION)
    return squares / texts - sums[0] / texts * (sums[0] / texts);
  double loss = 0;
  for (const double sum : sums) loss += Entropy({sum, texts - sum}) / static_cast<double>(n);
  return loss;
}

absl::StatusOr<std::vector<Example>> SequenceClassification::Encode(
    const Record& record, const ModelInput& input, CutCounts* cut) const {
  const bool pair = record.kind == Record::Kind::kPair;
  if (record.kind == Record::Kind::kIds) {
    ASSIGN_OR_RETURN(Example example, EncodeRecord(record, input, cut));
    example.rows = {0};
    return std::vector<Example>{std::move(example)};
  }
  if (pairs_ && !pair) {
    return Error(Exit::kData,
        "one text, but this model was trained on pairs: expected \"text_pair\" (in text lines, a "
        "tab and the second text)");
  }
  if (singles_ && pair)
    return Error(Exit::kData, "a pair of texts; this model was trained on single ones");
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
  const bool words = record.kind == Record::Kind::kWords;
  EncodedText text =
      SequencesOfText(*tokenizer, words ? absl::StrJoin(record.words, " ") : record.text,
          pair ? &record.text_pair : nullptr, spec_.max_tokens(), spec_.long_texts());
  cut->Add(text.stats.cut_tokens, text.windows.size(), spec_.max_tokens());
  return std::move(text.windows);
}

}  // namespace

std::unique_ptr<Task> MakeSequenceClassification(const Spec& spec) {
  return std::make_unique<SequenceClassification>(spec);
}

}  // namespace cloze
