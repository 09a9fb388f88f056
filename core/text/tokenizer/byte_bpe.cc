#include "core/text/tokenizer/byte_bpe.h"

#include <algorithm>
#include <string_view>

#include "core/base/status.h"
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

// Bytes of the contraction ('s 't 're 've 'm 'll 'd) at the start of `text`; 0: none.
size_t Contraction(absl::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  if (absl::string_view("stmd").find(text[1]) != absl::string_view::npos) return 2;
  const absl::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

// End of the run of characters of one class from `at` on; *last: where its last character starts.
size_t RunEnd(absl::string_view text, size_t at, Class kind, size_t* last) {
  while (at < text.size()) {
    const CodePoint c = CodePointAt(text, at);
    if (ClassOf(c.value) != kind) break;
    *last = at;
    at += c.size;
  }
  return at;
}

struct ByteTables {
  std::array<char32_t, 256> characters;
  std::array<int16_t, 0x180> bytes;  // of a character, -1: of none
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

}  // namespace

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

size_t ByteWordEnd(absl::string_view text, size_t at) {
  if (const size_t size = Contraction(text.substr(at)); size > 0) return at + size;
  size_t last = at, run = at;
  if (text[at] == ' ' && at + 1 < text.size()) {
    if (ClassOf(CodePointAt(text, at + 1).value) != Class::kSpace) run = at + 1;
  }
  const Class kind = ClassOf(CodePointAt(text, run).value);
  const size_t end = RunEnd(text, run, kind, &last);
  // The last blank before a word goes with that word, or is a word by itself.
  return kind == Class::kSpace && end < text.size() && last > at ? last : end;
}

ByteBpe::ByteBpe(
    absl::Span<const std::string> tokens, absl::Span<const Merge> merges, int32_t unknown) {
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], static_cast<int32_t>(id));
  const auto find = [&](const std::string& token, int32_t otherwise) {
    const auto at = ids.find(token);
    return at == ids.end() ? otherwise : at->second;
  };
  for (int b = 0; b < 256; ++b) {
    std::string spelling;
    AppendUtf8(ByteCharacter(static_cast<uint8_t>(b)), &spelling);
    bytes_[b] = find(spelling, unknown);
  }
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right] = merges[rank];
    const int32_t merged = find(tokens[left] + tokens[right], -1);
    CLOZE_CHECK(merged >= 0);
    merges_.insert_or_assign(Key(left, right), Target{static_cast<int32_t>(rank), merged});
  }
}

// The pair of the symbol at `at` and its right neighbour.
struct ByteBpe::Candidate {
  Target target;
  int32_t at;
  bool operator<(const Candidate& other) const {  // the top of a heap is the greatest
    return target.rank != other.target.rank ? target.rank > other.target.rank : at > other.at;
  }
};

void ByteBpe::Split(absl::string_view word, std::vector<Piece>* pieces) const {
  struct Symbol {
    Piece piece;
    int32_t previous, next;  // -1: none
  };
  thread_local std::vector<Symbol> symbols;
  thread_local std::vector<Candidate> heap;
  symbols.clear(), heap.clear(), pieces->clear();
  for (size_t i = 0; i < word.size(); ++i) {
    const int32_t id = bytes_[static_cast<uint8_t>(word[i])],
                  at = static_cast<int32_t>(symbols.size());
    if (id >= 0)
      symbols.push_back(
          {{id, static_cast<int32_t>(i), static_cast<int32_t>(i + 1)}, at - 1, at + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  const auto consider = [&](int32_t at) {
    if (at < 0 || symbols[at].next < 0) return;
    const auto found = merges_.find(Key(symbols[at].piece.id, symbols[symbols[at].next].piece.id));
    if (found == merges_.end()) return;
    heap.push_back({found->second, at});
    std::push_heap(heap.begin(), heap.end());
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int32_t>(i));
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate top = heap.back();
    heap.pop_back();
    Symbol& left = symbols[top.at];
    if (left.piece.id < 0 || left.next < 0) continue;
    Symbol& right = symbols[left.next];
    const auto found = merges_.find(Key(left.piece.id, right.piece.id));
    if (found == merges_.end() || found->second.id != top.target.id)
      continue;  // one of the two was merged meanwhile
    left.piece.id = top.target.id;
    left.piece.end = right.piece.end;
    left.next = right.next;
    right.piece.id = -1;
    if (left.next >= 0) symbols[left.next].previous = top.at;
    consider(left.previous);
    consider(top.at);
  }
  for (int32_t at = 0; at >= 0; at = symbols[at].next) pieces->push_back(symbols[at].piece);
}

}  // namespace cloze
