#include "tasks/evaluate.h"

#include <algorithm>

#include "tasks/feed.h"
#include "tasks/tag_decoder.h"

namespace cloze {
namespace {

// Numbers of held-out examples start here, so that their masks differ from those of training.
constexpr uint64_t kHeldOut = uint64_t{1} << 62;

// What the three tasks count.
class Counter {
 public:
  virtual ~Counter() = default;
  // A batch with its last hidden states. `continues`: for each sequence, does it go on the one before?
  virtual void Add(const Step& step, ConstMat hidden, const std::vector<bool>& continues) = 0;
  virtual MetricResults Results() = 0;
};

class MaskedLmCounter : public Counter {
 public:
  MaskedLmCounter(const Head& head, const DataStats& stats) : head_(head) { metric_.AddText(stats.text_tokens, stats.bytes); }
  void Add(const Step& step, ConstMat hidden, const std::vector<bool>&) override {
    const LossSum loss = head_.Loss(step, hidden, 0, {});
    metric_.Add(loss.loss, loss.correct, step.batch.rows.size());
  }
  MetricResults Results() override { return metric_.Results(); }

 private:
  const Head& head_;
  MaskedLmMetric metric_;
};

// Both labelled tasks: loss and the best label of each target.
class LabelCounter : public Counter {
 public:
  LabelCounter(const Model& model, std::optional<bool> viterbi)
      : head_(model.head()), classes_(model.config().labels), tags_(model.config().labels) {
    if (model.config().head == HeadKind::kTokenTagging) decoder_.emplace(model, viterbi);
  }

  void Add(const Step& step, ConstMat hidden, const std::vector<bool>& continues) override {
    const Batch& batch = step.batch;
    const Mat logits = Rows(head_.Logits(step, hidden, batch.rows), 0, batch.rows.size());
    loss_ +=
        head_.has_chain() ? head_.Loss(step, hidden, 0, {}).loss : SoftmaxCrossEntropy(logits, batch.targets.data(), 0, step.arena).loss;
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
    MetricResults results = decoder_.has_value() ? tags_.Results() : classes_.Results();
    results.values.emplace_back("loss", loss_ / count_);
    return results;
  }

 private:
  void Flush() {
    const int64_t n = labels_.size();
    if (n == 0) return;
    const ConstMat logits = View(static_cast<const float*>(logits_.data()), n, head_.labels());
    if (decoder_.has_value()) {
      std::vector<int> predicted;
      for (const WordTag& tag : decoder_->Decode(logits)) predicted.push_back(tag.label);
      tags_.Add(labels_, predicted);
    }
    for (int64_t i = 0; !decoder_.has_value() && i < n; ++i)
      classes_.Add(labels_[i], std::max_element(logits.f32(i), logits.f32(i) + logits.cols) - logits.f32(i));
    labels_.clear(), logits_.clear();
  }

  const Head& head_;
  std::optional<TagDecoder> decoder_;  // of a tagger
  ClassificationMetric classes_;
  TaggingMetric tags_;
  std::vector<int> labels_;    // of the sentence that is being put together
  std::vector<float> logits_;  // [labels_.size(), head_.labels()]
  double loss_ = 0;
  int64_t count_ = 0;
};

}  // namespace

absl::StatusOr<MetricResults> Evaluate(Model& model, const ExampleStore& store, const EvaluateOptions& options) {
  std::unique_ptr<Counter> counter;
  if (model.config().head == HeadKind::kMaskedLm) {
    counter = std::make_unique<MaskedLmCounter>(model.head(), store.stats());
  } else {
    counter = std::make_unique<LabelCounter>(model, options.viterbi);
  }
  const int64_t examples = options.max_examples > 0 ? std::min(options.max_examples, store.size()) : store.size();
  Batch batch;
  std::vector<bool> continues;
  const auto run = [&] {
    if (batch.sequences() == 0) return;
    batch.Pad();
    model.arena().Reset();
    const Step step = model.NewStep(batch, options.compute);
    const Mat hidden = model.encoder().Infer(step, [](int, ConstMat) {});
    counter->Add(step, hidden, continues);
    batch.Clear();
    continues.clear();
  };
  Example example;
  for (int64_t i = 0; i < examples; ++i) {
    if (options.stop != nullptr && *options.stop) return Error(Exit::kInterrupted, "stopped while evaluating");
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
