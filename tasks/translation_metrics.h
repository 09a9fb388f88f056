// BLEU and chrF of generated texts, as sacreBLEU defines them (Post 2018), with one reference each.
#ifndef CLOZE_TASKS_TRANSLATION_METRICS_H_
#define CLOZE_TASKS_TRANSLATION_METRICS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

// Returns the words of a text after mteval-v13a's tokenization, sacreBLEU's default.
std::vector<std::string> Tokenize13a(absl::string_view text);

// BLEU of a corpus, 0 to 100 (Papineni et al. 2002): words of Tokenize13a, up to four in a row, the
// brevity penalty, and sacreBLEU's "exp" smoothing of orders without a match. As there, a corpus
// whose outputs all have fewer than four words scores 0.
struct Bleu {
  static constexpr const char* kSignature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";
  void Add(absl::string_view generated, absl::string_view reference);
  double Score() const;

  std::array<int64_t, 4> right = {}, all = {};  // n-grams that match, and all generated ones
  int64_t words = 0, reference_words = 0;
};

// chrF2 of a corpus, 0 to 100 (Popovic 2015): the F-score, recall counting twice, of runs of one to
// six characters without white space; mean precision and recall of the orders that occur.
struct ChrF {
  static constexpr const char* kSignature = "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no";
  void Add(absl::string_view generated, absl::string_view reference);
  double Score() const;

  std::array<int64_t, 6> right = {}, generated_all = {}, reference_all = {};
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRANSLATION_METRICS_H_
