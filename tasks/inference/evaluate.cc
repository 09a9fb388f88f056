#include "tasks/inference/evaluate.h"

#include <algorithm>

#include "tasks/batcher.h"
#include "tasks/loss.h"
#include "tasks/scores.h"
#include "tasks/tag_decoder.h"

namespace cloze {
namespace {

// Numbers of held-out examples start here, so that their masks differ from those of training.
constexpr uint64_t kHeldOut = uint64_t{1} << 62;

// What the three tasks count.
class Counter {
 public:
  virtual ~Counter() = default;
  // A batch with its last hidden states. `continues`: for each sequence, does it go on the one
  // before?
  virtual void Add(const Pass& pass, ConstMat hidden, const std::vector<bool>& continues) = 0;
  virtual MetricResults Results() = 0;
};

class MaskedLmCounter : public Counter {
 public:
  MaskedLmCounter(const Model& model, const DataStats& stats) : model_(model) {
    metric_.AddText(stats.text_tokens, stats.bytes);
  }
  void Add(const Pass& pass, ConstMat hidden, const std::vector<bool>&) override {
    const LossSum loss = Loss(model_, pass, hidden, 0, {});
    metric_.Add(loss.loss, loss.correct, pass.batch.rows.size());
  }
  MetricResults Results() override { return metric_.Results(); }

 private:
  const Model& model_;
  MaskedLmMetric metric_;
};

// Token tagging: loss and the decoded label of each word.
class LabelCounter : public Counter {
 public:
  LabelCounter(const Model& model, std::optional<bool> viterbi)
      : model_(model), head_(model.head()), decoder_(model, viterbi), tags_(model.config().labels) {
  }

  void Add(const Pass& pass, ConstMat hidden, const std::vector<bool>& continues) override {
    const Batch& batch = pass.batch;
    const Mat logits = Rows(head_.Logits(pass, hidden), 0, batch.rows.size());
    loss_ += head_.has_chain()
                 ? Loss(model_, pass, hidden, 0, {}).loss
                 : SoftmaxCrossEntropy(logits, batch.targets.data(), 0, pass.arena).loss;
    count_ += logits.rows;
    int64_t i = 0;
    for (int64_t s = 0; s < batch.sequences(); ++s) {
      if (!continues[s]) Flush();
      for (; i < logits.rows && batch.rows[i] < batch.cu_seqlens[s + 1]; ++i) {
        labels_.push_back(batch.targets[i]);
        logits_.insert(logits_.end(), logits.f32(i), logits.f32(i) + logits.cols);
      }
    }
  }

  MetricResults Results() override {
    Flush();
    MetricResults results = tags_.Results();
    results.values.emplace_back("loss", loss_ / count_);
    return results;
  }

 private:
  void Flush() {
    if (labels_.empty()) return;
    const ConstMat logits =
        View(static_cast<const float*>(logits_.data()), labels_.size(), head_.labels());
    std::vector<int> predicted;
    for (const WordTag& tag : decoder_.Decode(logits)) predicted.push_back(tag.label);
    tags_.Add(labels_, predicted);
    labels_.clear(), logits_.clear();
  }

  const Model& model_;
  const Head& head_;
  TagDecoder decoder_;
  TaggingMetric tags_;
  std::vector<int> labels_;    // of the sentence that is being put together
  std::vector<float> logits_;  // [labels_.size(), head_.labels()]
  double loss_ = 0;
  int64_t count_ = 0;
};

// Sequence classification: a text's logits are the means of those of its windows.
class TextCounter : public Counter {
 public:
  TextCounter(const Head& head, const ModelConfig& config)
      : head_(head), config_(config), single_(config.labels), several_(config.labels),
        mean_(config.labels.size()) {}

  void Add(const Pass& pass, ConstMat hidden, const std::vector<bool>& continues) override {
    const Batch& batch = pass.batch;
    const Mat logits = head_.Logits(pass, hidden);
    const size_t width = batch.values.size() / batch.sequences();
    for (int64_t s = 0; s < batch.sequences(); ++s) {
      if (!continues[s]) Flush();
      for (int64_t c = 0; c < logits.cols; ++c) mean_[c] += logits.f32(s)[c];
      ++windows_;
      label_ = batch.targets.empty() ? 0 : batch.targets[s];
      values_.assign(batch.values.begin() + s * width, batch.values.begin() + (s + 1) * width);
    }
  }

  MetricResults Results() override {
    Flush();
    if (config_.problem == Problem::kRegression) return number_.Results();
    const bool single = config_.problem == Problem::kSingleLabel;
    MetricResults results = single ? single_.Results() : several_.Results();
    results.values.emplace_back("loss", loss_ / count_ / (single ? 1 : mean_.size()));
    return results;
  }

 private:
  void Flush() {
    if (windows_ == 0) return;
    for (float& x : mean_) x /= windows_;
    Count();
    ++count_;
    windows_ = 0;
    mean_.assign(mean_.size(), 0);
  }

  // The text whose logits are mean_.
  void Count() {
    const int64_t n = mean_.size();
    const Mat logits = {mean_.data(), 1, n, n, DType::kF32};
    switch (config_.problem) {
      case Problem::kSingleLabel:
        single_.Add(label_, std::max_element(mean_.begin(), mean_.end()) - mean_.begin());
        loss_ += SoftmaxCrossEntropy(logits, &label_, 0, arena_).loss;
        break;
      case Problem::kMultiLabel:
        several_.Add(values_, AtLeast(mean_, config_.reading.threshold));
        loss_ += BinaryCrossEntropy(logits, values_.data(), 0, arena_).loss;
        break;
      case Problem::kRegression: number_.Add(values_[0], mean_[0]); break;
    }
  }

  const Head& head_;
  const ModelConfig& config_;
  ClassificationMetric single_;
  MultiLabelMetric several_;
  RegressionMetric number_;
  Arena arena_;
  // Of the text that is being put together.
  std::vector<float> mean_, values_;
  int32_t label_ = 0;
  int64_t windows_ = 0;
  double loss_ = 0;
  int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<MetricResults> Evaluate(
    Model& model, const ExampleStore& store, const EvaluateOptions& options) {
  std::unique_ptr<Counter> counter;
  if (model.config().head == HeadKind::kMaskedLm) {
    counter = std::make_unique<MaskedLmCounter>(model, store.stats());
  } else if (model.config().head == HeadKind::kSequenceClassification) {
    counter = std::make_unique<TextCounter>(model.head(), model.config());
  } else {
    counter = std::make_unique<LabelCounter>(model, options.viterbi);
  }
  const int64_t examples =
      options.max_examples > 0 ? std::min(options.max_examples, store.size()) : store.size();
  Batch batch;
  std::vector<bool> continues;
  const auto run = [&] {
    if (batch.sequences() == 0) return;
    batch.Pad();
    model.arena().Reset();
    const Pass pass = model.NewPass(batch, options.compute);
    const Mat hidden = model.encoder().Infer(pass);
    counter->Add(pass, hidden, continues);
    batch.Clear();
    continues.clear();
  };
  Example example;
  for (int64_t i = 0; i < examples; ++i) {
    if (options.stop != nullptr && *options.stop)
      return Error(Exit::kInterrupted, "stopped while evaluating");
    RETURN_IF_ERROR(store.Read(i, &example));
    if (options.masker != nullptr) options.masker->Apply(kHeldOut + i, &example);
    if (batch.tokens() + static_cast<int64_t>(example.ids.size()) > options.batch_tokens) run();
    AddExample(example, kHeldOut + i, &batch);
    continues.push_back(example.continues);
  }
  run();
  return counter->Results();
}

}  // namespace cloze
