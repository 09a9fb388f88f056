#include "tasks/tags.h"

#include <algorithm>
#include <limits>
#include <set>

#include "tasks/probabilities.h"
#include "tasks/task.h"

namespace cloze {
namespace {

constexpr absl::string_view kPrefixes = "BIESLU";

bool HasType(absl::string_view label) { return label.size() > 2 && label[1] == '-'; }

std::string TypeOf(const std::string& label) { return HasType(label) ? label.substr(2) : "_"; }

// True for B and I, alone or with "-".
bool IsIobTag(absl::string_view tag) {
  return !tag.empty() && (tag[0] == 'B' || tag[0] == 'I') && (tag.size() == 1 || tag[1] == '-');
}

// True if the tag before tag i, which is a B or I, has the same type.
bool PreviousHasSameType(const std::vector<std::string>& tags, size_t i) {
  return i > 0 && IsIobTag(tags[i - 1]) &&
         tags[i - 1].compare(1, std::string::npos, tags[i], 1) == 0;
}

}  // namespace

bool IsBioTag(const std::string& label) {
  if (label == "O") return true;
  if (HasType(label)) return kPrefixes.find(label[0]) != absl::string_view::npos;
  return label.size() == 1 && kPrefixes.substr(0, 4).find(label[0]) != absl::string_view::npos;
}

bool IsBio(absl::Span<const std::string> labels) {
  const auto opens = [](const std::string& label) { return label[0] == 'B' || label[0] == 'I'; };
  return std::all_of(labels.begin(), labels.end(), IsBioTag) &&
         std::any_of(labels.begin(), labels.end(), opens);
}

SpanTags::SpanTags(absl::Span<const std::string> labels, size_t known) {
  CLOZE_CHECK(IsBio(labels));
  std::set<std::string> types;
  for (const std::string& label : labels) {
    if (label != "O") types.insert(TypeOf(label));
  }
  types_.assign(types.begin(), types.end());
  opened_.resize(types_.size());
  ended_.resize(types_.size());
  for (const std::string& label : labels) {
    Tag& tag = tags_.emplace_back();
    tag.prefix = label[0] == 'L' ? 'E' : label[0] == 'U' ? 'S' : label[0];
    if (tag.prefix != 'O')
      tag.type = std::lower_bound(types_.begin(), types_.end(), TypeOf(label)) - types_.begin();
    closed_ = closed_ || (tags_.size() <= known && (tag.prefix == 'E' || tag.prefix == 'S'));
    if (tag.prefix == 'B') opened_[tag.type] = true;
    if (tag.prefix == 'E') ended_[tag.type] = true;
  }
}

bool SpanTags::Breaks(Tag last, Tag tag) {
  const auto in = [](absl::string_view set, Tag t) { return set.find(t.prefix) != set.npos; };
  return tag.type != last.type || in("OES", last) || in("OBS", tag);
}

bool SpanTags::Follows(int from, int to) const {
  const Tag last = At(from), tag = At(to);
  const bool inside = last.prefix == 'B' || last.prefix == 'I',
             goes_on = tag.prefix == 'I' || tag.prefix == 'E';
  if (inside && goes_on && tag.type == last.type) return true;
  if (inside && ended_[last.type]) return false;
  return !goes_on || !opened_[tag.type];
}

std::vector<TagSpan> SpanTags::Lenient(absl::Span<const int> tags) const {
  std::vector<TagSpan> spans;
  Tag last;
  int64_t begin = 0;
  for (size_t i = 0; i <= tags.size(); ++i) {
    const Tag tag = At(i < tags.size() ? tags[i] : -1);
    const bool breaks = Breaks(last, tag);
    if (breaks && last.prefix != 'O') spans.push_back({begin, static_cast<int64_t>(i), last.type});
    if (breaks) begin = i;
    last = tag;
  }
  return spans;
}

std::vector<TagSpan> SpanTags::Strict(absl::Span<const int> tags) const {
  std::vector<TagSpan> spans;
  const int64_t n = tags.size();
  for (int64_t i = 0, end; i < n; i = end) {
    const Tag first = tags_[tags[i]];
    const auto next_is = [&](char prefix) {
      return end < n && tags_[tags[end]].prefix == prefix && tags_[tags[end]].type == first.type;
    };
    end = i + 1;
    bool whole = first.prefix == 'S';
    if (first.prefix == 'B') {
      while (next_is('I')) ++end;
      whole = next_is('E') || !closed_;
      end += next_is('E');
    }
    if (whole) spans.push_back({i, end, first.type});
  }
  return spans;
}

void Iob1Finder::Add(const std::vector<std::string>& tags) {
  for (size_t i = 0; i < tags.size(); ++i) {
    if (tags[i] == "O") continue;
    const bool follows = IsIobTag(tags[i]) && PreviousHasSameType(tags, i);
    other_ |= !IsIobTag(tags[i]) || (tags[i][0] == 'B' && !follows);
    b_ |= tags[i][0] == 'B';
    opened_by_i_ |= tags[i][0] == 'I' && !follows;
  }
}

void Iob1ToIob2(std::vector<std::string>* tags) {
  for (size_t i = 0; i < tags->size(); ++i) {
    if (IsIobTag((*tags)[i]) && !PreviousHasSameType(*tags, i)) (*tags)[i][0] = 'B';
  }
}

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

std::vector<WordTag> TagDecoder::Decode(ConstMat logits, bool alone) const {
  const int64_t words = logits.rows, labels = logits.cols;
  const Crf crf = {start_.data(), between_.data(), end_.data()};
  std::vector<int> best(words);
  const bool sequence = words > 0 && !alone && !start_.empty() && Viterbi(logits, crf, best.data());
  std::vector<float> p(words * labels);
  for (int64_t w = 0; w < words; ++w) {
    std::copy_n(logits.f32(w), labels, p.data() + w * labels);
    Softmax(p.data() + w * labels, labels);
    if (!sequence)
      best[w] = static_cast<int>(BestIndex({logits.f32(w), static_cast<size_t>(labels)}));
  }
  if (sequence && crf_) CrfMarginals(logits, crf, View(p.data(), words, labels));
  std::vector<WordTag> tags;
  for (int64_t w = 0; w < words; ++w) tags.push_back({best[w], p[w * labels + best[w]]});
  return tags;
}

}  // namespace cloze
