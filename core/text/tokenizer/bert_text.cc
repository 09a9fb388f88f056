#include "core/text/tokenizer/bert_text.h"

#include "core/text/unicode/unicode.h"

namespace cloze {

BertNormalizer::BertNormalizer(NormalizerOptions options) : options_(options), pages_(kPages) {
  const Page& page = PageOf(0);
  first_byte_.fill(Kind::kLookUp);
  for (int c = 0; c < 128; ++c) {
    first_byte_[c] = page.kind[c];
    ascii_[c] = page.mapped[c].empty() ? '\0' : page.mapped[c][0];
  }
}

BertNormalizer::~BertNormalizer() {
  for (const auto& page : pages_) delete page.load();
}

const BertNormalizer::Page& BertNormalizer::PageOf(char32_t c) const {
  std::atomic<Page*>& slot = pages_[c >> 8];
  Page* page = slot.load(std::memory_order_acquire);
  if (page != nullptr) return *page;
  std::unique_ptr<Page> made(MakePage(c >> 8));
  // Threads that race here computed the same page; one of them wins.
  return slot.compare_exchange_strong(page, made.get(), std::memory_order_acq_rel) ? *made.release()
                                                                                   : *page;
}

BertNormalizer::Page* BertNormalizer::MakePage(uint32_t number) const {
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

void BertNormalizer::Append(
    absl::string_view raw, size_t max_bytes, std::string* out, std::vector<int32_t>* source) const {
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

void BertPreTokenizer::Split(absl::string_view text, bool, WordSink sink) const {
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

}  // namespace cloze
