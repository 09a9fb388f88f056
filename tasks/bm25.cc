#include <algorithm>
#include <cmath>

#include "absl/functional/function_ref.h"
#include "core/base/hash_map.h"
#include "core/text/unicode/unicode.h"
#include "tasks/retrieval.h"

namespace cloze {
namespace {

// Calls f(word) for each word of the text in lower case.
void ForWords(absl::string_view text, absl::FunctionRef<void(const std::string& word)> f) {
  std::string word;
  for (const char32_t c : CodePoints(text)) {
    if (IsWord(c)) {
      for (const char32_t lower : Lowercase(c)) AppendUtf8(lower, &word);
    } else if (!word.empty()) {
      f(word);
      word.clear();
    }
  }
  if (!word.empty()) f(word);
}

struct Posting {
  int64_t document;
  double count;
};

// The documents of each word, in order.
struct WordIndex {
  HashMap<std::string, std::vector<Posting>> postings;
  std::vector<double> lengths;
  double mean_length = 0;

  explicit WordIndex(const std::vector<std::string>& texts) : lengths(texts.size()) {
    for (int64_t d = 0; d < std::ssize(texts); ++d) {
      ForWords(texts[d], [&](const std::string& word) {
        std::vector<Posting>& list = postings[word];
        if (list.empty() || list.back().document != d) list.push_back({d, 0});
        ++list.back().count, ++lengths[d], ++mean_length;
      });
    }
    mean_length /= static_cast<double>(std::max<size_t>(texts.size(), 1));
  }
};

}  // namespace

std::vector<std::vector<int64_t>> RankByBm25(const RetrievalData& data, double k1, double b) {
  const WordIndex index(data.corpus.texts);
  const double documents = static_cast<double>(data.corpus.texts.size());
  std::vector<std::vector<int64_t>> rankings;
  std::vector<double> scores(data.corpus.texts.size());
  for (const std::string& query : data.queries.texts) {
    std::fill(scores.begin(), scores.end(), 0);
    ForWords(query, [&](const std::string& word) {
      const auto found = index.postings.find(word);
      if (found == index.postings.end()) return;
      const double n = static_cast<double>(found->second.size());
      const double idf = std::log(1 + (documents - n + 0.5) / (n + 0.5));
      for (const auto& [document, count] : found->second) {
        const double length = index.lengths[document] / index.mean_length;
        scores[document] += idf * count / (count + k1 * (1 - b + b * length));
      }
    });
    std::vector<int64_t>& ranking = rankings.emplace_back();
    for (int64_t d = 0; d < std::ssize(scores); ++d)
      if (scores[d] > 0) ranking.push_back(d);
    const int64_t kept = std::min(kRetrievalDepth, std::ssize(ranking));
    std::partial_sort(
        ranking.begin(), ranking.begin() + kept, ranking.end(), [&](int64_t x, int64_t y) {
          return scores[x] != scores[y] ? scores[x] > scores[y] : x < y;
        });
    ranking.resize(kept);
  }
  return rankings;
}

}  // namespace cloze
