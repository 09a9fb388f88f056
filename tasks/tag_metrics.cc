#include "tasks/tag_metrics.h"

#include <algorithm>
#include <utility>

#include "tasks/tags.h"
#include "tasks/wrong_texts.h"

namespace cloze {
namespace {

class TagMetrics : public TextEvaluation {
 public:
  // `tokenizer` may be null; `last`: words are labelled at their last pieces.
  TagMetrics(const Model& model, const std::vector<std::string>& unseen, bool viterbi, int errors,
      const Tokenizer* tokenizer, bool last)
      : TextEvaluation(model), decoder_(model, viterbi), metric_(model.config().labels, unseen),
        wrong_(errors), tokenizer_(tokenizer), last_(last) {}

 private:
  // Without weights of labels, and divided by the number of words; with a CRF it is the loss of
  // whole windows. Words whose label the model does not have, and with a CRF their windows, have no
  // loss.
  LossSum Loss(const Pass& pass, Mat logits, int64_t* words) const override {
    const bool crf = model_.head().has_crf();
    const Batch& batch = pass.batch;
    Batch known;
    known.cu_seqlens = batch.cu_seqlens;
    const auto has = [&](int32_t target) { return target < logits.cols; };
    const auto first = batch.targets.begin();
    for (int64_t s = 0, row = 0, end; s < batch.sequences(); ++s, row = end) {
      for (end = row; end < logits.rows && batch.rows[end] < batch.cu_seqlens[s + 1];) ++end;
      if (crf && !std::all_of(first + row, first + end, has)) continue;
      for (int64_t r = row; r < end; ++r) {
        if (!has(batch.targets[r])) continue;
        std::copy_n(logits.f32(r), logits.cols, logits.f32(known.rows.size()));
        known.rows.push_back(batch.rows[r]);
        known.targets.push_back(batch.targets[r]);
      }
    }
    const Pass kept = {pass.params, pass.matmul, pass.arena, known};
    const Mat rows = Rows(logits, 0, known.rows.size());
    *words = rows.rows;
    return crf ? model_.head().CrfLoss(kept, rows, 0)
               : SoftmaxCrossEntropy(rows, known.targets.data(), 0, pass.arena);
  }
  void AddText(const TextLogits& text) override {
    std::vector<int> labels, predicted, further;
    for (const Example& window : text.windows) {
      labels.insert(labels.end(), window.labels.begin(), window.labels.end());
      further.insert(further.end(), window.further.begin(), window.further.end());
    }
    const std::vector<WordTag> tags = decoder_.Decode(text.logits);
    for (const WordTag& tag : tags) predicted.push_back(tag.label);
    if (!labels.empty()) metric_.Add(labels, predicted, further);
    KeepIfWrong(text, tags);
  }
  // Keeps the wrong word of the highest score.
  void KeepIfWrong(const TextLogits& text, absl::Span<const WordTag> tags) {
    ++texts_;
    WrongText wrong;
    int64_t word = 0;
    for (const Example& window : text.windows) {
      for (size_t i = 0; i < window.labels.size(); ++i, ++word) {
        const WordTag& tag = tags[word];
        const bool surer = wrong.word == 0 || tag.score > wrong.score;
        if (tag.label == window.labels[i] || !surer || !wrong_.Keeps(tag.score)) continue;
        const int64_t pieces = window.further[i] + 1,
                      begin = last_ ? window.rows[i] + 1 - pieces : window.rows[i];
        const auto first = window.ids.begin() + begin;
        wrong = {texts_, word + 1, window.labels[i], tag.label, tag.score, window.ids,
            {first, first + pieces}};
      }
    }
    if (wrong.word > 0) wrong_.Add(std::move(wrong));
  }
  MetricResults Count() override {
    MetricResults results = metric_.Results();
    results.values.emplace_back("loss", MeanLoss());
    if (wrong_.enabled())
      results.tables.emplace_back("errors", wrong_.ToJson(model_.config().labels, tokenizer_));
    return results;
  }

  TagDecoder decoder_;
  TaggingMetric metric_;
  WrongTexts wrong_;
  const Tokenizer* tokenizer_;
  bool last_;
  int64_t texts_ = 0;
};

}  // namespace

std::unique_ptr<Evaluation> NewTagMetrics(const Model& model,
    const std::vector<std::string>& unseen, bool viterbi, int errors, const Tokenizer* tokenizer,
    bool last) {
  return std::make_unique<TagMetrics>(model, unseen, viterbi, errors, tokenizer, last);
}

}  // namespace cloze
