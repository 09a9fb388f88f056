// Sequence to sequence: writes a target text for each source text, with an encoder-decoder.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/base/text.h"
#include "tasks/data/readers.h"
#include "tasks/store_builder.h"
#include "tasks/task.h"
#include "tasks/translation_metrics.h"

namespace cloze {
namespace {

// The loss of each target token given the right tokens before it, and scores of generated targets
// against the texts of the data.
class TargetEvaluation : public Evaluation {
 public:
  // All must outlive this.
  TargetEvaluation(const Task& task, const Model& model, int64_t max_new_tokens,
      const Tokenizer* tokenizer, const std::vector<std::string>& references)
      : task_(task), model_(model), max_new_tokens_(max_new_tokens), tokenizer_(tokenizer),
        references_(references) {}

  // The tokens are, for each example, the number of tokens that the model generates for its source,
  // then these tokens.
  absl::StatusOr<Output> Run(const Pass& pass, absl::Span<const Example> examples) const override {
    const LossSum sum = task_.RunPass(model_, pass, 0);
    Output output = {.losses = {{sum.loss, sum.correct, std::ssize(pass.batch.rows)}}};
    std::vector<std::vector<int32_t>> sources;
    for (const Example& example : examples)
      sources.emplace_back(example.ids.begin(), example.ids.begin() + example.second);
    ASSIGN_OR_RETURN(const auto targets, generate(sources, max_new_tokens_));
    for (const std::vector<int32_t>& target : targets) {
      output.tokens.push_back(static_cast<int32_t>(target.size()) - 1);  // without the start token
      output.tokens.insert(output.tokens.end(), target.begin() + 1, target.end());
    }
    return output;
  }
  void Add(Output output, absl::Span<const Example> examples) override {
    const Output::Loss& loss = output.losses[0];
    tokens_.Add(loss.loss, loss.correct, loss.targets);
    auto left = absl::MakeConstSpan(output.tokens);
    for (const Example& example : examples) {
      CLOZE_CHECK(!left.empty() && left.size() > static_cast<size_t>(left[0]));
      const auto generated = left.subspan(1, left[0]);
      left.remove_prefix(1 + generated.size());
      const std::string& reference = references_[texts_++];
      // The labels end with the end token, unless max_target_tokens has cut the reference.
      const bool whole = example.labels.size() > tokenizer_->Encode(reference, false).ids.size();
      const bool known = !absl::c_linear_search(example.labels, tokenizer_->special().unk);
      right_ += whole && known && generated == absl::MakeConstSpan(example.labels);
      const std::string text = tokenizer_->Decode(generated);
      bleu_.Add(text, reference);
      chrf_.Add(text, reference);
    }
  }
  MetricResults Results() override {
    MetricResults results;
    for (const auto& value : tokens_.Results().values)
      if (value.first != "bits_per_byte") results.values.push_back(value);
    results.values.emplace_back("bleu", bleu_.Score());
    results.values.emplace_back("chrf", chrf_.Score());
    results.values.emplace_back(
        "exact_match", double(right_) / static_cast<double>(std::max<size_t>(texts_, 1)));
    results.tables.emplace_back("bleu_signature", Json(Bleu::kSignature).dump());
    results.tables.emplace_back("chrf_signature", Json(ChrF::kSignature).dump());
    return results;
  }

 private:
  const Task& task_;
  const Model& model_;
  const int64_t max_new_tokens_;
  const Tokenizer* tokenizer_;
  const std::vector<std::string>& references_;
  MaskedLmMetric tokens_;
  Bleu bleu_;
  ChrF chrf_;
  size_t texts_ = 0;
  int64_t right_ = 0;
};

class SequenceToSequence : public Task {
 public:
  explicit SequenceToSequence(const SequenceToSequenceSpec& spec)
      : Task("sequence_to_sequence", HeadKind::kSequenceToSequence, "generate"), spec_(spec) {}

  int32_t max_tokens() const override { return spec_.max_tokens() + spec_.max_target_tokens(); }
  std::vector<Metric> metrics() const override {
    return {{"loss", Better::kSmaller}, {"perplexity", Better::kSmaller},
        {"accuracy", Better::kLarger}, {"bleu", Better::kLarger}, {"chrf", Better::kLarger},
        {"exact_match", Better::kLarger}};
  }

  void Describe(const DataSpec&, ModelConfig* config) const override {
    config->head = head();
    config->task_fields["max_tokens"] = spec_.max_tokens();
    config->task_fields["max_target_tokens"] = spec_.max_target_tokens();
  }
  absl::Status CheckModel(const LoadedSpec& loaded, const ModelConfig& config) const override {
    if (config.encoder == nullptr)
      return SpecError(
          loaded, name(), "the model is a decoder: expected an encoder or an encoder-decoder");
    RETURN_IF_ERROR(CheckLength(loaded, "max_target_tokens", spec_.max_target_tokens(), config));
    return CheckLength(loaded, "max_tokens", spec_.max_tokens(), *config.encoder);
  }
  void Restore(const ModelConfig& config, JsonFields& fields, int64_t longest) override {
    int32_t source = config.encoder->max_tokens(), target = config.max_tokens();
    fields.Integer("max_tokens", false, 8, 1'000'000, &source);
    fields.Integer("max_target_tokens", false, 2, 1'000'000, &target);
    spec_.set_max_tokens(std::min<int64_t>(longest, source));
    spec_.set_max_target_tokens(std::min<int64_t>(longest, target));
  }
  absl::Status Bind(const ModelConfig& config, const Tokenizer* tokenizer, uint64_t seed) override {
    start_ = config.generation.start_id, end_ = config.end_id;
    if (start_ < 0 || end_ < 0)
      return Error(Exit::kMismatch,
          "no token with which targets begin or end: expected [CLS] and [SEP] in the tokenizer, or "
          "decoder_start_token_id and eos_token_id in config.json");
    return Task::Bind(config, tokenizer, seed);
  }

  absl::Status CheckData(const DataSpec& data) const override {
    return CheckFirst<TextExample>(data, Labels::kIgnored);
  }
  absl::StatusOr<BuiltStore> Build(const DataSpec& data, DataUse use, const Tokenizer& tokenizer,
      const BuildOptions& options) override {
    if (data.text_pair_field().empty())
      return Error(Exit::kSpec, "text_pair_field: is not set: expected the column of the targets");
    StoreKind kind = StoreKindOf("sequence_to_sequence", tokenizer, {}, spec_.max_tokens(), true);
    for (const int32_t number : {spec_.max_target_tokens(), start_, end_})
      kind.key.AddNumber(number);
    if (use == DataUse::kEvaluation) RETURN_IF_ERROR(ReadReferences(data));
    return OpenOrBuild(data, std::move(kind), tokenizer, options,
        [&](ExampleStoreWriter* writer, DataStats* stats) {
          return Fill(data, tokenizer, options, writer, stats);
        });
  }

  // Stored sequences include the end of the target, which is only a label.
  void PrepareExample(uint64_t, double, Example* example) const override {
    example->labels.assign(example->ids.begin() + example->second + 1, example->ids.end());
    example->ids.pop_back();
    example->rows.clear();
    for (size_t r = example->second; r < example->ids.size(); ++r)
      example->rows.push_back(static_cast<int32_t>(r));
  }
  absl::StatusOr<double> ChanceLoss(const ExampleStore& train) const override {
    std::vector<double> counts(tokenizer()->vocab_size());
    RETURN_IF_ERROR(ForSomeExamples(train, [&](const Example& example) {
      for (size_t i = example.second + 1; i < example.ids.size(); ++i) ++counts[example.ids[i]];
    }));
    return Entropy(counts);
  }
  int64_t TargetRows(int64_t rows, int64_t, const DataShape&) const override { return rows; }
  // Half of the rows are of targets.
  Batch DryBatch(int64_t rows, int64_t longest, int64_t targets) const override {
    Batch batch;
    const std::vector<int32_t> ids(longest);
    for (int64_t left = rows, size = 0; left > 0; left -= size) {
      size = std::min(longest, left);
      batch.Add(absl::MakeConstSpan(ids).first(size), size / 2, 0);
    }
    batch.Pad();
    for (int32_t r = 0; r < rows && std::ssize(batch.rows) < targets; ++r)
      if (batch.types[r] == 1) batch.rows.push_back(r);
    batch.targets.resize(batch.rows.size());
    return batch;
  }
  Example Sample(std::vector<int32_t> ids) const override {
    const auto size = static_cast<int32_t>(ids.size());
    Example pair = WithRow(std::move(ids), size - 1);
    pair.second = size / 2;
    return pair;
  }

  std::unique_ptr<Evaluation> NewEvaluation(
      const Model& model, const DataStats&, const DecodeOptions&) const override {
    return std::make_unique<TargetEvaluation>(
        *this, model, spec_.max_target_tokens(), tokenizer(), references_);
  }

  absl::StatusOr<std::vector<Example>> Encode(
      const Record&, const ModelInput&, CutCounts*) const override {
    return Error(Exit::kUsage, "an encoder-decoder answers with `cloze generate`");
  }

 private:
  // Reads the texts of the targets, which the store does not hold.
  absl::Status ReadReferences(const DataSpec& data) {
    RETURN_IF_ERROR(RequireFiles(data, "evaluations read the targets again"));
    ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(data));
    references_.clear();
    TextExample pair;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader.Next(&pair));
      if (!more) return absl::OkStatus();
      references_.push_back(pair.text_pair);
    }
  }
  absl::Status Fill(const DataSpec& data, const Tokenizer& tokenizer, const BuildOptions& options,
      ExampleStoreWriter* writer, DataStats* stats) const {
    ASSIGN_OR_RETURN(TextReader reader, TextReader::Open(data));
    const auto read = [&](TextExample* item, int64_t* bytes) {
      absl::StatusOr<bool> more = reader.Next(item);
      *bytes += item->text.size() + item->text_pair.size();
      return more;
    };
    const auto encode = [&](const TextExample& item, EncodedText* out) {
      *out = SequenceOf(tokenizer, item);
    };
    return FillWithTexts<TextExample>(read, encode, Ticker(reader, options), writer, stats);
  }
  EncodedText SequenceOf(const Tokenizer& tokenizer, const TextExample& item) const;

  SequenceToSequenceSpec spec_;
  int32_t start_ = -1, end_ = -1;
  std::vector<std::string> references_;  // the targets of the evaluated data
};

// Returns the source, the start token, the target and its end.
EncodedText SequenceToSequence::SequenceOf(
    const Tokenizer& tokenizer, const TextExample& item) const {
  Encoding source = tokenizer.Encode(item.text), target = tokenizer.Encode(item.text_pair);
  EncodedText text;
  DataStats& stats = text.stats;
  stats.text_tokens =
      CountTextTokens(tokenizer, source.ids) + CountTextTokens(tokenizer, target.ids);
  stats.empty_documents = stats.text_tokens == 0;
  const int64_t most = spec_.max_target_tokens();
  const bool starts = !target.ids.empty() && target.ids[0] == start_;
  const Keep keep = tokenizer.usual_keep();
  stats.cut_tokens = Truncate(&source, spec_.max_tokens(), keep) +
                     Truncate(&target, most + (starts ? 1 : 0), keep);
  stats.truncated = stats.cut_tokens > 0;
  stats.bytes = static_cast<int64_t>(item.text.size() + item.text_pair.size());
  stats.invalid_bytes = CountInvalidUtf8(item.text) + CountInvalidUtf8(item.text_pair);
  std::vector<int32_t>&from = source.ids, &to = target.ids;
  if (from.empty()) from = {end_};
  if (starts) to.erase(to.begin());
  if (to.empty() || to.back() != end_) {
    to.resize(std::min<size_t>(to.size(), most - 1));
    to.push_back(end_);
  }
  Example& pair = text.windows.emplace_back();
  pair.ids = from;
  pair.second = static_cast<int32_t>(from.size());
  pair.ids.push_back(start_);
  pair.ids.insert(pair.ids.end(), to.begin(), to.end());
  stats.unknown_tokens = std::count(pair.ids.begin(), pair.ids.end(), tokenizer.special().unk);
  return text;
}

}  // namespace

std::unique_ptr<Task> MakeSequenceToSequence(const SequenceToSequenceSpec& spec) {
  return std::make_unique<SequenceToSequence>(spec);
}

}  // namespace cloze
