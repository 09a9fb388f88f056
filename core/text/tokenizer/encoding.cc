// The tokens of a text with their offsets, and how a long text is truncated.
#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/text/tokenizer/tokenizer.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// Returns the white space at the start of a token, with byte-level spaces.
int64_t LeadingSpaces(absl::string_view token) {
  int64_t count = 0;
  for (size_t at = 0; at < token.size(); ++count) {
    const CodePoint c = CodePointAt(token, at);
    if (c.value != ByteCharacter(' ') && !IsSpace(c.value)) break;
    at += c.size;
  }
  return count;
}

int64_t TrailingSpaces(absl::string_view token) {
  int64_t count = 0;
  for (size_t end = token.size(); end > 0; ++count) {
    size_t at = end - 1;
    while (at > 0 && (token[at] & 0xC0) == 0x80) --at;
    if (LeadingSpaces(token.substr(at, end - at)) == 0) break;
    end = at;
  }
  return count;
}

// Returns the end of the `count` code points at text[at], or of the text.
int64_t SkipCodePoints(absl::string_view text, int64_t at, int64_t count) {
  for (; count > 0 && at < static_cast<int64_t>(text.size()); --count)
    at += CodePointAt(text, at).size;
  return at;
}

// White space at the two ends of a token that has some.
struct OuterSpaces {
  size_t token;  // of the encoding
  int64_t leading, trailing;
};

// Memory of a thread.
struct EncodeScratch {
  std::string word;  // normalized
  std::vector<Subword> pieces;
  std::vector<int32_t> source;  // code point of the raw word that each byte of `word` comes from
  std::vector<OuterSpaces> spaces;  // of a text, if spans are trimmed
};
thread_local EncodeScratch encode_scratch;

// Adds the tokens of a text to an encoding.
class TextEncoder {
 public:
  // `text`, `tokens` (by id), `pipeline` and `encoding` must outlive this object. `number` is that
  // of the first word, or of all words if the text is given as one word.
  TextEncoder(const Pipeline& pipeline, absl::Span<const std::string> tokens,
      absl::string_view text, bool given, int32_t number, Encoding* encoding)
      : pipeline_(pipeline), tokens_(tokens), text_(text), encoding_(*encoding), given_(given),
        number_(number) {}

  // `first`: the text is not a given word after others.
  void Run(bool first);

 private:
  // Sets the position in the text to byte `to`.
  void Advance(int64_t to) {
    if (to < byte_) {
      chars_ -= CountCodePoints(text_.substr(to, byte_ - to));
    } else {
      chars_ += CountCodePoints(text_.substr(byte_, to - byte_));
    }
    byte_ = to;
  }
  // Adds the tokens of the words in bytes [begin, end) of the text.
  void AddWords(size_t begin, size_t end, WordContext context);
  // Normalizes bytes [begin, end) of the text, and adds the tokens of the result.
  void AddNormalized(size_t begin, size_t end);
  void AddToken(const AddedTokens::Match& match);
  // Adds the tokens of the word at bytes `word` of the text, and passes it.
  void AddWord(Span word, bool prefixed);
  // Adds a token, whose characters are `shown`. `prefixed`: it begins with the prefix.
  void Add(int32_t id, absl::string_view shown, bool prefixed, Span bytes, Span chars);
  // Trims the spans of the tokens from `begin` on, as Hugging Face does. `first`: as for Run.
  void Trim(size_t begin, bool first);

  const Pipeline& pipeline_;
  const absl::Span<const std::string> tokens_;
  const absl::string_view text_;
  Encoding& encoding_;
  const bool given_;
  int32_t number_;
  int64_t byte_ = 0, chars_ = 0;  // how much of the text has been passed
  EncodeScratch& scratch_ = encode_scratch;
};

void TextEncoder::Add(int32_t id, absl::string_view shown, bool prefixed, Span bytes, Span chars) {
  if (pipeline_.post.trims_spans) {
    // A prefix is no part of the text. The reference takes the first character instead.
    const int64_t leading = prefixed ? 0 : LeadingSpaces(shown), trailing = TrailingSpaces(shown);
    if (leading > 0 || trailing > 0)
      scratch_.spaces.push_back({encoding_.ids.size(), leading, trailing});
  }
  encoding_.Add(id, 0, number_, bytes, chars);
}

void TextEncoder::Trim(size_t begin, bool first) {
  const bool keeps_first = pipeline_.post.keeps_first_space;
  for (auto [token, leading, trailing] : scratch_.spaces) {
    Span &bytes = encoding_.bytes[token], &chars = encoding_.chars[token];
    if (keeps_first && leading == 1 && ((first && token == begin) || chars.begin == 0)) leading = 0;
    if (leading == 0 && trailing == 0) continue;
    leading = std::min(leading, chars.end - chars.begin);
    bytes.begin = SkipCodePoints(text_, bytes.begin, leading);
    chars.begin += leading;
    if (chars.end >= trailing) chars.end = std::max(chars.end - trailing, chars.begin);
    bytes.end = SkipCodePoints(text_, bytes.begin, chars.end - chars.begin);
  }
}

void TextEncoder::AddWord(Span word, bool prefixed) {
  const absl::string_view raw = text_.substr(word.begin, word.end - word.begin);
  const std::string& normal = scratch_.word;
  std::vector<Subword>& pieces = scratch_.pieces;
  Advance(word.begin);
  pipeline_.Normalize(raw, prefixed, &scratch_.word);
  pipeline_.model->Split(normal, &pieces);
  // One piece over all of the word needs no map, and a word that is too long has none.
  const bool whole =
      !raw.empty() && pieces.size() == 1 && pieces[0].begin == 0 && pieces[0].end == normal.size();
  const int64_t count = CountCodePoints(raw);
  if (!whole) pipeline_.Normalize(raw, prefixed, &scratch_.word, &scratch_.source);
  Span bytes = word, chars{chars_, chars_ + count};
  int64_t at = word.begin, passed = 0;  // bytes of the text, and code points of the word before
  const Subword* last = nullptr;
  for (const Subword& piece : pieces) {
    // Tokens of unknown bytes have the span of all of them.
    const bool same = last != nullptr && piece.begin == last->begin && piece.end == last->end;
    last = &piece;
    if (!whole && !same) {
      const int64_t first = scratch_.source[piece.begin], end = scratch_.source[piece.end - 1] + 1;
      // A word that is only the prefix covers the next character, if there is one.
      at = SkipCodePoints(text_, at, first - passed), passed = first;
      bytes = {at, SkipCodePoints(text_, at, end - first)};
      chars = {chars_ + first, chars_ + end};
    }
    const absl::string_view part(normal.data() + piece.begin, piece.end - piece.begin);
    Add(piece.id, pipeline_.model->ShowsText(piece.id) ? part : tokens_[piece.id],
        prefixed && piece.begin == 0, bytes, chars);
  }
  byte_ = word.end, chars_ += count;
  number_ += !given_;
  ClearScratch(&pieces), ClearScratch(&scratch_.word), ClearScratch(&scratch_.source);
}

void TextEncoder::AddWords(size_t begin, size_t end, WordContext context) {
  const absl::string_view part = text_.substr(begin, end - begin);
  pipeline_.pre_tokenizer->Split(part, context, [&](size_t from, size_t to, bool prefixed) {
    AddWord({static_cast<int64_t>(begin + from), static_cast<int64_t>(begin + to)}, prefixed);
  });
}

void TextEncoder::AddToken(const AddedTokens::Match& match) {
  const Span bytes = match.span;
  Advance(bytes.begin);
  const int64_t chars = chars_;
  Advance(bytes.end);
  Add(match.id, text_.substr(bytes.begin, bytes.end - bytes.begin), false, bytes, {chars, chars_});
  number_ += !given_;
}

void TextEncoder::AddNormalized(size_t begin, size_t end) {
  NormalText normal;
  pipeline_.NormalizeText(text_.substr(begin, end - begin), true, &normal);
  const size_t first = encoding_.ids.size();
  TextEncoder inner(pipeline_, tokens_, normal.text, given_, number_, &encoding_);
  ForEachPart(
      pipeline_.added_normal, normal.text,
      [&](size_t from, size_t to) {
        inner.AddWords(from, to, Pipeline::ContextOf(normal, from, begin, given_));
      },
      [&](const AddedTokens::Match& match) { inner.AddToken(match); });
  number_ = inner.number_;
  Span last{-1, -1};  // of the token before, in the normalized text
  for (size_t i = first; i < encoding_.ids.size(); ++i) {
    Span bytes = encoding_.bytes[i];
    // Tokens of unknown bytes have the span of all of them.
    const bool same = bytes.begin == last.begin && bytes.end == last.end;
    last = bytes;
    if (same) {
      encoding_.bytes[i] = encoding_.bytes[i - 1], encoding_.chars[i] = encoding_.chars[i - 1];
      continue;
    }
    if (bytes.begin < bytes.end) {
      bytes = {normal.source[bytes.begin].begin, normal.source[bytes.end - 1].end};
    } else {
      const auto at = bytes.begin > 0 ? normal.source[bytes.begin - 1].end : 0;
      bytes = {at, at};
    }
    const auto offset = static_cast<int64_t>(begin);
    encoding_.bytes[i] = {offset + bytes.begin, offset + bytes.end};
    Advance(offset + bytes.begin);
    encoding_.chars[i].begin = chars_;
    Advance(offset + bytes.end);
    encoding_.chars[i].end = chars_;
  }
  Advance(end);
}

void TextEncoder::Run(bool first) {
  const size_t begin = encoding_.ids.size();
  scratch_.spaces.clear();
  ForEachPart(
      pipeline_.added, text_,
      [&](size_t begin, size_t end) {
        if (pipeline_.NormalizesText(text_.substr(begin, end - begin)))
          return AddNormalized(begin, end);
        AddWords(begin, end, {.start = begin == 0, .given = given_});
      },
      [&](const AddedTokens::Match& match) { AddToken(match); });
  Trim(begin, first);
}

// Puts special tokens, if `special`, around the tokens that add_text(text, encoding) adds.
Encoding Assemble(const std::vector<PostProcessor::Item>& items, bool special,
    absl::FunctionRef<void(int, Encoding*)> add_text) {
  Encoding encoding;
  for (const PostProcessor::Item& item : items) {
    const size_t begin = encoding.types.size();
    if (item.text >= 0) {
      add_text(item.text, &encoding);
      std::fill(encoding.types.begin() + begin, encoding.types.end(), item.type);
    } else if (special) {
      encoding.Add(item.id, item.type, -1, {}, {});
    }
  }
  return encoding;
}

// Appends tokens [begin, end) of `from` to *to.
void Append(const Encoding& from, size_t begin, size_t end, Encoding* to) {
  for (size_t i = begin; i < end; ++i)
    to->Add(from.ids[i], from.types[i], from.words[i], from.bytes[i], from.chars[i]);
}

// Returns how many of the `count` tokens from `begin` on Hugging Face reads: it stops after the
// word that reaches `max_length`.
int64_t TokensRead(
    const std::vector<int32_t>& words, int64_t begin, int64_t count, int64_t max_length) {
  int64_t n = std::min(count, max_length);
  while (n > 0 && n < count && words[begin + n] == words[begin + n - 1]) ++n;
  return n;
}

}  // namespace

Encoding Tokenizer::Encode(absl::string_view text, bool special) const {
  return Assemble(pipeline_.post.single, special, [&](int, Encoding* encoding) {
    TextEncoder(pipeline_, data_.tokens, text, false, 0, encoding).Run(true);
  });
}

Encoding Tokenizer::EncodePair(absl::string_view a, absl::string_view b) const {
  return Assemble(pipeline_.post.pair, true, [&](int text, Encoding* encoding) {
    TextEncoder(pipeline_, data_.tokens, text == 0 ? a : b, false, 0, encoding).Run(true);
  });
}

Encoding Tokenizer::EncodeWords(absl::Span<const std::string> words, bool special) const {
  return Assemble(pipeline_.post.single, special, [&](int, Encoding* encoding) {
    const size_t begin = encoding->ids.size();
    for (size_t i = 0; i < words.size(); ++i)
      TextEncoder(pipeline_, data_.tokens, words[i], true, static_cast<int32_t>(i), encoding)
          .Run(encoding->ids.size() == begin);
  });
}

int64_t FirstKept(int64_t count, Keep keep) {
  return keep == Keep::kHead ? count : keep == Keep::kTail ? 0 : count / 4;
}

int64_t Truncate(Encoding* encoding, int64_t max_length, Keep keep) {
  const int64_t size = encoding->ids.size();
  if (size <= max_length) return 0;
  // The texts are tokens [a, a_end) and [b, b_end); all others are kept.
  const std::vector<int32_t>& words = encoding->words;
  const auto find = [&](int64_t from, bool special) {
    return std::find_if(words.begin() + from, words.end(), [&](int32_t word) {
      return (word < 0) == special;
    }) - words.begin();
  };
  const int64_t a = words[0] < 0 ? 1 : 0, a_end = find(a, true), b = find(a_end, false),
                b_end = find(b, true);
  int64_t keep_a = a_end - a, keep_b = b_end - b;
  const int64_t room = std::max<int64_t>(max_length - (size - keep_a - keep_b), 0);
  if (b == size) {
    keep_a = std::min(keep_a, room);
  } else {
    if (keep == Keep::kHead) {
      const int64_t read = std::max<int64_t>(max_length, 0);
      keep_a = TokensRead(words, a, keep_a, read), keep_b = TokensRead(words, b, keep_b, read);
    }
    // The shorter text stays whole if it fits into half of the room. Otherwise each text gets half
    // and the longer one the odd token.
    int64_t& shorter = keep_a > keep_b ? keep_b : keep_a;
    int64_t& longer = keep_a > keep_b ? keep_a : keep_b;
    shorter = std::min(shorter, room / 2);
    longer = std::min(longer, room - shorter);
  }
  const int64_t head_a = FirstKept(keep_a, keep), head_b = FirstKept(keep_b, keep);
  Encoding cut;
  Append(*encoding, 0, a + head_a, &cut);
  Append(*encoding, a_end - (keep_a - head_a), b + head_b, &cut);
  Append(*encoding, b_end - (keep_b - head_b), size, &cut);
  *encoding = std::move(cut);
  return size - static_cast<int64_t>(encoding->ids.size());
}

}  // namespace cloze
