// The choice of the next token from logits, as in transformers' generate.
#ifndef CLOZE_TASKS_INFERENCE_SAMPLING_H_
#define CLOZE_TASKS_INFERENCE_SAMPLING_H_

#include <cstdint>

#include "absl/types/span.h"

namespace cloze {

struct SamplingRule {
  double temperature = 0;  // 0: the likeliest token
  int top_k = 0;           // only the k likeliest tokens; 0: all
  double top_p = 1;        // only the fewest likeliest tokens with at least this total probability
};

// Divides positive scores [vocab] of `tokens` by `penalty` and multiplies negative ones by it, once
// for each different token (Keskar et al. 2019).
void PenalizeRepetition(absl::Span<const int32_t> tokens, double penalty, absl::Span<float> scores);

// Sets the scores [vocab] of tokens that would repeat a sequence of n of `tokens`, after the last
// n - 1, to minus infinity. Requires n > 0.
void BanRepeatedSequences(absl::Span<const int32_t> tokens, int64_t n, absl::Span<float> scores);

// Replaces logits [vocab] by the logarithms of their softmax.
void LogSoftmax(absl::Span<float> logits);

// Replaces logits [vocab] by probabilities: divides them by the temperature, which must not be 0,
// then keeps those of top_k, then those of top_p. Of equal logits, the ones of smaller ids count as
// likelier.
void NextProbabilities(const SamplingRule& rule, absl::Span<float> logits);

// Returns the token that `uniform`, in [0, 1), selects from probabilities [vocab] in the order of
// the ids.
int32_t PickToken(absl::Span<const float> probabilities, double uniform);

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_SAMPLING_H_
