// The words that carried an answer.
#ifndef CLOZE_TASKS_INFERENCE_EXPLAINER_H_
#define CLOZE_TASKS_INFERENCE_EXPLAINER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/base/json.h"
#include "tasks/inference/predictor.h"

namespace cloze {

// Leaves out one word of a text after the other and measures how far the probability of the answer
// falls: its effect is P(answer | text) - P(answer | text without the word), for a regression the
// difference of the numbers. A tagger gets <unk> in place of the word, so that the others keep
// their places. All texts pass through the model as in prediction.
class Explainer {
 public:
  // Longer texts are left out in runs of words, so that a text needs at most this many passes.
  static constexpr int64_t kMaxParts = 256;

  // `predictor` must outlive this. kMismatch unless its task has probabilities.
  static absl::StatusOr<Explainer> Create(Predictor* predictor);

  // Adds to answers[i], the one of records[i]:
  //   a label or a number   "explanation": its words in order, as {"text", "start", "end",
  //                         "byte_start", "byte_end", "effect"}; of a pair also "field"
  //   several labels        the same with "effects": {label: effect} for the labels of the answer,
  //                         or the most probable label if there are none
  //   tags                  "explanation" in each entity, or in each word if the labels are no
  //                         spans: the words with the largest effects, at most 5, not below 0.001;
  //                         for words without a text, a list of these lists
  // Skips answers that are errors or empty, and token ids.
  absl::Status Explain(absl::Span<const Record> records, absl::Span<OrderedJson> answers);

  // Adds the members that Explain adds, without content, to an answer of a label, several or a
  // number.
  void AddEmpty(OrderedJson* answer) const;

  // Texts that were longer than kMaxParts words.
  int64_t shortened() const { return shortened_; }

 private:
  explicit Explainer(Predictor* predictor) : predictor_(predictor) {}

  Predictor* predictor_;
  int64_t shortened_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_EXPLAINER_H_
