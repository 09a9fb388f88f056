#include "tasks/masker.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cloze {
namespace {

// Streams of the generator: numbers of each token, of each attempt to place a span, and one of the
// sequence, which decides if it is causal.
constexpr uint32_t kTokenStream = 0, kSpanStream = 1, kCausalStream = 2;
constexpr int64_t kAttemptsPerWord = 8;

// Distribution function of the geometric distribution with this mean, truncated behind `longest`.
std::vector<float> GeometricCdf(double mean, int longest) {
  std::vector<double> sums(longest);
  double sum = 0, p = 1 / mean;
  for (double& s : sums) s = sum += p, p *= 1 - 1 / mean;
  std::vector<float> cdf;
  for (const double s : sums) cdf.push_back(static_cast<float>(s / sum));
  return cdf;
}

}  // namespace

float MaskShare(const MaskedLmSpec& spec, double done) {
  if (!spec.has_final_mask_share()) return spec.mask_share();
  return static_cast<float>((1 - done) * spec.mask_share() + done * spec.final_mask_share());
}

float CausalShare(const MaskedLmSpec& spec, double done) {
  return done >= spec.causal_until()
             ? 0
             : static_cast<float>((1 - done / spec.causal_until()) * spec.causal_share());
}

absl::StatusOr<Masker> Masker::Create(
    const MaskedLmSpec& spec, const Tokenizer& tokenizer, uint64_t seed) {
  Masker masker(spec, seed);
  masker.mask_ = tokenizer.special().mask;
  if (masker.mask_ < 0)
    return Error(
        Exit::kSpec, "the vocabulary has no <mask> (or [MASK]) token, masked_lm needs one");
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    masker.special_.push_back(tokenizer.is_special(id));
    masker.continues_.push_back(tokenizer.ContinuesWord(id));
    if (!masker.special_.back()) masker.ordinary_.push_back(id);
  }
  if (masker.ordinary_.empty()) return Error(Exit::kSpec, "the vocabulary has only special tokens");
  masker.span_cdf_ = GeometricCdf(spec.mean_span(), spec.longest_span());
  return masker;
}

void Masker::Apply(uint64_t example, double done, Example* e) const {
  e->rows.clear();
  e->labels.clear();
  e->causal = Philox::Uniform(philox_(example, 0, kCausalStream)[0]) < CausalShare(spec_, done);
  if (e->causal) return PredictNext(e);
  const int64_t ordinary =
      std::count_if(e->ids.begin(), e->ids.end(), [&](int32_t id) { return !special_[id]; });
  if (ordinary == 0) return;
  const auto count = std::max<int64_t>(1, std::lround(MaskShare(spec_, done) * ordinary));
  std::vector<Pick> picks = spec_.unit() == MaskedLmSpec::SPAN ? PickSpans(example, e->ids, count)
                                                               : PickWords(example, e->ids, count);
  std::sort(picks.begin(), picks.end());
  for (const auto& [row, decider] : picks) {
    e->rows.push_back(row);
    e->labels.push_back(e->ids[row]);
    const float u =
        Philox::Uniform(philox_(example, static_cast<uint32_t>(decider), kTokenStream)[1]);
    if (u < spec_.keep_share()) continue;
    const uint32_t word = philox_(example, static_cast<uint32_t>(row), kTokenStream)[2];
    e->ids[row] = u < spec_.keep_share() + spec_.random_share()
                      ? ordinary_[Philox::Below(word, ordinary_.size())]
                      : mask_;
  }
}

void Masker::PredictNext(Example* e) const {
  for (int32_t i = 0; i + 1 < static_cast<int32_t>(e->ids.size()); ++i) {
    if (special_[e->ids[i + 1]]) continue;
    e->rows.push_back(i);
    e->labels.push_back(e->ids[i + 1]);
  }
}

std::vector<Masker::Word> Masker::Words(const std::vector<int32_t>& ids) const {
  std::vector<Word> words;
  for (int32_t i = 0; i < static_cast<int32_t>(ids.size()); ++i) {
    if (special_[ids[i]]) continue;
    const bool continues = spec_.unit() != MaskedLmSpec::TOKEN && continues_[ids[i]];
    if (words.empty() || words.back().end != i || !continues) words.push_back({i, i});
    ++words.back().end;
  }
  return words;
}

std::vector<Masker::Pick> Masker::PickWords(
    uint64_t example, const std::vector<int32_t>& ids, int64_t count) const {
  std::vector<Word> words = Words(ids);
  std::vector<std::pair<uint32_t, size_t>> order;
  for (size_t i = 0; i < words.size(); ++i) {
    order.emplace_back(philox_(example, static_cast<uint32_t>(words[i].begin), kTokenStream)[0], i);
  }
  std::sort(order.begin(), order.end());
  const auto fits = [&](const auto& entry) { return words[entry.second].size() <= count; };
  if (std::none_of(order.begin(), order.end(), fits)) count = words[order.front().second].size();
  std::vector<Pick> picks;
  for (const auto& [random, i] : order) {
    if (words[i].size() > count) continue;
    count -= words[i].size();
    for (int32_t row = words[i].begin; row < words[i].end; ++row) picks.push_back({row, row});
  }
  return picks;
}

std::vector<Masker::Pick> Masker::PickSpans(
    uint64_t example, const std::vector<int32_t>& ids, int64_t count) const {
  const std::vector<Word> words = Words(ids);
  std::vector<bool> taken(words.size());
  std::vector<Pick> picks;
  for (int64_t attempt = 0, n = words.size(); count > 0 && attempt < kAttemptsPerWord * n;
       ++attempt) {
    const Philox::Words b = philox_(example, static_cast<uint32_t>(attempt), kSpanStream);
    const auto length =
        std::upper_bound(span_cdf_.begin(), span_cdf_.end() - 1, Philox::Uniform(b[0]));
    const int64_t first = Philox::Below(b[1], n),
                  end = std::min<int64_t>(first + 1 + (length - span_cdf_.begin()), n);
    for (int64_t w = first; w < end; ++w) {
      const bool adjacent = w == first || words[w].begin == words[w - 1].end;
      if (taken[w] || !adjacent || (words[w].size() > count && !picks.empty())) break;
      taken[w] = true;
      count -= words[w].size();
      for (int32_t row = words[w].begin; row < words[w].end; ++row)
        picks.push_back({row, words[first].begin});
    }
  }
  return picks;
}

std::vector<Example> SplitSequence(const Example& example, int64_t max_tokens, bool sep) {
  const std::vector<int32_t>& ids = example.ids;
  if (static_cast<int64_t>(ids.size()) <= max_tokens) return {example};
  const int64_t around = 1 + sep, inner = ids.size() - around, room = max_tokens - around;
  const int64_t count = (inner + room - 1) / room;
  std::vector<Example> pieces(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto begin = ids.begin() + 1 + inner * i / count,
               end = ids.begin() + 1 + inner * (i + 1) / count;
    pieces[i].ids.push_back(ids.front());
    pieces[i].ids.insert(pieces[i].ids.end(), begin, end);
    if (sep) pieces[i].ids.push_back(ids.back());
    pieces[i].second = pieces[i].ids.size();
  }
  return pieces;
}

}  // namespace cloze
