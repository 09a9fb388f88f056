// The input of the Unigram learner: runs of characters, and their frequent substrings.
#include "core/text/learning/unigram_learner.h"

#include <algorithm>
#include <map>

#include "absl/types/span.h"
#include "core/base/hash_map.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

constexpr int64_t kMaxPiece = 16;  // characters
constexpr size_t kMaxSeeds = 1'000'000;
constexpr double kCoverage = 0.9995;  // of the text by the alphabet
constexpr char32_t kSpaceMark = 0x2581;

// Characters of different classes are not in one piece. A space is of the class that follows it.
enum class Script { kNone, kSpaced, kUnspaced, kNumber, kPunctuation };

Script ScriptOf(char32_t c) {
  if (IsNumber(c)) return Script::kNumber;
  if (IsPunctuation(c)) return Script::kPunctuation;
  return IsUnspaced(c) ? Script::kUnspaced : Script::kSpaced;
}

// Calls visit(code point, begin, end) for each character.
template <typename Visit>
void ForEachChar(absl::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    visit(c.value, at, at + c.size);
    at += c.size;
  }
}

// Returns the most frequent characters, which cover the text, with their classes.
std::map<char32_t, Script> AlphabetOf(const CountedWords& words) {
  std::map<char32_t, int64_t> counts;
  int64_t total = 0, covered = 0;
  for (const auto& [word, count] : words) {
    ForEachChar(word, [&, n = count](char32_t c, size_t, size_t) {
      counts[c] += n;
      total += n;
    });
  }
  std::vector<std::pair<int64_t, char32_t>> sorted;
  for (const auto& [c, count] : counts) sorted.push_back({-count, c});
  std::sort(sorted.begin(), sorted.end());
  std::map<char32_t, Script> alphabet = {{kSpaceMark, Script::kNone}};
  for (const auto& [minus_count, c] : sorted) {
    if (static_cast<double>(covered) >= kCoverage * static_cast<double>(total)) break;
    if (c != kSpaceMark && c != 0) alphabet[c] = ScriptOf(c);  // 0 ends runs
    covered -= minus_count;
  }
  return alphabet;
}

// Finds frequent substrings: a suffix tree of limited depth, level by level.
class SeedFinder {
 public:
  SeedFinder(const CountedWords& runs, int64_t min_count) : runs_(runs), min_count_(min_count) {
    for (uint32_t run = 0; run < runs.size(); ++run) {
      ForEachChar(runs[run].first, [&](char32_t c, size_t, size_t) {
        text_.push_back(c);
        run_.push_back(run);
      });
      text_.push_back(0);
      run_.push_back(run);
    }
  }

  // Returns each character with its count, then substrings with count times length.
  Pieces Run() {
    std::vector<uint32_t> places;
    for (uint32_t at = 0; at < text_.size(); ++at) {
      if (text_[at] != 0) places.push_back(at);
    }
    std::vector<Seed> tasks, seeds;
    Pieces pieces;
    ForEachNext(absl::MakeSpan(places), 0, [&](const Seed& one) {
      pieces.emplace_back(TextOf(one), one.count);
      if (one.count < min_count_) return;
      ForEachNext(one.places, 1, [&](const Seed& two) { tasks.push_back(two); });
    });
    std::vector<std::vector<Seed>> found(tasks.size());
    ParallelFor(
        static_cast<int64_t>(tasks.size()), [&](int64_t i) { Extend(tasks[i], &found[i]); });
    for (const auto& some : found) seeds.insert(seeds.end(), some.begin(), some.end());
    const auto better = [&](const Seed& a, const Seed& b) {
      const int64_t x = a.count * a.length, y = b.count * b.length;
      return x != y ? x > y : TextOf(a) < TextOf(b);
    };
    if (seeds.size() > kMaxSeeds) {
      std::nth_element(seeds.begin(), seeds.begin() + kMaxSeeds, seeds.end(), better);
      seeds.resize(kMaxSeeds);
    }
    for (const Seed& seed : seeds) pieces.emplace_back(TextOf(seed), seed.count * seed.length);
    return pieces;
  }

 private:
  // A string of `length` characters.
  struct Seed {
    absl::Span<uint32_t> places;  // all that start with it
    int64_t length, count;
  };

  std::string TextOf(const Seed& seed) const {
    std::string text;
    for (int64_t i = 0; i < seed.length; ++i) AppendUtf8(text_[seed.places[0] + i], &text);
    return text;
  }

  // Calls visit(seed) for the strings one character longer than the `length` that `places` share.
  template <typename Visit>
  void ForEachNext(absl::Span<uint32_t> places, int64_t length, const Visit& visit) const {
    const auto next = [&](uint32_t place) { return text_[place + length]; };
    std::sort(places.begin(), places.end(),
        [&](uint32_t a, uint32_t b) { return next(a) != next(b) ? next(a) < next(b) : a < b; });
    for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
      int64_t count = 0;
      for (; end < places.size() && next(places[end]) == next(places[begin]); ++end)
        count += runs_[run_[places[end]]].second;
      if (next(places[begin]) != 0)
        visit(Seed{places.subspan(begin, end - begin), length + 1, count});
    }
  }

  // Adds `seed` and longer strings, except strings that always continue in the same way.
  void Extend(const Seed& seed, std::vector<Seed>* seeds) const {
    bool ends = true;
    if (seed.count < min_count_) return;
    if (seed.length < kMaxPiece) {
      ForEachNext(seed.places, seed.length, [&](const Seed& longer) {
        ends = ends && longer.count < seed.count;
        Extend(longer, seeds);
      });
    }
    if (ends) seeds->push_back(seed);
  }

  const CountedWords& runs_;
  const int64_t min_count_;
  std::u32string text_;        // all runs, each with a zero at its end
  std::vector<uint32_t> run_;  // of each character
};

}  // namespace

CountedWords UnigramRuns(const CountedWords& words, int64_t max_chars) {
  const std::map<char32_t, Script> alphabet = AlphabetOf(words);
  HashMap<std::string, int64_t> counts;
  for (const auto& [word, count] : words) {
    size_t begin = 0;
    Script last = Script::kNone;
    const auto cut = [&, text = absl::string_view(word), n = count](size_t end) {
      if (begin < end) counts[text.substr(begin, end - begin)] += n;
      begin = end;
    };
    ForEachChar(word, [&](char32_t c, size_t at, size_t end) {
      const auto found = alphabet.find(c);
      const bool known = found != alphabet.end();
      const Script next = known ? found->second : Script::kNone;
      if (next == Script::kNone || (last != Script::kNone && last != next)) cut(at);
      if (!known) begin = end;
      last = next;
    });
    cut(word.size());
  }
  CountedWords runs(counts.begin(), counts.end());
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  for (size_t i = 0; i < runs.size(); ++i) {
    max_chars -= CountCodePoints(runs[i].first);
    if (max_chars < 0) runs.resize(i);
  }
  return runs;
}

Pieces UnigramSeeds(const CountedWords& runs, int64_t min_count) {
  return SeedFinder(runs, min_count).Run();
}

}  // namespace cloze
