// Learns byte-pair merges from word counts: repeatedly joins the most frequent pair of neighbouring
// pieces to a new piece. The algorithm of Hugging Face's trainer, which gives the same vocabulary.
// Each merge updates the counts of the pairs around it. A heap yields the most frequent pair; its
// entries list the words that contain the pair.
#include <algorithm>
#include <map>
#include <queue>

#include "core/base/hash_map.h"
#include "core/base/text.h"
#include "core/text/learning/recipe.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

using Pair = uint64_t;  // ids of the left and the right piece

Pair MakePair(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

// Calls visit(code point, byte) for each character of `word`.
template <typename Visit>
void ForEachCharacter(const std::string& word, const Visit& visit) {
  for (size_t at = 0; at < word.size();) {
    const CodePoint c = CodePointAt(word, at);
    visit(c.value, at);
    at += c.size;
  }
}

// Returns the characters by falling count, then by code point.
std::vector<char32_t> MostFrequent(const std::map<char32_t, int64_t>& counts) {
  std::vector<char32_t> keys;
  for (const auto& [c, count] : counts) keys.push_back(c);
  std::stable_sort(keys.begin(), keys.end(),
      [&](char32_t a, char32_t b) { return counts.at(a) > counts.at(b); });
  return keys;
}

class MergeLearner {
 public:
  using Merges = std::vector<std::pair<int32_t, int32_t>>;

  // Starts with *tokens. `bytes`: the alphabet are the characters that spell bytes.
  MergeLearner(
      const VocabOptions& options, const char* prefix, bool bytes, std::vector<std::string>* tokens)
      : options_(options), prefix_(prefix), bytes_(bytes), tokens_(*tokens) {
    for (size_t id = 0; id < tokens_.size(); ++id) ids_.emplace(tokens_[id], id);
  }

  // Appends to the tokens: the characters of `words`, or those that spell bytes, by code point; the
  // characters inside words, with the prefix, by falling frequency (Hugging Face's order is random,
  // but similar); the merged pieces in the order of their merges, which it returns. Of pairs with
  // equal counts, merges the one with the lower ids first.
  Merges Run(const CountedWords& words) {
    AddAlphabet(words);
    SplitWords(words);
    while (!queue_.empty() && static_cast<int64_t>(tokens_.size()) < options_.size) {
      const Candidate top = queue_.top();
      queue_.pop();
      const int64_t count = counts_[top.pair];
      if (count != top.count) {  // out of date
        if (count > 0) queue_.push({count, top.pair, top.places});
        continue;
      }
      if (count < options_.min_count) break;
      Merge(top);
    }
    return std::move(merges_);
  }

 private:
  // A pair, its count when it was queued, and the index in places_ of the words that contain it.
  struct Candidate {
    int64_t count;
    Pair pair;
    size_t places;
    bool operator<(const Candidate& other) const {
      if (count != other.count) return count < other.count;
      return pair != other.pair ? pair > other.pair : places > other.places;
    }
  };
  struct Word {
    uint64_t begin;  // in pieces_
    uint32_t size;
    int64_t count;
  };
  using Places = std::vector<uint32_t>;

  uint32_t IdOf(const std::string& token) {
    const auto [at, is_new] = ids_.emplace(token, static_cast<uint32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(token);
    return at->second;
  }
  uint32_t IdOf(std::string prefix, char32_t c) {
    AppendUtf8(c, &prefix);
    return IdOf(prefix);
  }

  void AddAlphabet(const CountedWords& words) {
    // Occurrences in all words, and inside distinct words, after the first character.
    std::map<char32_t, int64_t> counts, continuing;
    for (const auto& [word, count] : words) {
      ForEachCharacter(word, [&, n = count](char32_t c, size_t at) {
        counts[c] += n;
        if (at > 0) ++continuing[c];
      });
    }
    if (bytes_) {
      for (int b = 0; b < 256; ++b) alphabet_[ByteCharacter(static_cast<uint8_t>(b))] = {};
    } else {
      const size_t usual = options_.max_alphabet > 0 ? options_.max_alphabet : 1000,
                   most = options_.max_alphabet > 0 ? usual : std::max(usual, options_.size / 2ul);
      for (const char32_t c : MostFrequent(counts)) {
        const size_t size = alphabet_.size();
        if (size < usual || (size < most && counts[c] >= options_.min_count)) alphabet_[c] = {};
      }
    }
    for (auto& [c, ids] : alphabet_) ids.first = IdOf("", c);
    for (const char32_t c : MostFrequent(continuing)) {
      if (alphabet_.contains(c)) alphabet_[c].second = IdOf(prefix_, c);
    }
  }

  // Splits the words into characters and queues their pairs.
  void SplitWords(const CountedWords& words) {
    for (const auto& [word, count] : words) {
      const uint64_t begin = pieces_.size();
      ForEachCharacter(word, [&](char32_t c, size_t at) {
        const auto found = alphabet_.find(c);
        // Drops rare characters; their neighbours become a pair.
        if (found != alphabet_.end())
          pieces_.push_back(at == 0 ? found->second.first : found->second.second);
      });
      words_.push_back({begin, static_cast<uint32_t>(pieces_.size() - begin), count});
      for (uint64_t i = begin + 1; i < pieces_.size(); ++i)
        Change(MakePair(pieces_[i - 1], pieces_[i]), 1, words_.size() - 1);
    }
    QueueSeen();
  }

  void Change(Pair pair, int64_t by, uint32_t word) {
    counts_[pair] += by * words_[word].count;
    if (by < 0) return;
    Places& places = seen_[pair];
    if (places.empty() || places.back() != word) places.push_back(word);
  }

  void QueueSeen() {
    for (auto& [pair, places] : seen_) {
      const int64_t count = counts_[pair];
      if (count <= 0) continue;
      queue_.push({count, pair, places_.size()});
      places_.push_back(std::move(places));
    }
    seen_.clear();
  }

  void Merge(const Candidate& candidate) {
    const uint32_t left = candidate.pair >> 32, right = static_cast<uint32_t>(candidate.pair);
    absl::string_view tail = tokens_[right];
    if (tail.substr(0, prefix_.size()) == prefix_) tail.remove_prefix(prefix_.size());
    const uint32_t merged = IdOf(absl::StrCat(tokens_[left], tail));
    merges_.emplace_back(left, right);
    const Places places = std::move(places_[candidate.places]);
    for (const uint32_t word : places) MergeInWord(word, left, right, merged);
    QueueSeen();
  }

  // Leaves the count of the merged pair itself unchanged: it is read only if the pair occurs again.
  void MergeInWord(uint32_t number, uint32_t left, uint32_t right, uint32_t merged) {
    Word& word = words_[number];
    uint32_t* pieces = pieces_.data() + word.begin;
    uint32_t to = 0;
    for (uint32_t from = 0; from < word.size; ++from, ++to) {
      if (pieces[from] != left || from + 1 == word.size || pieces[from + 1] != right) {
        pieces[to] = pieces[from];
        continue;
      }
      if (to > 0) {
        Change(MakePair(pieces[to - 1], left), -1, number);
        Change(MakePair(pieces[to - 1], merged), 1, number);
      }
      if (from + 2 < word.size) {
        Change(MakePair(right, pieces[from + 2]), -1, number);
        Change(MakePair(merged, pieces[from + 2]), 1, number);
      }
      pieces[to] = merged;
      ++from;
    }
    word.size = to;
  }

  const VocabOptions& options_;
  const std::string prefix_;  // of pieces that continue a word
  const bool bytes_;
  std::vector<std::string>& tokens_;
  Merges merges_;
  HashMap<std::string, uint32_t> ids_;
  // Ids of each character at the start of a word and inside one (0: it never is inside).
  std::map<char32_t, std::pair<uint32_t, uint32_t>> alphabet_;
  std::vector<Word> words_;
  std::vector<uint32_t> pieces_;
  HashMap<Pair, int64_t> counts_;
  HashMap<Pair, Places> seen_;  // pairs found since the last QueueSeen
  std::vector<Places> places_;
  std::priority_queue<Candidate> queue_;
};

absl::StatusOr<Recipe> WordPieceRecipe(const VocabOptions& options) {
  constexpr int64_t kMaxWordChars = 100;
  Recipe recipe;
  recipe.data.tokens = {"<pad>", "<unk>", "<class>", "<sep>", "<mask>"};
  recipe.data.scheme = BertScheme(options.normalizer);
  recipe.is_mark = IsMark;
  SetBertText(options.normalizer, &recipe.text);
  recipe.normalize = [&normalizer = *recipe.text.normalizer](
                         absl::string_view raw, std::string* word) {
    normalizer.Append(raw, 4 * kMaxWordChars, word, nullptr);
    return CountCodePoints(*word) <= kMaxWordChars;
  };
  recipe.learn = [](const CountedWords& words, const VocabOptions& settings, TokenizerData data,
                     VocabProgress) -> absl::StatusOr<TokenizerData> {
    MergeLearner(settings, "##", false, &data.tokens).Run(words);
    return data;
  };
  return recipe;
}

absl::StatusOr<Recipe> ByteBpeRecipe(const VocabOptions&) {
  Recipe recipe;
  recipe.data.tokens = {"<s>", "<pad>", "</s>", "<unk>", "<mask>"};
  recipe.data.lstrip = {"<mask>"};
  recipe.data.trim_offsets = true;
  recipe.bytes = 256;
  SetByteLevelText(false, &recipe.text);
  recipe.normalize = [](absl::string_view raw, std::string* word) {
    AppendByteSpelling(raw, word);
    return true;
  };
  recipe.learn = [](const CountedWords& words, const VocabOptions& settings, TokenizerData data,
                     VocabProgress) -> absl::StatusOr<TokenizerData> {
    auto scheme = std::make_shared<ByteBpeScheme>();
    scheme->merges = MergeLearner(settings, "", true, &data.tokens).Run(words);
    data.scheme = scheme;
    return data;
  };
  return recipe;
}

}  // namespace

constinit const VocabKind kWordPieceVocab = {"wordpiece", "as in BERT", true, WordPieceRecipe};
constinit const VocabKind kByteBpeVocab = {
    "bpe", "byte-level BPE as in RoBERTa, without unknown tokens", std::nullopt, ByteBpeRecipe};

}  // namespace cloze
