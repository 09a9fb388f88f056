// The text stages of SentencePiece: spaces become U+2581, and words start with one.
#include <array>

#include "core/text/tokenizer/pipeline.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// Replaces spaces, and invalid UTF-8 by U+FFFD.
class MetaspaceNormalizer final : public Normalizer {
 public:
  void Append(absl::string_view raw, size_t, std::string* out,
      std::vector<int32_t>* source) const override {
    int32_t index = 0;
    for (size_t at = 0; at < raw.size(); ++index) {
      const CodePoint c = CodePointAt(raw, at);
      if (c.value == ' ') {
        absl::StrAppend(out, kMetaspace);
      } else {
        AppendUtf8(c.value, out);
      }
      if (source != nullptr) source->resize(out->size(), index);
      at += c.size;
    }
  }
};

// Cuts in one pass over the bytes, most of which have no meaning for it.
class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(const MetaspaceOptions& options) : options_(options) {
    for (int b = 0; b < 256; ++b) {
      // Lead bytes of all white space and of U+2581 beyond ASCII.
      plain_[b] = b >= 0x80 ? !(b == 0xC2 || (b >= 0xE1 && b <= 0xE3) ||
                                  (b > 0xC2 && options.cuts_punctuation))
                            : !IsSpace(b) && !(options.cuts_punctuation && IsPunctuation(b));
    }
  }

  void Split(absl::string_view text, WordContext context, WordSink sink) const override {
    size_t begin = 0;   // of the word
    bool first = true;  // the word starts a part, and may get a prefix
    const auto flush = [&](size_t end, bool next_first) {
      if (begin < end) sink(begin, end, first && Prefixed(text, begin, context));
      begin = end, first = next_first;
    };
    for (size_t at = 0, end; at < text.size(); at = end) {
      end = at + 1;
      if (plain_[static_cast<uint8_t>(text[at])]) continue;
      const CodePoint c = CodePointAt(text, at);
      end = at + c.size;
      if (options_.cuts_spaces && IsSpace(c.value)) {
        flush(at, true);
        begin = end;
      } else if (options_.cuts_punctuation && IsPunctuation(c.value)) {
        flush(at, true);
        flush(end, true);
      } else if (options_.split && at > begin && Starts(c.value)) {
        flush(at, false);
      }
    }
    flush(text.size(), true);
  }
  bool cuts_only_spaces() const override { return true; }
  bool needs_start() const override {
    return options_.prepend == MetaspaceOptions::Prepend::kFirst;
  }
  absl::string_view prefix() const override { return kMetaspace; }

 private:
  static bool Starts(char32_t c) { return c == ' ' || c == 0x2581; }

  // True if a part at text[at] gets a prefix.
  bool Prefixed(absl::string_view text, size_t at, WordContext context) const {
    using Scheme = MetaspaceOptions::Prepend;
    if (Starts(CodePointAt(text, at).value)) return false;
    return options_.prepend == Scheme::kAlways ||
           (options_.prepend == Scheme::kFirst && at < context.start);
  }

  const MetaspaceOptions options_;
  std::array<bool, 256> plain_;  // bytes that are passed over
};

}  // namespace

void SetMetaspaceText(const MetaspaceOptions& options, Pipeline* pipeline) {
  pipeline->normalizer = std::make_unique<MetaspaceNormalizer>();
  pipeline->pre_tokenizer = std::make_unique<MetaspacePreTokenizer>(options);
}

}  // namespace cloze
