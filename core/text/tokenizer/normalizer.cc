// Pages of 256 code points: kind and mapping of each, computed once from the options.
#include "core/text/tokenizer/normalizer.h"

#include <memory>

namespace cloze {

struct Normalizer::Page {
  std::array<Kind, 256> kind;
  std::array<std::string, 256> mapped;  // UTF-8; short ones live inside the object
};

Normalizer::Normalizer(NormalizerOptions options) : options_(options), pages_(kPages) {
  const Page& page = PageOf(0);
  first_byte_.fill(Kind::kLookUp);
  for (int c = 0; c < 128; ++c) {
    first_byte_[c] = page.kind[c];
    ascii_[c] = page.mapped[c].empty() ? '\0' : page.mapped[c][0];
  }
}

Normalizer::~Normalizer() {
  for (const auto& page : pages_) delete page.load();
}

const Normalizer::Page& Normalizer::PageOf(char32_t c) const {
  std::atomic<Page*>& slot = pages_[c >> 8];
  Page* page = slot.load(std::memory_order_acquire);
  if (page != nullptr) return *page;
  std::unique_ptr<Page> made(MakePage(c >> 8));
  // Threads that race here computed the same; one of them wins.
  return slot.compare_exchange_strong(page, made.get(), std::memory_order_acq_rel) ? *made.release()
                                                                                   : *page;
}

Normalizer::Page* Normalizer::MakePage(uint32_t number) const {
  auto* page = new Page;
  for (uint32_t i = 0; i < 256; ++i) {
    const char32_t c = number << 8 | i;
    page->kind[i] = Kind::kWord;
    if (options_.clean_text && IsRemoved(c)) {
      page->kind[i] = Kind::kDropped;
      continue;
    }
    if (IsSpace(c)) {
      page->kind[i] = Kind::kSpace;
      continue;
    }
    if (options_.chinese_chars && IsChinese(c)) page->kind[i] = Kind::kAlone;
    for (const char32_t part : options_.strip_accents ? Decompose(c) : std::u32string(1, c)) {
      if (options_.strip_accents && IsMark(part)) continue;
      for (const char32_t lower : options_.lowercase ? Lowercase(part) : std::u32string(1, part)) {
        AppendUtf8(lower, &page->mapped[i]);
        if (IsPunctuation(lower)) page->kind[i] = Kind::kAlone;
      }
    }
    if (page->mapped[i].empty()) page->kind[i] = Kind::kDropped;
  }
  return page;
}

Normalizer::Kind Normalizer::KindOf(char32_t c) const { return PageOf(c).kind[c & 0xFF]; }

void Normalizer::Append(char32_t c, std::string* out) const {
  out->append(PageOf(c).mapped[c & 0xFF]);
}

bool Normalizer::NormalizeWord(absl::string_view word, int64_t max_chars, std::string* out) const {
  out->clear();
  int64_t chars = 0;
  for (size_t at = 0; at < word.size();) {
    const unsigned char lead = word[at];
    if (lead < 0x80) {
      ++at;
      if (first_byte_[lead] == Kind::kDropped) continue;
      out->push_back(ascii_[lead]);
      ++chars;
    } else {
      const CodePoint c = CodePointAt(word, at);
      const std::string& mapped = PageOf(c.value).mapped[c.value & 0xFF];
      for (const char byte : mapped) chars += (byte & 0xC0) != 0x80;
      out->append(mapped);
      at += c.size;
    }
    if (chars > max_chars) return false;
  }
  return true;
}

}  // namespace cloze
