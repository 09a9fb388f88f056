// BERT's normaliser and pre-tokenizer: which bytes make a word, and what that word is once it is
// cleaned, lower-cased and stripped of accents.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_NORMALIZER_H_
#define CLOZE_CORE_TEXT_TOKENIZER_NORMALIZER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/text/unicode/unicode.h"

namespace cloze {

struct NormalizerOptions {
  bool clean_text = true;     // drop control characters
  bool chinese_chars = true;  // ideographs are words of their own
  bool strip_accents = true;  // NFD, then drop nonspacing marks
  bool lowercase = true;
};

// Const methods are thread-safe; the tables are filled page by page when a page is first met.
class Normalizer {
 public:
  // What a code point does to the word it stands in. `kAlone` (punctuation, ideographs) is a word
  // by itself.
  enum class Kind : uint8_t { kWord, kDropped, kSpace, kAlone, kLookUp };

  explicit Normalizer(NormalizerOptions options);
  ~Normalizer();
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;

  // Calls f(begin, end) for each word of `text`: bytes [begin, end) hold its first to its last
  // character; between these may be dropped ones.
  template <class F>
  void ForEachWord(absl::string_view text, F f) const;

  // Appends the normalised form of one code point; nothing for one that is dropped.
  void Append(char32_t code_point, std::string* out) const;

  // Sets *out to the normalised form of a word; false, with *out unspecified, when that is longer
  // than max_chars code points.
  bool NormalizeWord(absl::string_view word, int64_t max_chars, std::string* out) const;

  const NormalizerOptions& options() const { return options_; }

 private:
  struct Page;
  static constexpr int kPages = 0x110000 >> 8;

  const Page& PageOf(char32_t c) const;
  Page* MakePage(uint32_t number) const;
  Kind KindOf(char32_t c) const;

  const NormalizerOptions options_;
  std::array<Kind, 256> first_byte_;  // kLookUp for bytes over 0x7F
  std::array<char, 128> ascii_;       // mapped ASCII
  mutable std::vector<std::atomic<Page*>> pages_;
};

template <class F>
void Normalizer::ForEachWord(absl::string_view text, F f) const {
  size_t begin = 0, end = 0;  // no word is open when they are equal
  const auto flush = [&] {
    if (begin < end) f(begin, end);
    begin = end = 0;
  };
  for (size_t at = 0; at < text.size();) {
    Kind kind = first_byte_[static_cast<unsigned char>(text[at])];
    size_t size = 1;
    if (kind == Kind::kLookUp) {
      const CodePoint c = CodePointAt(text, at);
      kind = KindOf(c.value), size = c.size;
    }
    if (kind == Kind::kWord) {
      if (begin == end) begin = at;
      end = at + size;
    } else if (kind != Kind::kDropped) {
      flush();
      if (kind == Kind::kAlone) f(at, at + size);
    }
    at += size;
  }
  flush();
}

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_NORMALIZER_H_
