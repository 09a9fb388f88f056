// Attention maps of a text, by layer and head, as one page.
#ifndef CLOZE_TOOLS_ATTENTION_PAGE_H_
#define CLOZE_TOOLS_ATTENTION_PAGE_H_

#include <string>
#include <vector>

namespace cloze {

struct AttentionMaps {
  std::string text;
  std::vector<std::string> tokens;
  int heads = 0;
  std::vector<std::vector<float>>
      probs;  // for each layer [heads, tokens, tokens]: the row looks, the column is looked at
};

// A grid of small heat maps, a row for each layer and a column for each head; each is a link to
// itself large, with the tokens at its sides. Inline SVG, no script; deeper colour is more
// attention, by its square root, and below 0.1 % there is none.
std::string AttentionPage(const AttentionMaps& maps);

}  // namespace cloze

#endif  // CLOZE_TOOLS_ATTENTION_PAGE_H_
