// An HTML page of the attention maps of a text. It needs no network and no scripts, and text cannot
// become markup.
#ifndef CLOZE_TOOLS_ATTENTION_PAGE_H_
#define CLOZE_TOOLS_ATTENTION_PAGE_H_

#include <string>
#include <vector>

namespace cloze {

struct AttentionMaps {
  std::string model, text;  // for the heading and the title
  std::vector<std::string> tokens = {};
  std::vector<bool> special = {}, second = {};  // for each token; second: of the second text
  int heads = 0;
  // For each layer [heads, tokens, tokens]: the attention of the row's token to the column's.
  std::vector<std::vector<float>> probs = {};
};

// Returns a page with a grid of heat maps, one row per layer, one column per head and one for their
// mean. Each links to a large version with the tokens at its sides and the values as hover texts
// (if there are many cells, the five largest of a row). A checkbox leaves out special tokens: the
// others then share 100 % of a row. Inline SVG, no scripts. The colour follows the square root of
// the probability; values below 0.1 % have the colour of the page.
std::string AttentionPage(AttentionMaps maps);

}  // namespace cloze

#endif  // CLOZE_TOOLS_ATTENTION_PAGE_H_
