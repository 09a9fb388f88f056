// Suggestions for misspelt names.
#ifndef CLOZE_CORE_BASE_SUGGEST_H_
#define CLOZE_CORE_BASE_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

// Returns the candidate nearest to `word` by case-insensitive edit distance (insert, delete,
// replace, swap of neighbours), or "" if none is near.
std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates);

// Returns `; did you mean "x"?` for the nearest candidate, or "" if none is near.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_SUGGEST_H_
