#include "tasks/spans.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {
namespace {

constexpr absl::string_view kPrefixes = "BIESLU";

bool HasType(absl::string_view label) { return label.size() > 2 && label[1] == '-'; }

absl::string_view TypeOf(absl::string_view label) { return HasType(label) ? label.substr(2) : "_"; }

// May `label` be a tag of a scheme? L and U alone may not: they are no one's span tags.
bool IsTag(absl::string_view label) {
  if (label == "O") return true;
  if (HasType(label)) return kPrefixes.find(label[0]) != absl::string_view::npos;
  return label.size() == 1 && kPrefixes.substr(0, 4).find(label[0]) != absl::string_view::npos;
}

}  // namespace

bool IsBio(absl::Span<const std::string> labels) {
  const auto opens = [](const std::string& label) { return label[0] == 'B' || label[0] == 'I'; };
  return std::all_of(labels.begin(), labels.end(), IsTag) &&
         std::any_of(labels.begin(), labels.end(), opens);
}

SpanTags::SpanTags(absl::Span<const std::string> labels) {
  CLOZE_CHECK(IsBio(labels));
  for (const std::string& label : labels) {
    if (label != "O") types_.push_back(std::string(TypeOf(label)));
  }
  std::sort(types_.begin(), types_.end());
  types_.erase(std::unique(types_.begin(), types_.end()), types_.end());
  opened_.resize(types_.size());
  ended_.resize(types_.size());
  for (const std::string& label : labels) {
    Tag tag;
    tag.prefix = label[0] == 'L' ? 'E' : label[0] == 'U' ? 'S' : label[0];
    if (tag.prefix != 'O')
      tag.type = std::lower_bound(types_.begin(), types_.end(), TypeOf(label)) - types_.begin();
    closed_ = closed_ || tag.prefix == 'E' || tag.prefix == 'S';
    if (tag.prefix == 'B') opened_[tag.type] = true;
    if (tag.prefix == 'E') ended_[tag.type] = true;
    tags_.push_back(tag);
  }
}

bool SpanTags::Starts(Tag last, Tag tag) {
  if (tag.prefix == 'O') return false;
  if (tag.prefix == 'B' || tag.prefix == 'S' || tag.type != last.type) return true;
  return last.prefix == 'O' || last.prefix == 'E' || last.prefix == 'S';
}

bool SpanTags::Ends(Tag last, Tag tag) {
  if (last.prefix == 'O') return false;
  if (last.prefix == 'E' || last.prefix == 'S' || tag.type != last.type) return true;
  return tag.prefix == 'O' || tag.prefix == 'B' || tag.prefix == 'S';
}

bool SpanTags::Follows(int from, int to) const {
  const Tag last = from < 0 ? Tag() : tags_[from], tag = to < 0 ? Tag() : tags_[to];
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
    const Tag tag = i < tags.size() ? tags_[tags[i]] : Tag();
    if (Ends(last, tag)) spans.push_back({begin, static_cast<int64_t>(i), last.type});
    if (Starts(last, tag)) begin = i;
    last = tag;
  }
  return spans;
}

std::vector<TagSpan> SpanTags::Strict(absl::Span<const int> tags) const {
  std::vector<TagSpan> spans;
  const int64_t n = tags.size();
  for (int64_t i = 0; i < n;) {
    const Tag first = tags_[tags[i]];
    int64_t end = i + 1;
    if (first.prefix == 'B') {
      while (end < n && tags_[tags[end]].prefix == 'I' && tags_[tags[end]].type == first.type)
        ++end;
      const bool closes =
          end < n && tags_[tags[end]].prefix == 'E' && tags_[tags[end]].type == first.type;
      if (closes) ++end;
      if (closes || !closed_) spans.push_back({i, end, first.type});
    } else if (first.prefix == 'S') {
      spans.push_back({i, end, first.type});
    }
    i = end;
  }
  return spans;
}

}  // namespace cloze
