// Cutting words and documents into sequences.
#include "tasks/data/windows.h"

#include <algorithm>

namespace cloze {

std::vector<Window> CutIntoWindows(const Tokenizer& tokenizer, absl::Span<const std::string> words, int32_t max_tokens,
                                   WindowCounts* counts) {
  const SpecialIds& special = tokenizer.special();
  const Encoding encoding = tokenizer.EncodeWords(words, /*special=*/false);
  const size_t capacity = max_tokens - 2;
  std::vector<Window> windows;
  size_t at = 0;
  for (size_t w = 0; w < words.size(); ++w) {
    const size_t begin = at;
    while (at < encoding.ids.size() && encoding.words[at] == static_cast<int32_t>(w)) ++at;
    const size_t pieces = at - begin, kept = std::clamp<size_t>(pieces, 1, capacity);
    if (windows.empty() || windows.back().ids.size() + kept > capacity + 1) {
      windows.emplace_back();
      windows.back().ids.push_back(special.cls);
      windows.back().first_word = w;
    }
    Window& window = windows.back();
    window.rows.push_back(window.ids.size());
    if (pieces == 0) {
      window.ids.push_back(special.unk);
      ++counts->empty_words;
    } else {
      window.ids.insert(window.ids.end(), encoding.ids.begin() + begin, encoding.ids.begin() + begin + kept);
    }
    if (pieces > kept) counts->cut_words += 1, counts->cut_tokens += pieces - kept;
  }
  for (Window& window : windows) {
    counts->unknown_tokens += std::count(window.ids.begin(), window.ids.end(), special.unk);
    window.ids.push_back(special.sep);
  }
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
