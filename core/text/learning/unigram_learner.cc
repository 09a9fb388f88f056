// The algorithm of sentencepiece's unigram_model_trainer.cc, on distinct runs of characters with
// their counts. Sums are made in a fixed number of parts.
#include "core/text/learning/unigram_learner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/text/files/tokenizer_files.h"
#include "core/text/tokenizer/trie.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

constexpr int64_t kParts = 16;     // of each sum over the runs
constexpr double kShrink = 0.9;    // pieces kept by a round
constexpr double kMinCount = 0.5;  // expected occurrences of a piece
constexpr double kNever = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b))
double LogAdd(double a, double b) {
  const double most = std::max(a, b), least = std::min(a, b);
  return least == kNever ? most : most + std::log1p(std::exp(least - most));
}

// The derivative of log Gamma, for x > 0 (the asymptotic series around x - 1/2).
double Digamma(double x) {
  double sum = 0;
  for (; x < 7; ++x) sum -= 1 / x;
  const double y = x - 0.5, z = 1 / (y * y);
  return sum + std::log(y) +
         z * (1.0 / 24 - z * (7.0 / 960 - z * (31.0 / 8064 - z * 127.0 / 30720)));
}

bool IsCharacter(absl::string_view piece) { return CodePointAt(piece, 0).size == piece.size(); }

class UnigramLearner {
 public:
  UnigramLearner(CountedWords runs, Pieces seeds) : runs_(std::move(runs)) {
    double sum = 0;
    for (const auto& [piece, count] : seeds) sum += count;
    for (auto& [piece, score] : seeds) score = std::log(score) - std::log(sum);
    SetPieces(std::move(seeds));
  }

  const Pieces& pieces() const { return pieces_; }

  // One step of EM, with the variational Bayes estimate that prefers few pieces. Drops pieces that
  // hardly occur, but no characters.
  void Reestimate() {
    const std::vector<double> counts =
        Sum([this](const auto& run, std::vector<double>* sums) { AddExpected(run, sums); });
    double sum = 0;
    Pieces kept;
    for (size_t id = 0; id < pieces_.size(); ++id) {
      if (counts[id] < kMinCount && !IsCharacter(pieces_[id].first)) continue;
      kept.emplace_back(std::move(pieces_[id].first), std::max(counts[id], kMinCount));
      sum += kept.back().second;
    }
    for (auto& [piece, score] : kept) score = Digamma(score) - Digamma(sum);
    SetPieces(std::move(kept));
  }

  // Drops the pieces whose removal lowers the likelihood least; max(size, 90 %) of them remain.
  void Prune(size_t size) {
    const std::vector<double> counts = Sum([this](const auto& run, std::vector<double>* sums) {
      for (const int32_t id : BestPath(run.first, -1)) (*sums)[id] += run.second;
    });
    double sum = 0;
    for (const double count : counts) sum += count;
    std::vector<double> losses(pieces_.size());
    ParallelFor(static_cast<int64_t>(pieces_.size()),
        [&](int64_t id) { losses[id] = LossOf(id, counts, sum); });
    std::vector<int32_t> order(pieces_.size());
    for (size_t id = 0; id < order.size(); ++id) order[id] = static_cast<int32_t>(id);
    std::stable_sort(
        order.begin(), order.end(), [&](int32_t a, int32_t b) { return losses[a] > losses[b]; });
    size = std::max(size, static_cast<size_t>(kShrink * static_cast<double>(order.size())));
    Pieces kept;
    for (const int32_t id : order) {
      if (losses[id] == kNever || (kept.size() >= size && !IsCharacter(pieces_[id].first))) break;
      kept.push_back(std::move(pieces_[id]));
    }
    SetPieces(std::move(kept));
  }

 private:
  void SetPieces(Pieces pieces) {
    pieces_ = std::move(pieces);
    std::vector<Trie::Entry> entries;
    for (size_t id = 0; id < pieces_.size(); ++id)
      entries.push_back({pieces_[id].first, static_cast<int32_t>(id)});
    trie_ = Trie(std::move(entries));
  }

  // Returns, for each piece, the sum of what add(run, &sums) adds.
  template <typename Add>
  std::vector<double> Sum(const Add& add) const {
    std::vector<std::vector<double>> parts(kParts);
    ParallelFor(kParts, [&](int64_t part) {
      parts[part].resize(pieces_.size());
      for (size_t i = part; i < runs_.size(); i += kParts) add(runs_[i], &parts[part]);
    });
    for (int64_t part = 1; part < kParts; ++part) {
      for (size_t id = 0; id < pieces_.size(); ++id) parts[0][id] += parts[part][id];
    }
    return std::move(parts[0]);
  }

  // Calls visit(begin, end, id) for each piece in `text`, by rising begin.
  template <typename Visit>
  void ForEachPiece(absl::string_view text, const Visit& visit) const {
    for (size_t begin = 0; begin < text.size(); ++begin) {
      const Trie::Node* node = trie_.First(text[begin]);
      for (size_t end = begin + 1; node != nullptr; ++end) {
        if (node->id >= 0) visit(begin, end, node->id);
        node = end < text.size() ? trie_.Child(*node, text[end]) : nullptr;
      }
    }
  }

  // Adds how often each piece is expected in a run: forward and backward over the pieces in it.
  void AddExpected(const std::pair<std::string, int64_t>& run, std::vector<double>* sums) const {
    struct Edge {
      size_t begin, end;
      int32_t id;
    };
    thread_local std::vector<Edge> edges;
    thread_local std::vector<double> before, after;  // log probabilities of the text around a byte
    const size_t size = run.first.size();
    edges.clear();
    before.assign(size + 1, kNever);
    after.assign(size + 1, kNever);
    before[0] = after[size] = 0;
    ForEachPiece(run.first, [&](size_t begin, size_t end, int32_t id) {
      edges.push_back({begin, end, id});
      before[end] = LogAdd(before[end], before[begin] + pieces_[id].second);
    });
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
      const double rest = pieces_[edge->id].second + after[edge->end];
      after[edge->begin] = LogAdd(after[edge->begin], rest);
      (*sums)[edge->id] +=
          static_cast<double>(run.second) * std::exp(before[edge->begin] + rest - before[size]);
    }
  }

  // Returns the most probable pieces of `text` without piece `not_id`, last first; none if there
  // are none.
  std::vector<int32_t> BestPath(absl::string_view text, int32_t not_id) const {
    struct Best {
      double score = kNever;
      size_t begin = 0;
      int32_t id = -1;
    };
    thread_local std::vector<Best> best;
    best.assign(text.size() + 1, {});
    best[0].score = 0;
    ForEachPiece(text, [&](size_t begin, size_t end, int32_t id) {
      const double score = best[begin].score + pieces_[id].second;
      if (id != not_id && score > best[end].score) best[end] = {score, begin, id};
    });
    std::vector<int32_t> path;
    if (best.back().id < 0) return path;
    for (size_t end = text.size(); end > 0; end = best[end].begin) path.push_back(best[end].id);
    return path;
  }

  // Returns by how much the likelihood falls if the best other pieces replace piece `id`; kNever if
  // those are more probable or it does not occur.
  double LossOf(int32_t id, const std::vector<double>& counts, double sum) const {
    const auto& [piece, score] = pieces_[id];
    const std::vector<int32_t> others = BestPath(piece, id);
    if (others.empty()) return std::numeric_limits<double>::infinity();  // a character
    double others_score = 0, log_others = 0;
    const double count = counts[id],
                 log_sum = std::log(sum + count * static_cast<double>(others.size() - 1));
    for (const int32_t other : others) {
      others_score += pieces_[other].second;
      log_others += std::log(counts[other] + count) - log_sum;
    }
    if (count == 0 || others_score >= score) return kNever;
    return count / sum * (std::log(count) - std::log(sum) - log_others);
  }

  const CountedWords runs_;
  Pieces pieces_;
  Trie trie_;
};

}  // namespace

Pieces LearnUnigram(
    const CountedWords& words, int64_t size, const VocabOptions& options, VocabProgress progress) {
  constexpr int kBytesPerChar = 32;
  CountedWords runs = UnigramRuns(words, options.memory_limit / kBytesPerChar);
  Pieces seeds = UnigramSeeds(runs, options.min_count);
  const size_t wanted = size + size / 50;  // the surplus is dropped by score at the end
  const double shrink = std::log(kShrink),
               log_rounds = std::log(static_cast<double>(wanted) / seeds.size()) / shrink;
  const auto rounds = static_cast<int64_t>(std::max(1.0, std::ceil(log_rounds)));
  UnigramLearner learner(std::move(runs), std::move(seeds));
  for (int64_t round = 0;; ++round) {
    progress("learning", std::min(round, rounds), rounds);
    learner.Reestimate();
    learner.Reestimate();
    const size_t before = learner.pieces().size();
    if (before <= wanted) break;
    learner.Prune(wanted);
    if (learner.pieces().size() == before) break;  // only characters
  }
  Pieces pieces = learner.pieces();
  // All characters, then the most probable pieces.
  std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
    const bool x = IsCharacter(a.first), y = IsCharacter(b.first);
    return x != y ? x : a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  const auto end_of_characters = std::partition_point(
      pieces.begin(), pieces.end(), [](const auto& piece) { return IsCharacter(piece.first); });
  pieces.resize(
      std::min<size_t>(pieces.size(), std::max<int64_t>(size, end_of_characters - pieces.begin())));
  std::stable_sort(pieces.begin(), pieces.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  return pieces;
}

namespace {

absl::StatusOr<Recipe> UnigramRecipe(const VocabOptions& options) {
  Recipe recipe;
  ASSIGN_OR_RETURN(recipe.data, NewUnigram({}, options.normalizer));
  recipe.is_mark = IsCombining;
  SetMetaspaceText(SchemeOf<UnigramScheme>(recipe.data).metaspace, &recipe.text);
  recipe.normalize = [&normalizer = *recipe.text.normalizer, steps = recipe.data.steps](
                         absl::string_view raw, std::string* word) {
    NormalText text;
    text.Set(raw, false);
    for (const auto& step : steps) step->Apply(&text);
    if (!absl::StartsWith(text.text, kMetaspace)) absl::StrAppend(word, kMetaspace);
    normalizer.Append(text.text, text.text.size(), word, nullptr);
    return true;
  };
  recipe.learn = [](const CountedWords& words, const VocabOptions& settings, TokenizerData start,
                     VocabProgress progress) {
    const int64_t size = settings.size - static_cast<int64_t>(start.tokens.size());
    return NewUnigram(LearnUnigram(words, size, settings, progress), settings.normalizer);
  };
  return recipe;
}

}  // namespace

constinit const VocabKind kUnigramVocab = {"unigram",
    "as in XLM-R, also for languages without spaces between words", false, UnigramRecipe};

}  // namespace cloze
