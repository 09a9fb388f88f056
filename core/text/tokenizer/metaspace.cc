// The text stages of SentencePiece: blanks become U+2581, and words start with one.
#include "absl/strings/match.h"
#include "core/text/tokenizer/pipeline.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// Replaces blanks, and invalid UTF-8 by U+FFFD.
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

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(const MetaspaceOptions& options) : options_(options) {}

  void Split(absl::string_view text, Place place, WordSink sink) const override {
    if (!options_.cuts_spaces && !options_.cuts_punctuation)
      return SplitSection(text, 0, text.size(), place, sink);
    size_t begin = 0;
    const auto flush = [&](size_t end) {
      if (begin < end) SplitSection(text, begin, end, place, sink);
    };
    for (size_t at = 0; at < text.size();) {
      const CodePoint c = CodePointAt(text, at);
      const size_t end = at + c.size;
      if (options_.cuts_spaces && IsSpace(c.value)) {
        flush(at);
        begin = end;
      } else if (options_.cuts_punctuation && IsPunctuation(c.value)) {
        flush(at);
        begin = at;
        flush(end);
        begin = end;
      }
      at = end;
    }
    flush(text.size());
  }
  absl::string_view prefix() const override { return kMetaspace; }

 private:
  void SplitSection(
      absl::string_view text, size_t begin, size_t end, Place place, WordSink sink) const {
    using Scheme = MetaspaceOptions::Prepend;
    const auto starts = [&](size_t at) {
      return text[at] == ' ' || absl::StartsWith(text.substr(at), kMetaspace);
    };
    if (begin == end) return;
    bool prefixed = place == Place::kGiven || options_.prepend == Scheme::kAlways ||
                    (options_.prepend == Scheme::kFirst && place == Place::kStart && begin == 0);
    prefixed = prefixed && !starts(begin);
    for (size_t at = begin + 1; options_.split && at < end; ++at) {
      if (!starts(at)) continue;
      sink(begin, at, prefixed);
      begin = at;
      prefixed = false;
    }
    sink(begin, end, prefixed);
  }

  const MetaspaceOptions options_;
};

}  // namespace

void SetMetaspaceText(const MetaspaceOptions& options, Pipeline* pipeline) {
  pipeline->normalizer = std::make_unique<MetaspaceNormalizer>();
  pipeline->pre_tokenizer = std::make_unique<MetaspacePreTokenizer>(options);
}

}  // namespace cloze
