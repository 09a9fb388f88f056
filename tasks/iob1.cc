#include "tasks/iob1.h"

#include "absl/strings/string_view.h"

namespace cloze {
namespace {

bool IsSpanTag(absl::string_view tag) {
  return !tag.empty() && (tag[0] == 'B' || tag[0] == 'I') && (tag.size() == 1 || tag[1] == '-');
}

// True if the tag before tag i, which is a B or I, has the same type.
bool FollowsItsType(const std::vector<absl::string_view>& tags, size_t i) {
  return i > 0 && IsSpanTag(tags[i - 1]) && tags[i - 1].substr(1) == tags[i].substr(1);
}

}  // namespace

void Iob1Finder::Add(absl::Span<const std::string> tags) {
  const std::vector<absl::string_view> views(tags.begin(), tags.end());
  for (size_t i = 0; i < views.size(); ++i) {
    if (views[i] == "O") continue;
    const bool follows = IsSpanTag(views[i]) && FollowsItsType(views, i);
    if (!IsSpanTag(views[i]) || (views[i][0] == 'B' && !follows)) other_ = true;
    b_ += views[i][0] == 'B';
    opened_by_i_ += views[i][0] == 'I' && !follows;
  }
}

void Iob1ToIob2(std::vector<std::string>* tags) {
  const std::vector<std::string> old = *tags;
  const std::vector<absl::string_view> views(old.begin(), old.end());
  for (size_t i = 0; i < views.size(); ++i) {
    if (IsSpanTag(views[i]) && !FollowsItsType(views, i)) (*tags)[i][0] = 'B';
  }
}

}  // namespace cloze
