// Beam search over the continuations of one prompt, as in transformers' generate.
#ifndef CLOZE_TASKS_INFERENCE_BEAMS_H_
#define CLOZE_TASKS_INFERENCE_BEAMS_H_

#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "tasks/inference/sampling.h"

namespace cloze {

// A prompt and what follows it.
struct Hypothesis {
  std::vector<int32_t> ids = {};
  std::vector<int32_t> rows = {};  // rows of the cache, for the ids that have passed the model
  // With an encoder: the source, and the first of its rows in the cache.
  const std::vector<int32_t>* source = nullptr;
  int32_t source_row = 0;
  float score = 0;  // sum of the logarithms of the new tokens' probabilities
};

// Keeps the best `beams` running hypotheses, and the best `beams` ended ones by score / (new tokens
// ^ length_penalty). Ends when there are `beams` ended ones and no running one would be better than
// the worst of them if it ended as it is.
class BeamSearch {
 public:
  // `ends`: true if a hypothesis is complete. 1 <= beams.
  BeamSearch(Hypothesis prompt, int beams, double length_penalty,
      std::function<bool(const Hypothesis&)> ends);

  // The hypotheses that need logits; none when the search has ended.
  const std::vector<Hypothesis>& running() const { return running_; }
  std::vector<Hypothesis>& running() { return running_; }
  // Continues running()[i], whose next tokens have log_probs[i] [vocab].
  void Advance(absl::Span<const absl::Span<const float>> log_probs);
  // The best hypothesis that has ended. Requires that the search has ended.
  const Hypothesis& best() const { return ended_.front(); }

 private:
  struct Candidate;
  std::vector<Candidate> BestCandidates(absl::Span<const absl::Span<const float>> log_probs) const;
  double NormedScore(double score, int64_t tokens) const;
  void AddEnded(Hypothesis hypothesis);

  size_t prompt_, beams_;
  double length_penalty_;
  std::function<bool(const Hypothesis&)> ends_;
  std::vector<Hypothesis> running_, ended_;  // by descending score; ended_: with length penalty
};

}  // namespace cloze

#endif  // CLOZE_TASKS_INFERENCE_BEAMS_H_
