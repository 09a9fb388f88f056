// An HTML page of the attention maps of a text.
#ifndef CLOZE_TOOLS_ATTENTION_PAGE_H_
#define CLOZE_TOOLS_ATTENTION_PAGE_H_

#include <string>
#include <vector>

namespace cloze {

struct AttentionMaps {
  std::string text;
  std::vector<std::string> tokens;
  int heads = 0;
  // For each layer [heads, tokens, tokens]: the attention of the row's token to the column's.
  std::vector<std::vector<float>> probs;
};

// Returns a page with a grid of heat maps, one row per layer and one column per head. Each links to
// a large version with the tokens at its sides. Inline SVG, no scripts. The colour follows the
// square root of the probability; values below 0.1 % stay white.
std::string AttentionPage(const AttentionMaps& maps);

}  // namespace cloze

#endif  // CLOZE_TOOLS_ATTENTION_PAGE_H_
