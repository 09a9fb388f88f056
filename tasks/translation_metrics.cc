#include "tasks/translation_metrics.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

std::vector<std::string> SplitAtSpace(absl::string_view text) {
  std::vector<std::string> words;
  bool open = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    if (IsPythonSpace(c.value)) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      absl::StrAppend(&words.back(), text.substr(at, c.size));
    }
    at += c.size;
  }
  return words;
}

// Python's str.rstrip(), with which sacreBLEU prepares each line.
absl::string_view WithoutSpaceAtEnd(absl::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    at += c.size;
    if (!IsPythonSpace(c.value)) end = at;
  }
  return text.substr(0, end);
}

// Replaces, from left to right, adjacent characters a and b that `match` by spaces around them.
std::string Separate(const std::string& text, bool (*match)(char a, char b),
    absl::string_view before, absl::string_view between, absl::string_view after) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !match(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    absl::StrAppend(&out, before, text.substr(i, 1), between, text.substr(i + 1, 1), after);
    ++i;
  }
  return out;
}

bool IsPoint(char c) { return c == '.' || c == ','; }
bool IsPunctuation(char c) {
  return absl::ascii_ispunct(c) && !IsPoint(c) && c != '-' && c != '\'';
}

// Counts n-grams. Matches are clipped to the smaller of the two counts.
template <typename Item>
std::array<int64_t, 3> CountRuns(
    const std::vector<Item>& generated, const std::vector<Item>& reference, int64_t n) {
  std::map<std::vector<Item>, std::array<int64_t, 2>> runs;
  std::array<int64_t, 3> counts = {};  // generated, reference, both
  for (int i = 0; i < 2; ++i) {
    const std::vector<Item>& items = i == 0 ? generated : reference;
    for (auto at = items.begin(); items.end() - at >= n; ++at, ++counts[i])
      ++runs[std::vector<Item>(at, at + n)][i];
  }
  for (const auto& [run, count] : runs) counts[2] += std::min(count[0], count[1]);
  return counts;
}

std::vector<char32_t> VisibleCharacters(absl::string_view text) {
  std::vector<char32_t> characters;
  for (const char32_t c : CodePoints(text))
    if (!IsPythonSpace(c)) characters.push_back(c);
  return characters;
}

}  // namespace

std::vector<std::string> Tokenize13a(absl::string_view text) {
  std::string line(text);
  // One after the other, as there: what one replacement joins, the next one finds.
  for (const auto& [from, to] : {std::pair("<skipped>", ""), std::pair("-\n", ""),
           std::pair("\n", " "), std::pair("&quot;", "\""), std::pair("&amp;", "&"),
           std::pair("&lt;", "<"), std::pair("&gt;", ">")})
    line = absl::StrReplaceAll(line, {{from, to}});
  std::string spaced = " ";
  for (const char c : line) {
    if (IsPunctuation(c)) {
      absl::StrAppend(&spaced, " ", std::string(1, c), " ");
    } else {
      spaced += c;
    }
  }
  spaced += " ";
  spaced = Separate(
      spaced, [](char a, char b) { return !absl::ascii_isdigit(a) && IsPoint(b); }, "", " ", " ");
  spaced = Separate(
      spaced, [](char a, char b) { return IsPoint(a) && !absl::ascii_isdigit(b); }, " ", " ", "");
  spaced = Separate(
      spaced, [](char a, char b) { return absl::ascii_isdigit(a) && b == '-'; }, "", " ", " ");
  return SplitAtSpace(spaced);
}

void Bleu::Add(absl::string_view generated, absl::string_view reference) {
  const std::vector<std::string> mine = Tokenize13a(WithoutSpaceAtEnd(generated)),
                                 theirs = Tokenize13a(WithoutSpaceAtEnd(reference));
  words += std::ssize(mine), reference_words += std::ssize(theirs);
  for (int n = 0; n < 4; ++n) {
    const auto [of_generated, of_reference, both] = CountRuns(mine, theirs, n + 1);
    all[n] += of_generated, right[n] += both;
  }
}

double Bleu::Score() const {
  if (right[0] == 0 || all[3] == 0) return 0;  // sacreBLEU takes the log of 0 as -1e10
  double logs = 0, halves = 1;
  for (int n = 0; n < 4; ++n) {
    const double matches = right[n] > 0 ? double(right[n]) : 1 / (halves *= 2);
    logs += std::log(100 * matches / double(all[n])) / 4;
  }
  const double penalty = words < reference_words ? 1 - double(reference_words) / double(words) : 0;
  return std::exp(logs + penalty);
}

void ChrF::Add(absl::string_view generated, absl::string_view reference) {
  const std::vector<char32_t> mine = VisibleCharacters(generated),
                              theirs = VisibleCharacters(reference);
  for (int n = 0; n < 6; ++n) {
    const auto [of_generated, of_reference, both] = CountRuns(mine, theirs, n + 1);
    generated_all[n] += of_reference > 0 ? of_generated : 0;
    reference_all[n] += of_reference, right[n] += both;
  }
}

double ChrF::Score() const {
  constexpr double kBeta2 = 4;
  double precision = 0, recall = 0;
  int orders = 0;
  for (int n = 0; n < 6; ++n) {
    if (generated_all[n] == 0 || reference_all[n] == 0) continue;
    precision += double(right[n]) / double(generated_all[n]);
    recall += double(right[n]) / double(reference_all[n]);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders, recall /= orders;
  return 100 * (1 + kBeta2) * precision * recall / (kBeta2 * precision + recall);
}

}  // namespace cloze
