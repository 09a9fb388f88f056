// Cutting words and documents into sequences.
#include "tasks/windows.h"

#include <algorithm>

namespace cloze {
namespace {

// Pieces of words: those of word w are ids[begin[w]] ... ids[begin[w + 1] - 1], at least one and at
// most `most`.
struct Pieces {
  std::vector<int32_t> ids;
  std::vector<int64_t> begin = {0};
  int64_t of(int64_t first, int64_t last) const { return begin[last] - begin[first]; }
};

Pieces PiecesOf(const Tokenizer& tokenizer, absl::Span<const std::string> words, int64_t most,
    WindowCounts* counts) {
  const Encoding encoding = tokenizer.EncodeWords(words, /*special=*/false);
  Pieces pieces;
  size_t at = 0;
  for (size_t w = 0; w < words.size(); ++w) {
    const size_t begin = at;
    while (at < encoding.ids.size() && encoding.words[at] == static_cast<int32_t>(w)) ++at;
    const int64_t count = at - begin, kept = std::min(count, most);
    pieces.ids.insert(
        pieces.ids.end(), encoding.ids.begin() + begin, encoding.ids.begin() + begin + kept);
    if (count == 0) pieces.ids.push_back(tokenizer.special().unk), ++counts->empty_words;
    if (count > kept) counts->cut_words += 1, counts->cut_tokens += count - kept;
    pieces.begin.push_back(pieces.ids.size());
  }
  counts->unknown_tokens +=
      std::count(pieces.ids.begin(), pieces.ids.end(), tokenizer.special().unk);
  return pieces;
}

Window WindowOf(const Pieces& pieces, int64_t first, int64_t last, const SpecialIds& special) {
  Window window;
  window.first_word = first;
  for (int64_t w = first; w < last; ++w) window.rows.push_back(1 + pieces.of(first, w));
  window.ids.push_back(special.cls);
  window.ids.insert(window.ids.end(), pieces.ids.begin() + pieces.begin[first],
      pieces.ids.begin() + pieces.begin[last]);
  window.ids.push_back(special.sep);
  return window;
}

// Leaves each word to the window in which the nearer end is farthest; nothing is missing at the
// ends of the sentence itself.
void Share(std::vector<Window>* windows) {
  std::vector<int64_t> begins = {0};
  for (size_t i = 0; i + 1 < windows->size(); ++i) {
    const Window &left = (*windows)[i], &right = (*windows)[i + 1];
    const int64_t end = left.first_word + static_cast<int64_t>(left.rows.size());
    begins.push_back((end - 1 + right.first_word) / 2 + 1);
  }
  for (size_t i = 0; i < windows->size(); ++i) {
    Window& window = (*windows)[i];
    if (i + 1 < windows->size()) window.rows.resize(begins[i + 1] - window.first_word);
    window.rows.erase(window.rows.begin(), window.rows.begin() + (begins[i] - window.first_word));
    window.first_word = begins[i];
  }
}

}  // namespace

std::vector<Window> CutIntoWindows(const Tokenizer& tokenizer, absl::Span<const std::string> words,
    int32_t max_tokens, WindowCounts* counts, Overlap overlap) {
  CLOZE_CHECK(max_tokens >= 3);
  const int64_t capacity = max_tokens - 2, n = words.size();
  if (n == 0) return {};
  const Pieces pieces = PiecesOf(tokenizer, words, capacity, counts);
  std::vector<Window> windows;
  for (int64_t first = 0, last = 0; last < n;) {
    while (last < n && pieces.of(first, last + 1) <= capacity) ++last;
    windows.push_back(WindowOf(pieces, first, last, tokenizer.special()));
    int64_t next = last;
    while (
        overlap == Overlap::kHalf && next > first + 1 && pieces.of(next - 1, last) <= capacity / 2)
      --next;
    while (last < n && pieces.of(next, last + 1) > capacity) ++next;  // a long word needs the room
    first = next;
  }
  Share(&windows);
  return windows;
}

bool SequenceCutter::Take(bool complete, std::vector<int32_t>* ids) {
  const int64_t left = pending_.size() - begin_;
  int64_t take = 0;
  if (left >= 2 * capacity_) {
    take = capacity_;
  } else if (complete) {
    take = left > capacity_ ? (left + 1) / 2 : left;
  }
  ids->assign(pending_.begin() + begin_, pending_.begin() + begin_ + take);
  begin_ += take;
  if (take == 0 || begin_ == pending_.size()) {
    pending_.erase(pending_.begin(), pending_.begin() + begin_);
    begin_ = 0;
  }
  return take > 0;
}

}  // namespace cloze
