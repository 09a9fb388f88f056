// "Did you mean ...?" for names that a user misspelt.
#ifndef CLOZE_CORE_BASE_SUGGEST_H_
#define CLOZE_CORE_BASE_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

// The candidate nearest to `word` by edits (insert, delete, replace, swap of neighbours; case does
// not count), or "" when none is near.
std::string Nearest(absl::string_view word, const std::vector<std::string>& candidates);

// `; did you mean "x"?` of the nearest candidate, or "" when none is near.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_SUGGEST_H_
