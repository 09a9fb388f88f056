// BERT's normaliser and pre-tokenizer. Words end at white space, punctuation and (by option) at
// ideographs; their normal form is cleaned, lower-cased and stripped of accents.
#ifndef CLOZE_CORE_TEXT_TOKENIZER_BERT_TEXT_H_
#define CLOZE_CORE_TEXT_TOKENIZER_BERT_TEXT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/text/tokenizer/pipeline.h"

namespace cloze {

struct NormalizerOptions {
  bool clean_text = true;     // drop control characters
  bool chinese_chars = true;  // ideographs are words of their own
  bool strip_accents = true;  // NFD, then drop nonspacing marks
  bool lowercase = true;
};

// Maps each code point by itself, with tables that are filled in pages on first use.
class BertNormalizer final : public Normalizer {
 public:
  // How a code point affects the word it is in. kAlone (punctuation, ideographs) is a word by
  // itself; kLookUp is not the kind of a code point but of a byte that is not ASCII.
  enum class Kind : uint8_t { kWord, kDropped, kSpace, kAlone, kLookUp };

  explicit BertNormalizer(NormalizerOptions options);
  ~BertNormalizer() override;

  void Append(absl::string_view raw, size_t max_bytes, std::string* out,
      std::vector<int32_t>* source) const override;

  Kind KindOfByte(char byte) const { return first_byte_.data()[static_cast<unsigned char>(byte)]; }
  Kind KindOf(char32_t c) const { return PageOf(c).kind[c & 0xFF]; }

 private:
  // 256 code points.
  struct Page {
    std::array<Kind, 256> kind;
    std::array<std::string, 256> mapped;  // UTF-8; short strings live inside the object
  };
  static constexpr int kPages = 0x110000 >> 8;

  const Page& PageOf(char32_t c) const;
  Page* MakePage(uint32_t number) const;

  const NormalizerOptions options_;
  std::array<Kind, 256> first_byte_;
  std::array<char, 128> ascii_;  // normal forms
  mutable std::vector<std::atomic<Page*>> pages_;
};

// A word begins and ends with characters that it keeps; it may have dropped ones in between.
class BertPreTokenizer final : public PreTokenizer {
 public:
  // `normalizer` must outlive this object.
  explicit BertPreTokenizer(const BertNormalizer* normalizer) : normalizer_(*normalizer) {}
  void Split(absl::string_view text, bool given, WordSink sink) const override;

 private:
  const BertNormalizer& normalizer_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_TOKENIZER_BERT_TEXT_H_
