#include "core/base/suggest.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace cloze {
namespace {

// Longer names are not compared, which bounds the time for hostile input.
constexpr size_t kMaxLength = 100;

// Returns the edit distance, in which a swap of two neighbours is one edit.
int EditDistance(const std::string& a, const std::string& b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kMaxLength) return "";
  const std::string lower = absl::AsciiStrToLower(word);
  std::string best;
  int best_distance = std::max<int>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLength) continue;
    const std::string other = absl::AsciiStrToLower(candidate);
    int distance = EditDistance(lower, other);
    if (lower.size() >= 3 && absl::string_view(other).substr(0, lower.size()) == lower)
      distance = std::min(distance, 1);
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?");
}

}  // namespace cloze
