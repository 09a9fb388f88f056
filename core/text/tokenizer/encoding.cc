#include "core/text/tokenizer/encoding.h"

#include <algorithm>
#include <utility>

namespace cloze {
namespace {

// Appends tokens [begin, end) of `from` to *to.
void Append(const Encoding& from, size_t begin, size_t end, Encoding* to) {
  for (size_t i = begin; i < end; ++i)
    to->Add(from.ids[i], from.types[i], from.words[i], from.bytes[i], from.chars[i]);
}

// Tokens that the reference reads of a text of `count` tokens from `begin` on: it stops after the
// word that reaches `max_length`.
int64_t TokensRead(
    const std::vector<int32_t>& words, int64_t begin, int64_t count, int64_t max_length) {
  int64_t n = std::min(count, max_length);
  while (n > 0 && n < count && words[begin + n] == words[begin + n - 1]) ++n;
  return n;
}

}  // namespace

int64_t FirstKept(int64_t count, Keep keep) {
  return keep == Keep::kHead ? count : keep == Keep::kTail ? 0 : count / 4;
}

int64_t Truncate(Encoding* encoding, int64_t max_length, Keep keep) {
  const int64_t size = encoding->ids.size();
  if (size <= max_length) return 0;
  // The texts are tokens [a, a_end) and [b, b_end); all others are kept.
  const std::vector<int32_t>& words = encoding->words;
  const auto find = [&](int64_t from, bool special) {
    return std::find_if(words.begin() + from, words.end(), [&](int32_t word) {
      return (word < 0) == special;
    }) - words.begin();
  };
  const int64_t a = words[0] < 0 ? 1 : 0, a_end = find(a, true), b = find(a_end, false),
                b_end = find(b, true);
  int64_t keep_a = a_end - a, keep_b = b_end - b;
  const int64_t room = std::max<int64_t>(max_length - (size - keep_a - keep_b), 0);
  if (b == size) {
    keep_a = std::min(keep_a, room);
  } else {
    if (keep == Keep::kHead) {
      const int64_t read = std::max<int64_t>(max_length, 0);
      keep_a = TokensRead(words, a, keep_a, read), keep_b = TokensRead(words, b, keep_b, read);
    }
    // The shorter text stays whole if it fits into half of the room. Otherwise each text gets half
    // and the longer one the odd token.
    int64_t& shorter = keep_a > keep_b ? keep_b : keep_a;
    int64_t& longer = keep_a > keep_b ? keep_a : keep_b;
    shorter = std::min(shorter, room / 2);
    longer = std::min(longer, room - shorter);
  }
  const int64_t head_a = FirstKept(keep_a, keep), head_b = FirstKept(keep_b, keep);
  Encoding cut;
  Append(*encoding, 0, a + head_a, &cut);
  Append(*encoding, a_end - (keep_a - head_a), b + head_b, &cut);
  Append(*encoding, b_end - (keep_b - head_b), size, &cut);
  *encoding = std::move(cut);
  return size - static_cast<int64_t>(encoding->ids.size());
}

}  // namespace cloze
