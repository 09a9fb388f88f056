// Texts that are too long: which tokens stay.
#include <algorithm>

#include "core/text/tokenizer/tokenizer.h"

namespace cloze {
namespace {

// Appends tokens [begin, end) of `from`.
void Append(const Encoding& from, size_t begin, size_t end, Encoding* to) {
  const auto copy = [&](const auto& source, auto* target) {
    target->insert(target->end(), source.begin() + begin, source.begin() + end);
  };
  copy(from.ids, &to->ids);
  copy(from.types, &to->types);
  copy(from.words, &to->words);
  copy(from.bytes, &to->bytes);
  copy(from.chars, &to->chars);
}

}  // namespace

int64_t FirstKept(int64_t count, Keep keep) {
  return keep == Keep::kHead ? count : keep == Keep::kTail ? 0 : count / 4;
}

int64_t Tokenizer::Truncate(Encoding* encoding, int64_t max_length, Keep keep) const {
  const int64_t size = encoding->ids.size();
  if (size <= max_length) return 0;
  // The texts are [a, a_end) and [b, b_end); what is around them is kept.
  const std::vector<int32_t>& words = encoding->words;
  const auto find = [&](int64_t from, bool around) {
    return std::find_if(words.begin() + from, words.end(), [&](int32_t word) {
      return (word < 0) == around;
    }) - words.begin();
  };
  const int64_t a = words[0] < 0 ? 1 : 0, a_end = find(a, true), b = find(a_end, false),
                b_end = find(b, true);
  int64_t keep_a = a_end - a, keep_b = b_end - b;
  const int64_t room = std::max<int64_t>(max_length - (size - keep_a - keep_b), 0);
  max_length = std::max<int64_t>(max_length, 0);
  if (b == size) {
    keep_a = std::min(keep_a, room);
  } else {
    // As Hugging Face: the shorter text stays whole if it fits into half of the room, else both get
    // half, the longer one the odd token. The reference stops to read a text after the word that
    // reaches max_length.
    const auto read = [&](int64_t begin, int64_t count) {
      if (keep != Keep::kHead) return count;
      int64_t n = std::min(count, max_length);
      while (n > 0 && n < count && words[begin + n] == words[begin + n - 1]) ++n;
      return n;
    };
    keep_a = read(a, keep_a), keep_b = read(b, keep_b);
    int64_t& shorter = keep_a > keep_b ? keep_b : keep_a;
    int64_t& longer = keep_a > keep_b ? keep_a : keep_b;
    shorter = std::min(shorter, room / 2);
    longer = std::min(longer, room - shorter);
  }
  Encoding cut;
  Append(*encoding, 0, a + FirstKept(keep_a, keep), &cut);
  if (a_end >= a)
    Append(
        *encoding, a_end - (keep_a - FirstKept(keep_a, keep)), b + FirstKept(keep_b, keep), &cut);
  Append(*encoding, b_end - (keep_b - FirstKept(keep_b, keep)), size, &cut);
  *encoding = std::move(cut);
  return size - static_cast<int64_t>(encoding->ids.size());
}

}  // namespace cloze
