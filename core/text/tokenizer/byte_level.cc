// The text stages of GPT-2 and RoBERTa: words keep their leading space, bytes stay as they are.
#include <array>

#include "core/text/tokenizer/pipeline.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

enum class Class : uint8_t { kLetter, kNumber, kSpace, kOther };

Class ClassOf(char32_t c) {
  if (c < 0x80) {
    const char lower = static_cast<char>(c | 0x20);
    if (lower >= 'a' && lower <= 'z') return Class::kLetter;
    if (c >= '0' && c <= '9') return Class::kNumber;
    return c == ' ' || (c >= '\t' && c <= '\r') ? Class::kSpace : Class::kOther;
  }
  return IsLetter(c)   ? Class::kLetter
         : IsNumber(c) ? Class::kNumber
         : IsSpace(c)  ? Class::kSpace
                       : Class::kOther;
}

Class ClassAt(absl::string_view text, size_t at) { return ClassOf(CodePointAt(text, at).value); }

// Bytes of the contraction ('s 't 're 've 'm 'll 'd) at the start of `text`; 0 if there is none.
size_t Contraction(absl::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  if (absl::string_view("stmd").find(text[1]) != absl::string_view::npos) return 2;
  const absl::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

// Returns the end of the word that starts at text[at]. `space`: as if a space preceded it.
size_t WordEnd(absl::string_view text, size_t at, bool space) {
  if (!space) {
    if (const size_t size = Contraction(text.substr(at)); size > 0) return at + size;
  }
  size_t end = at;
  if (!space && text[at] == ' ' && at + 1 < text.size() && ClassAt(text, at + 1) != Class::kSpace)
    ++end;
  const Class kind = ClassAt(text, end);
  size_t last = end;  // where the last character of the word starts
  while (end < text.size()) {
    const CodePoint c = CodePointAt(text, end);
    if (ClassOf(c.value) != kind) break;
    last = end;
    end += c.size;
  }
  // The last space before a word goes with that word, or is a word by itself.
  return kind == Class::kSpace && end < text.size() && (space || last > at) ? last : end;
}

struct ByteTables {
  std::array<char32_t, 256> characters;
  std::array<int16_t, 0x180> bytes;  // of a character; -1 if it spells none
  ByteTables() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
      characters[b] = printable ? b : next++;
      bytes[characters[b]] = static_cast<int16_t>(b);
    }
  }
};

const ByteTables& Tables() {
  static const ByteTables tables;
  return tables;
}

class Utf8Normalizer final : public Normalizer {
 public:
  void Append(absl::string_view raw, size_t, std::string* out,
      std::vector<int32_t>* source) const override {
    int32_t index = 0;
    for (size_t at = 0; at < raw.size(); ++index) {
      const CodePoint c = CodePointAt(raw, at);
      AppendUtf8(c.value, out);
      if (source != nullptr) source->resize(out->size(), index);
      at += c.size;
    }
  }
};

class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  explicit ByteLevelPreTokenizer(bool add_prefix_space) : add_prefix_space_(add_prefix_space) {}

  void Split(absl::string_view text, WordContext context, WordSink sink) const override {
    size_t at = 0;
    if ((add_prefix_space_ || context.given) && !text.empty() && text[0] != ' ') {
      at = WordEnd(text, 0, true);
      sink(0, at, true);
    }
    for (size_t end; at < text.size(); at = end) {
      end = WordEnd(text, at, false);
      sink(at, end, false);
    }
  }
  absl::string_view prefix() const override { return " "; }

 private:
  const bool add_prefix_space_;
};

}  // namespace

void SetByteLevelText(bool add_prefix_space, Pipeline* pipeline) {
  pipeline->normalizer = std::make_unique<Utf8Normalizer>();
  pipeline->pre_tokenizer = std::make_unique<ByteLevelPreTokenizer>(add_prefix_space);
}

char32_t ByteCharacter(uint8_t byte) { return Tables().characters[byte]; }

void AppendByteSpelling(absl::string_view bytes, std::string* out) {
  for (const char b : bytes) AppendUtf8(ByteCharacter(static_cast<uint8_t>(b)), out);
}

std::string BytesOfToken(absl::string_view token) {
  std::string bytes;
  for (size_t at = 0; at < token.size();) {
    const CodePoint c = CodePointAt(token, at);
    const int byte = c.value < Tables().bytes.size() ? Tables().bytes[c.value] : -1;
    if (byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
    } else {
      bytes.append(token.data() + at, c.size);
    }
    at += c.size;
  }
  return bytes;
}

}  // namespace cloze
