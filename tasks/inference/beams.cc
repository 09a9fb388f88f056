#include "tasks/inference/beams.h"

#include <algorithm>
#include <cmath>

namespace cloze {

// running_[from] and the token `id`.
struct BeamSearch::Candidate {
  float score;
  int32_t from, id;
};

BeamSearch::BeamSearch(Hypothesis prompt, int beams, double length_penalty,
    std::function<bool(const Hypothesis&)> ends)
    : prompt_(prompt.ids.size()), beams_(beams), length_penalty_(length_penalty),
      ends_(std::move(ends)), running_{std::move(prompt)} {}

std::vector<BeamSearch::Candidate> BeamSearch::BestCandidates(
    absl::Span<const absl::Span<const float>> log_probs) const {
  std::vector<Candidate> best;
  const auto better = [](const Candidate& a, const Candidate& b) { return a.score > b.score; };
  for (size_t i = 0; i < running_.size(); ++i) {
    std::vector<Candidate> all;
    for (size_t id = 0; id < log_probs[i].size(); ++id) {
      all.push_back({running_[i].score + log_probs[i][id], static_cast<int32_t>(i),
          static_cast<int32_t>(id)});
    }
    // The first of equal candidates is taken.
    const auto end = all.begin() + std::min(all.size(), 2 * beams_);
    std::partial_sort(all.begin(), end, all.end(), [&](const Candidate& a, const Candidate& b) {
      return a.score != b.score ? a.score > b.score : a.id < b.id;
    });
    best.insert(best.end(), all.begin(), end);
  }
  std::stable_sort(best.begin(), best.end(), better);
  best.resize(std::min(best.size(), 2 * beams_));
  return best;
}

double BeamSearch::NormedScore(double score, int64_t tokens) const {
  return score / std::pow(static_cast<double>(tokens), length_penalty_);
}

void BeamSearch::AddEnded(Hypothesis hypothesis) {
  const auto at = std::find_if(ended_.begin(), ended_.end(),
      [&](const Hypothesis& other) { return other.score < hypothesis.score; });
  ended_.insert(at, std::move(hypothesis));
  if (ended_.size() > beams_) ended_.pop_back();
}

void BeamSearch::Advance(absl::Span<const absl::Span<const float>> log_probs) {
  const std::vector<Candidate> candidates = BestCandidates(log_probs);
  const auto tokens = static_cast<int64_t>(running_.front().ids.size() + 1 - prompt_);
  std::vector<Hypothesis> next;
  for (size_t i = 0; i < candidates.size(); ++i) {
    Hypothesis h = running_[candidates[i].from];
    h.ids.push_back(candidates[i].id);
    h.score = candidates[i].score;
    if (!ends_(h)) {
      if (next.size() < beams_) next.push_back(std::move(h));
    } else if (i < beams_) {
      h.score = static_cast<float>(NormedScore(h.score, tokens));
      AddEnded(std::move(h));
    }
  }
  running_ = std::move(next);
  const bool full = ended_.size() == beams_;
  if (full && NormedScore(running_.empty() ? -INFINITY : running_.front().score, tokens) <=
                  ended_.back().score)
    running_.clear();
}

}  // namespace cloze
