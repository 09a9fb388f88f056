#include "tasks/tag_decoder.h"

#include <algorithm>
#include <limits>

#include "tasks/scores.h"
#include "tasks/spans.h"

namespace cloze {

TagDecoder::TagDecoder(const Model& model, bool viterbi) : crf_(model.head().has_crf()) {
  const std::vector<std::string>& labels = model.config().labels;
  const int64_t n = labels.size();
  const bool rules = viterbi && IsBio(labels);
  if (!rules && !crf_) return;
  start_.resize(n), between_.resize(n * n), end_.resize(n);
  if (crf_) {
    const Crf crf = model.head().crf(model.params());
    std::copy_n(crf.start, n, start_.data());
    std::copy_n(crf.between, n * n, between_.data());
    std::copy_n(crf.end, n, end_.data());
  }
  if (!rules) return;
  const SpanTags tags(labels);
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < n; ++i) {
    if (!tags.Follows(-1, i)) start_[i] = kNever;
    if (!tags.Follows(i, -1)) end_[i] = kNever;
    for (int j = 0; j < n; ++j) {
      if (!tags.Follows(i, j)) between_[i * n + j] = kNever;
    }
  }
}

std::vector<WordTag> TagDecoder::Decode(ConstMat logits) const {
  const int64_t words = logits.rows, labels = logits.cols;
  std::vector<WordTag> tags(words);
  std::vector<int> best(words);
  const bool sequence = words > 0 && !start_.empty() && Viterbi(logits, crf(), best.data());
  std::vector<float> p(words * labels);
  for (int64_t w = 0; w < words; ++w) {
    if (!sequence)
      best[w] =
          static_cast<int>(std::max_element(logits.f32(w), logits.f32(w) + labels) - logits.f32(w));
    std::copy_n(logits.f32(w), labels, p.data() + w * labels);
    Softmax(p.data() + w * labels, labels);
  }
  if (sequence && crf_) CrfMarginals(logits, crf(), View(p.data(), words, labels));
  for (int64_t w = 0; w < words; ++w) tags[w] = {best[w], p[w * labels + best[w]]};
  return tags;
}

}  // namespace cloze
