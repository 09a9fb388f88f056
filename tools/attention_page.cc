#include "tools/attention_page.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/text.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

constexpr int kLevels = 16;   // colours; level 0 is white
constexpr int kCell = 20;     // size of a cell in large maps, in SVG units
constexpr int kLetters = 14;  // longest token name in large maps
constexpr char kStyle[] = R"(
:root { color-scheme: light; }
body { margin: 1.2em; font: 14px/1.45 system-ui, sans-serif; color: #1b2430; background: #fff; }
h1 { font-size: 1.25em; margin: 0 0 .3em; }
p { margin: .3em 0 .8em; max-width: 62em; }
.tokens span { display: inline-block; margin: 0 .25em .25em 0; padding: 0 .35em;
  border: 1px solid #c9d3de; border-radius: 3px; font-family: ui-monospace, monospace;
  white-space: pre; }
.legend span { display: inline-block; width: 1.1em; height: 1.1em; margin: 0 .3em 0 .9em;
  border: 1px solid #c9d3de; vertical-align: -.2em; }
.grid { display: grid; gap: 5px; max-width: 1500px; align-items: center; }
.grid b { text-align: center; font-weight: 600; color: #4a5868; }
.grid a { display: block; border: 1px solid #c9d3de; line-height: 0; }
.grid a:hover, .grid a:focus { border-color: #d9480f; outline: 1px solid #d9480f; }
.grid svg { width: 100%; height: auto; }
.large { display: none; position: fixed; inset: 0; overflow: auto; padding: 1em 2em;
  background: #fff; }
.large:target { display: block; }
.large svg { display: block; height: min(84vh, 94vw); max-width: 94vw; margin-top: .6em; }
.large a { margin-right: 1.2em; }
text { font: 13px ui-monospace, monospace; fill: #1b2430; }
)";

std::string Id(int layer, int head) { return absl::StrCat("l", layer + 1, "h", head + 1); }
std::string Name(int layer, int head) {
  return absl::StrCat("Layer ", layer + 1, ", head ", head + 1);
}

int LevelOf(float p) {
  if (!(p >= 0.001f)) return 0;
  return std::clamp(static_cast<int>(std::lround(std::sqrt(p) * (kLevels - 1))), 1, kLevels - 1);
}

// Returns the colour of a level, from white to dark blue.
std::string Colour(int level) {
  const double x = double(level) / (kLevels - 1);
  const auto mix = [&](int from, int to) {
    return static_cast<int>(std::lround(from + (to - from) * x));
  };
  return absl::StrCat("rgb(", mix(255, 8), ",", mix(255, 48), ",", mix(255, 107), ")");
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
  std::string out = absl::StrCat("<symbol id=\"m-", id, "\" viewBox=\"0 0 ", n, " ", n, "\">");
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
std::string Sides(const std::vector<std::string>& tokens) {
  const int64_t size = kCell * static_cast<int64_t>(tokens.size());
  std::string out = "<symbol id=\"sides\" overflow=\"visible\">";
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string token = HtmlEscape(Short(tokens[i]));
    const int64_t middle = kCell * static_cast<int64_t>(i) + kCell / 2;
    absl::StrAppend(
        &out, "<text x=\"-6\" y=\"", middle + 4, "\" text-anchor=\"end\">", token, "</text>");
    absl::StrAppend(
        &out, "<text transform=\"translate(", middle + 4, " -6) rotate(-90)\">", token, "</text>");
  }
  return absl::StrCat(out, "<rect width=\"", size, "\" height=\"", size,
      "\" fill=\"none\" stroke=\"#c9d3de\"/></symbol>\n");
}

std::string Large(const AttentionMaps& maps, int layer, int head, int margin) {
  const int layers = maps.probs.size(), all = layers * maps.heads, at = layer * maps.heads + head;
  const int64_t size = kCell * static_cast<int64_t>(maps.tokens.size()),
                whole = size + margin + kCell;
  const auto link = [&](int to, const char* text) {
    return absl::StrCat("<a href=\"#",
        Id((to + all) % all / maps.heads, (to + all) % all % maps.heads), "\">", text, "</a>");
  };
  return absl::StrCat("<section class=\"large\" id=\"", Id(layer, head),
      "\"><a href=\"#top\">\u2715 all maps</a>", link(at - 1, "\u2190 previous"),
      link(at + 1, "next \u2192"), "<b>", Name(layer, head),
      "</b>\n<svg role=\"img\" aria-label=\"", Name(layer, head), "\" viewBox=\"", -margin, " ",
      -margin, " ", whole, " ", whole, "\"><use href=\"#m-", Id(layer, head), "\" width=\"", size,
      "\" height=\"", size, "\"/><use href=\"#sides\"/></svg></section>\n");
}

std::string Head(const AttentionMaps& maps) {
  std::string out = "<h1 id=\"top\">Attention by layer and head</h1>\n<p class=\"tokens\">";
  for (const std::string& token : maps.tokens)
    absl::StrAppend(&out, "<span>", HtmlEscape(token), "</span>");
  absl::StrAppend(&out,
      "</p>\n<p class=\"legend\">One map per layer (down) and head (across). A row shows how much "
      "its token attends to the tokens of the columns; each row sums to 1. Click a map to enlarge "
      "it.");
  for (const auto& [p, name] : {std::pair(0.01f, "1 %"), std::pair(0.05f, "5 %"),
           std::pair(0.25f, "25 %"), std::pair(1.0f, "100 %")})
    absl::StrAppend(&out, "<span style=\"background:", Colour(LevelOf(p)), "\"></span>", name);
  return out + "</p>\n";
}

}  // namespace

std::string HtmlEscape(absl::string_view text) {
  std::string clean;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    const bool harmful = MustEscape(c.value) && c.value != '\t' && c.value != '\n';
    AppendUtf8(harmful ? kReplacementCharacter : c.value, &clean);
    at += c.size;
  }
  return absl::StrReplaceAll(
      clean, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string HtmlPage(absl::string_view title, absl::string_view style, absl::string_view body) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; base-uri 'none'; "
      "form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      HtmlEscape(title), "</title>\n<style>\n", style, "</style>\n</head>\n<body>\n", body,
      "</body>\n</html>\n");
}

std::string AttentionPage(const AttentionMaps& maps) {
  const int layers = maps.probs.size();
  const int64_t n = maps.tokens.size();
  int letters = 1;
  for (const std::string& token : maps.tokens)
    letters = std::max<int>(letters, CountCodePoints(Short(token)));
  std::string body = Head(maps), symbols = Sides(maps.tokens), large;
  absl::StrAppend(&body, "<div class=\"grid\" style=\"grid-template-columns:2.2em repeat(",
      maps.heads, ",1fr)\">\n<b></b>");
  for (int head = 0; head < maps.heads; ++head) absl::StrAppend(&body, "<b>", head + 1, "</b>");
  for (int layer = 0; layer < layers; ++layer) {
    absl::StrAppend(&body, "\n<b>", layer + 1, "</b>");
    for (int head = 0; head < maps.heads; ++head) {
      const std::string id = Id(layer, head), name = Name(layer, head);
      symbols += Map(maps.probs[layer].data() + head * n * n, n, id);
      absl::StrAppend(&body, "<a href=\"#", id, "\" title=\"", name,
          "\"><svg role=\"img\" aria-label=\"", name, "\" viewBox=\"0 0 ", n, " ", n,
          "\"><use href=\"#m-", id, "\"/></svg></a>\n");
      large += Large(maps, layer, head, 10 + 8 * letters);
    }
  }
  std::string style = kStyle;
  for (int level = 1; level < kLevels; ++level)
    absl::StrAppend(&style, ".c", level, " { fill: ", Colour(level), "; }\n");
  absl::StrAppend(&body, "</div>\n", large, "<svg width=\"0\" height=\"0\" aria-hidden=\"true\">\n",
      symbols, "</svg>\n");
  return HtmlPage("Attention: " + maps.text, style, body);
}

}  // namespace cloze
