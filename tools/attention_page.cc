#include "tools/attention_page.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/text.h"
#include "tools/html.h"

namespace cloze {
namespace {

constexpr int kLevels = 16;            // colours; level 0 is that of the page
constexpr int kCell = 20;              // size of a cell in large maps, in SVG units
constexpr int kLetters = 14;           // longest token name in large maps
constexpr int64_t kMaxHover = 1e5;     // cells on a page with a hover text for each of them
constexpr size_t kMaxHoverValues = 5;  // values in the hover text of a row
constexpr float kMin = 0.001f;         // probability of level 1
constexpr char kPageStyle[] = R"(
:root { color-scheme: light dark; --page: #fff; --ink: #1b2430; --quiet: #4a5868;
  --line: #c9d3de; --second: #b02a00; --mark: #d9480f; }
body { margin: 1.2em; font: 14px/1.45 system-ui, sans-serif; color: var(--ink);
  background: var(--page); }
h1 { font-size: 1.25em; margin: 0 0 .3em; overflow-wrap: anywhere; }
p { margin: .3em 0 .8em; max-width: 62em; }
a { color: inherit; }
.tokens span { display: inline-block; margin: 0 .25em .25em 0; padding: 0 .35em;
  border: 1px solid var(--line); border-radius: 3px; font-family: ui-monospace, monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.tokens .second { color: var(--second); border-color: var(--second); }
.legend i { font-style: normal; white-space: nowrap; }
.legend span { display: inline-block; width: 1.1em; height: 1.1em; margin: 0 .3em 0 .9em;
  border: 1px solid var(--line); vertical-align: -.2em; }
.grid { display: grid; gap: 5px; max-width: 1500px; align-items: center; }
.grid b { text-align: center; font-weight: 600; color: var(--quiet); }
.grid a { display: block; border: 1px solid var(--line); line-height: 0; }
.grid a:hover, .grid a:focus { border-color: var(--mark); outline: 1px solid var(--mark); }
.grid svg { width: 100%; height: auto; }
.large { display: none; position: fixed; inset: 0; overflow: auto; padding: 1em 2em;
  background: var(--page); }
.large:target { display: block; }
.large svg { display: block; height: min(84vh, 94vw); max-width: 94vw; margin-top: .6em; }
.large a, .large label { margin-right: 1.2em; }
label { cursor: pointer; }
.large label { text-decoration: underline dotted; }
#words:checked ~ * .all, #words:not(:checked) ~ * .words { display: none; }
text { font: 13px ui-monospace, monospace; fill: var(--ink); }
text.second { fill: var(--second); }
.frame { fill: none; stroke: var(--line); }
.hover { fill: transparent; }
.hover:hover { stroke: var(--mark); stroke-width: .08; }
)";
// The part of the dark mode beside the colours of the levels.
constexpr char kDark[] =
    ":root { --page: #10161d; --ink: #e3e9f0; --quiet: #9fb0c3; --line: #3a4756;\n"
    "  --second: #ffa07a; --mark: #ff8a4c; }\n";

std::string MapId(int layer, int head) { return absl::StrCat("l", layer + 1, "h", head + 1); }
// Head `heads` is the mean of the others.
std::string MapName(int layer, int head, int heads) {
  return absl::StrCat(
      "Layer ", layer + 1, head == heads ? ", mean" : absl::StrCat(", head ", head + 1));
}

int LevelOf(float p) {
  if (!(p >= kMin)) return 0;
  return std::clamp(static_cast<int>(std::lround(std::sqrt(p) * (kLevels - 1))), 1, kLevels - 1);
}

// Returns rules for the colours of the levels, between those of level 0 and of the last.
std::string Colours(const int (&from)[3], const int (&to)[3]) {
  std::string rules;
  for (int level = 1; level < kLevels; ++level) {
    const auto mix = [&](int i) {
      return std::lround(from[i] + (to[i] - from[i]) * double(level) / (kLevels - 1));
    };
    const std::string colour = absl::StrCat("rgb(", mix(0), ",", mix(1), ",", mix(2), ")");
    absl::StrAppend(&rules, ".c", level, " { fill: ", colour, "; background: ", colour, "; }\n");
  }
  return rules;
}

// Returns a map without the rows and columns of special tokens; the rest of a row sums to 1.
std::vector<float> WithoutSpecial(const float* p, const std::vector<bool>& special) {
  const size_t n = special.size();
  std::vector<float> rest(n * n);
  for (size_t y = 0; y < n; ++y) {
    double sum = 0;
    for (size_t x = 0; x < n; ++x) sum += special[x] ? 0 : p[y * n + x];
    for (size_t x = 0; x < n && sum > 0 && !special[y]; ++x)
      rest[y * n + x] = special[x] ? 0 : static_cast<float>(p[y * n + x] / sum);
  }
  return rest;
}

// Returns an SVG symbol of a map, in units of cells: one path per level, one bar per run of equal
// cells in a row.
std::string Map(const float* p, int64_t n, const std::string& id) {
  std::vector<std::string> paths(kLevels);
  for (int64_t y = 0; y < n; ++y) {
    for (int64_t x = 0, end; x < n; x = end) {
      const int level = LevelOf(p[y * n + x]);
      for (end = x + 1; end < n && LevelOf(p[y * n + end]) == level;) ++end;
      if (level > 0)
        absl::StrAppend(&paths[level], "M", x, " ", y, "h", end - x, "v1h-", end - x, "z");
    }
  }
  std::string out = absl::StrCat("<symbol id=\"", id, "\" viewBox=\"0 0 ", n, " ", n, "\">");
  for (int level = 1; level < kLevels; ++level) {
    if (!paths[level].empty())
      absl::StrAppend(&out, "<path class=\"c", level, "\" d=\"", paths[level], "\"/>");
  }
  return out + "</symbol>\n";
}

// Returns a token of at most kLetters characters.
std::string Short(const std::string& token) {
  absl::string_view rest = token;
  std::string out;
  for (int letters = 0; !rest.empty(); ++letters) {
    if (letters == kLetters - 1 && CountCodePoints(rest) > 1) return out + "\u2026";
    const int size = CodePointAt(rest, 0).size;
    out.append(rest.data(), size);
    rest.remove_prefix(size);
  }
  return out;
}

// Returns an SVG symbol with the tokens to the left of a large map and above it, and its frame. The
// corner of the map is (0, 0).
std::string Sides(const AttentionMaps& maps) {
  const std::vector<std::string>& tokens = maps.tokens;
  const int64_t size = kCell * static_cast<int64_t>(tokens.size());
  std::string out = "<symbol id=\"sides\" overflow=\"visible\">";
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string token = HtmlEscape(Short(tokens[i]));
    const int64_t middle = kCell * static_cast<int64_t>(i) + kCell / 2;
    const char* text = maps.second[i] ? "<text class=\"second\"" : "<text";
    absl::StrAppend(
        &out, text, " x=\"-6\" y=\"", middle + 4, "\" text-anchor=\"end\">", token, "</text>");
    absl::StrAppend(
        &out, text, " transform=\"translate(", middle + 4, " -6) rotate(-90)\">", token, "</text>");
  }
  return absl::StrCat(
      out, "<rect width=\"", size, "\" height=\"", size, "\" class=\"frame\"/></symbol>\n");
}

// Returns both symbols of a map: with all tokens and without special ones.
std::string Uses(const std::string& id, const std::string& size) {
  return absl::StrCat("<use class=\"all\" href=\"#m-", id, "\"", size,
      "/><use class=\"words\" href=\"#w-", id, "\"", size, "/>");
}

std::string Percent(float p) { return absl::StrFormat("%.1f %%", 100 * p); }

std::string Hover(int64_t x, int64_t y, int64_t width, const std::string& text) {
  return absl::StrCat("<rect class=\"hover\" x=\"", x, "\" y=\"", y, "\" width=\"", width,
      "\" height=\"1\"><title>", HtmlEscape(text), "</title></rect>");
}

// Returns the hover texts of a map, in units of cells: one per cell or one per row.
std::string Hovers(const AttentionMaps& maps, const float* p, bool cells) {
  const int64_t n = maps.tokens.size();
  std::string out;
  for (int64_t y = 0; y < n; ++y, p += n) {
    const std::string from = Short(maps.tokens[y]) + " \u2192 ";
    if (cells) {
      for (int64_t x = 0; x < n; ++x) {
        if (p[x] >= kMin)
          out += Hover(x, y, 1, absl::StrCat(from, Short(maps.tokens[x]), " ", Percent(p[x])));
      }
      continue;
    }
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    const size_t most = std::min<size_t>(kMaxHoverValues, n);
    std::partial_sort(order.begin(), order.begin() + most, order.end(),
        [&](int64_t a, int64_t b) { return p[a] != p[b] ? p[a] > p[b] : a < b; });
    std::string text = from;
    for (size_t i = 0; i < most; ++i)
      absl::StrAppend(
          &text, i > 0 ? ", " : "", Short(maps.tokens[order[i]]), " ", Percent(p[order[i]]));
    out += Hover(0, y, n, text);
  }
  return out;
}

// The section of a large map; `heads` of a layer have one.
std::string Large(const AttentionMaps& maps, int layer, int head, int margin, bool cells) {
  const int heads = maps.heads + 1, layers = maps.probs.size(), all = layers * heads,
            at = layer * heads + head;
  const int64_t n = maps.tokens.size(), size = kCell * n, whole = size + margin + kCell;
  const auto link = [&](int to, const char* text) {
    return absl::StrCat("<a href=\"#", MapId((to + all) % all / heads, (to + all) % all % heads),
        "\">", text, "</a>");
  };
  const std::string name = MapName(layer, head, maps.heads);
  return absl::StrCat("<section class=\"large\" id=\"", MapId(layer, head),
      "\"><a href=\"#top\">\u2715 all maps</a>", link(at - 1, "\u2190 previous"),
      link(at + 1, "next \u2192"), "<label for=\"words\">special tokens on/off</label><b>", name,
      "</b>\n<svg role=\"img\" aria-label=\"", name, "\" viewBox=\"", -margin, " ", -margin, " ",
      whole, " ", whole, "\">",
      Uses(MapId(layer, head), absl::StrCat(" width=\"", size, "\" height=\"", size, "\"")),
      "<use href=\"#sides\"/><g transform=\"scale(", kCell, ")\">",
      Hovers(maps, maps.probs[layer].data() + head * n * n, cells), "</g></svg></section>\n");
}

std::string PageHead(const AttentionMaps& maps) {
  std::string out = absl::StrCat("<h1 id=\"top\">Attention of ", HtmlEscape(maps.model),
      "</h1>\n<input type=\"checkbox\" id=\"words\"><label for=\"words\"> without special "
      "tokens</label>\n<p class=\"tokens\">");
  for (size_t i = 0; i < maps.tokens.size(); ++i)
    absl::StrAppend(&out, maps.second[i] ? "<span class=\"second\">" : "<span>",
        HtmlEscape(maps.tokens[i]), "</span>");
  absl::StrAppend(&out,
      "</p>\n<p class=\"legend\">One map per layer (down) and head (across), and the mean of the "
      "heads. A row shows how much its token attends to the tokens of the columns; each row sums "
      "to 1. Click a map to enlarge it; there, point at a cell to see its value.");
  for (const auto& [p, name] : {std::pair(0.01f, "1\u00a0%"), std::pair(0.05f, "5\u00a0%"),
           std::pair(0.25f, "25\u00a0%"), std::pair(1.0f, "100\u00a0%")})
    absl::StrAppend(&out, " <i><span class=\"c", LevelOf(p), "\"></span>", name, "</i>");
  return out + "</p>\n";
}

// Appends the mean over the heads to each layer, as one more map.
void AddMeans(AttentionMaps* maps) {
  const size_t size = maps->tokens.size() * maps->tokens.size();
  for (std::vector<float>& layer : maps->probs) {
    layer.resize((maps->heads + 1) * size);
    for (size_t i = 0; i < size; ++i) {
      double sum = 0;
      for (int head = 0; head < maps->heads; ++head) sum += layer[head * size + i];
      layer[maps->heads * size + i] = static_cast<float>(sum / maps->heads);
    }
  }
}

}  // namespace

std::string AttentionPage(AttentionMaps maps) {
  AddMeans(&maps);
  const int layers = maps.probs.size(), heads = maps.heads + 1;
  const int64_t n = maps.tokens.size();
  const bool cells = layers * heads * n * n <= kMaxHover;
  int letters = 1;
  for (const std::string& token : maps.tokens)
    letters = std::max<int>(letters, CountCodePoints(Short(token)));
  std::string body = PageHead(maps), symbols = Sides(maps), large;
  absl::StrAppend(&body, "<div class=\"grid\" style=\"grid-template-columns:2.2em repeat(", heads,
      ",minmax(0,1fr))\">\n<b></b>");
  for (int head = 0; head < maps.heads; ++head) absl::StrAppend(&body, "<b>", head + 1, "</b>");
  absl::StrAppend(&body, "<b><small>mean</small></b>");
  for (int layer = 0; layer < layers; ++layer) {
    absl::StrAppend(&body, "\n<b>", layer + 1, "</b>");
    for (int head = 0; head < heads; ++head) {
      const std::string id = MapId(layer, head), name = MapName(layer, head, maps.heads);
      const float* p = maps.probs[layer].data() + head * n * n;
      symbols += Map(p, n, "m-" + id) + Map(WithoutSpecial(p, maps.special).data(), n, "w-" + id);
      absl::StrAppend(&body, "<a href=\"#", id, "\" title=\"", name,
          "\"><svg role=\"img\" aria-label=\"", name, "\" viewBox=\"0 0 ", n, " ", n, "\">",
          Uses(id, ""), "</svg></a>\n");
      large += Large(maps, layer, head, 10 + 8 * letters, cells);
    }
  }
  const std::string style = absl::StrCat(kPageStyle, Colours({255, 255, 255}, {8, 48, 107}),
      "@media (prefers-color-scheme: dark) {\n", kDark, Colours({16, 22, 29}, {158, 213, 255}),
      "}\n");
  absl::StrAppend(&body, "</div>\n", large, "<svg width=\"0\" height=\"0\" aria-hidden=\"true\">\n",
      symbols, "</svg>\n");
  return HtmlPage("Attention: " + maps.text, style, body);
}

}  // namespace cloze
