// BERT's normalizer and pre-tokenizer. Both read what a code point means from tables, which are
// filled in pages on first use.
#include <array>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/text/tokenizer/pipeline.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// Maps each code point by itself.
class BertNormalizer final : public Normalizer {
 public:
  // How a code point affects the word it is in. kAlone (punctuation, ideographs) is a word by
  // itself; kLookUp is not the kind of a code point but of a byte that is not ASCII.
  enum class Kind : uint8_t { kWord, kDropped, kSpace, kAlone, kLookUp };

  explicit BertNormalizer(const NormalizerOptions& options)
      : options_(options), pages_(0x110000 >> 8) {
    const Page& page = PageOf(0);
    first_byte_.fill(Kind::kLookUp);
    for (int c = 0; c < 128; ++c) {
      first_byte_[c] = page.kind[c];
      ascii_[c] = page.mapped[c].empty() ? '\0' : page.mapped[c][0];
    }
  }
  ~BertNormalizer() override {
    for (const auto& page : pages_) delete page.load();
  }

  void Append(absl::string_view raw, size_t max_bytes, std::string* out,
      std::vector<int32_t>* source) const override {
    int32_t index = 0;
    for (size_t at = 0; at < raw.size() && out->size() <= max_bytes; ++index) {
      const unsigned char lead = raw[at];
      if (lead < 0x80) {
        ++at;
        if (first_byte_[lead] != Kind::kDropped) out->push_back(ascii_[lead]);
      } else {
        const CodePoint c = CodePointAt(raw, at);
        out->append(PageOf(c.value).mapped[c.value & 0xFF]);
        at += c.size;
      }
      if (source != nullptr) source->resize(out->size(), index);
    }
  }

  bool MovesCharacters(absl::string_view raw) const override {
    // Code points below U+0300 stay in their places; the first bytes of others are above 0xCB.
    for (size_t at = 0; options_.strip_accents && at < raw.size();) {
      uint64_t eight = 0x80;
      if (at + 8 <= raw.size()) std::memcpy(&eight, raw.data() + at, 8);
      if ((eight & 0x8080808080808080) == 0) {  // all ASCII
        at += 8;
        continue;
      }
      if (static_cast<unsigned char>(raw[at]) <= 0xCB) {
        ++at;
        continue;
      }
      const CodePoint c = CodePointAt(raw, at);
      if (PageOf(c.value).moves[c.value & 0xFF]) return true;
      at += c.size;
    }
    return false;
  }

  Kind KindOfByte(char byte) const { return first_byte_.data()[static_cast<unsigned char>(byte)]; }
  Kind KindOf(char32_t c) const { return PageOf(c).kind[c & 0xFF]; }

 private:
  // 256 code points.
  struct Page {
    std::array<Kind, 256> kind;
    std::array<std::string, 256> mapped;  // UTF-8; short strings live inside the object
    std::array<bool, 256> moves = {};     // NFD can exchange a part that is kept with other marks
  };

  const Page& PageOf(char32_t c) const {
    std::atomic<Page*>& slot = pages_[c >> 8];
    Page* page = slot.load(std::memory_order_acquire);
    if (page != nullptr) return *page;
    std::unique_ptr<Page> made = MakePage(c >> 8);
    // Threads that race here computed the same page; one of them wins.
    const bool won = slot.compare_exchange_strong(page, made.get(), std::memory_order_acq_rel);
    return won ? *made.release() : *page;
  }
  std::unique_ptr<Page> MakePage(uint32_t number) const;

  const NormalizerOptions options_;
  std::array<Kind, 256> first_byte_;
  std::array<char, 128> ascii_;  // normal forms
  mutable std::vector<std::atomic<Page*>> pages_;
};

std::unique_ptr<BertNormalizer::Page> BertNormalizer::MakePage(uint32_t number) const {
  auto page = std::make_unique<Page>();
  for (uint32_t i = 0; i < 256; ++i) {
    const char32_t c = number << 8 | i;
    Kind& kind = page->kind[i];
    kind = options_.clean_text && IsRemoved(c)      ? Kind::kDropped
           : IsSpace(c)                             ? Kind::kSpace
           : options_.chinese_chars && IsChinese(c) ? Kind::kAlone
                                                    : Kind::kWord;
    if (kind == Kind::kDropped || kind == Kind::kSpace) continue;
    for (const char32_t part : options_.strip_accents ? Decompose(c) : std::u32string(1, c)) {
      if (options_.strip_accents && IsMark(part)) continue;
      if (options_.strip_accents && CombiningClass(part) != 0) page->moves[i] = true;
      for (const char32_t lower : options_.lowercase ? Lowercase(part) : std::u32string(1, part)) {
        AppendUtf8(lower, &page->mapped[i]);
        if (IsPunctuation(lower)) kind = Kind::kAlone;
      }
    }
    if (page->mapped[i].empty()) kind = Kind::kDropped;
  }
  return page;
}

// A word begins and ends with characters that it keeps; it may have dropped ones in between.
class BertPreTokenizer final : public PreTokenizer {
 public:
  explicit BertPreTokenizer(const BertNormalizer* normalizer) : normalizer_(*normalizer) {}

  void Split(absl::string_view text, WordContext, WordSink sink) const override {
    using Kind = BertNormalizer::Kind;
    size_t begin = 0, end = 0;  // a word is open if begin < end
    const auto flush = [&] {
      if (begin < end) sink(begin, end, false);
      begin = end = 0;
    };
    for (size_t at = 0; at < text.size();) {
      Kind kind = normalizer_.KindOfByte(text[at]);
      size_t size = 1;
      if (kind == Kind::kLookUp) {
        const CodePoint c = CodePointAt(text, at);
        kind = normalizer_.KindOf(c.value), size = c.size;
      }
      if (kind == Kind::kWord) {
        if (begin == end) begin = at;
        end = at + size;
      } else if (kind != Kind::kDropped) {
        flush();
        if (kind == Kind::kAlone) sink(at, at + size, false);
      }
      at += size;
    }
    flush();
  }

 private:
  const BertNormalizer& normalizer_;
};

// Cleans texts and puts spaces around ideographs.
class CleanStep final : public TextStep {
 public:
  explicit CleanStep(const NormalizerOptions& options) : options_(options) {}

  void Apply(NormalText* text) const override {
    ReplaceEach(text, [this](char32_t c, std::string* with) {
      if (options_.clean_text && IsRemoved(c)) return;
      const bool alone = options_.chinese_chars && IsChinese(c);
      if (alone) *with += ' ';
      AppendUtf8(options_.clean_text && IsSpace(c) ? U' ' : c, with);
      if (alone) *with += ' ';
    });
  }

 private:
  const NormalizerOptions options_;
};

}  // namespace

TextSteps MakeBertSteps(const NormalizerOptions& options) {
  TextSteps steps = {std::make_shared<CleanStep>(options)};
  if (options.strip_accents)
    steps.insert(steps.end(), {MakeNormalForm(NormalForm::kNfd), MakeDrop(IsMark)});
  if (options.lowercase) steps.push_back(MakeLowercase());
  return steps;
}

void SetBertText(const NormalizerOptions& options, Pipeline* pipeline) {
  auto normalizer = std::make_unique<BertNormalizer>(options);
  pipeline->pre_tokenizer = std::make_unique<BertPreTokenizer>(normalizer.get());
  pipeline->normalizer = std::move(normalizer);
}

}  // namespace cloze
