// The tokens of a text with their offsets, and how a long text is truncated.
#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/text/tokenizer/tokenizer.h"

namespace cloze {
namespace {

// Returns `span` without the spaces around the token `piece`, as Hugging Face trims offsets; with
// `keep_first`, a single leading space stays.
Span Trim(absl::string_view piece, Span span, bool keep_first) {
  const auto spaces = [](auto begin, auto end) {
    return std::find_if(begin, end, [](char c) { return c != ' '; }) - begin;
  };
  const int64_t leading = spaces(piece.begin(), piece.end()),
                trailing = spaces(piece.rbegin(), piece.rend());
  if (leading > 1 || !keep_first) span.begin = std::min(span.begin + leading, span.end);
  if (span.end >= trailing) span.end = std::max(span.end - trailing, span.begin);
  return span;
}

// Memory of a thread.
struct EncodeScratch {
  std::string word;  // normalized
  std::vector<Subword> pieces;
  std::vector<int32_t> source;  // code point of the raw word that each byte of `word` comes from
  std::vector<int64_t> starts;  // byte where each code point of the raw word starts
};
thread_local EncodeScratch encode_scratch;

// Adds the tokens of a text to an encoding.
class TextEncoder {
 public:
  // `text`, `pipeline` and `encoding` must outlive this object. `number` is that of the first word,
  // or of all words if the text is given as one word.
  TextEncoder(const Pipeline& pipeline, absl::string_view text, bool given, int32_t number,
      Encoding* encoding)
      : pipeline_(pipeline), text_(text), encoding_(*encoding), given_(given), number_(number) {}

  void Run();

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
  // Maps the bytes of the normalized word back to the text. Returns the code points of the word.
  int64_t MapToText(Span word, bool prefixed);

  const Pipeline& pipeline_;
  const absl::string_view text_;
  Encoding& encoding_;
  const bool given_;
  int32_t number_;
  int64_t byte_ = 0, chars_ = 0;  // how much of the text has been passed
  EncodeScratch& scratch_ = encode_scratch;
};

int64_t TextEncoder::MapToText(Span word, bool prefixed) {
  const absl::string_view raw = text_.substr(word.begin, word.end - word.begin);
  pipeline_.Normalize(raw, prefixed, &scratch_.word, &scratch_.source);
  std::vector<int64_t>& starts = scratch_.starts;
  starts.clear();
  int64_t at = word.begin;
  const auto pass = [&] {
    starts.push_back(at);
    at += CodePointAt(text_, at).size;
  };
  while (at < word.end) pass();
  const int64_t count = starts.size();
  // A word that is only the prefix covers the next character.
  if (count == 0 && at < static_cast<int64_t>(text_.size())) pass();
  starts.push_back(at);
  return count;
}

void TextEncoder::AddWord(Span word, bool prefixed) {
  const PostProcessor& post = pipeline_.post;
  const absl::string_view raw = text_.substr(word.begin, word.end - word.begin);
  const std::string& normal = scratch_.word;
  const std::vector<Subword>& pieces = scratch_.pieces;
  Advance(word.begin);
  pipeline_.Normalize(raw, prefixed, &scratch_.word);
  pipeline_.model->Split(normal, &scratch_.pieces);
  // One piece over all of the word needs no map, and a word that is too long has none.
  const bool whole =
      !raw.empty() && pieces.size() == 1 && pieces[0].begin == 0 && pieces[0].end == normal.size();
  const int64_t count = whole ? CountCodePoints(raw) : MapToText(word, prefixed);
  for (const Subword& piece : pieces) {
    Span bytes = word, chars{chars_, chars_ + count};
    if (!whole) {
      const int64_t first = scratch_.source[piece.begin], last = scratch_.source[piece.end - 1] + 1;
      bytes = {scratch_.starts[first], scratch_.starts[last]};
      chars = {chars_ + first, chars_ + last};
    }
    if (post.trims_spans) {
      const bool keep_first =
          (prefixed && piece.begin == 0) || (post.keeps_first_space && bytes.begin == 0);
      const auto part = absl::string_view(normal).substr(piece.begin, piece.end - piece.begin);
      bytes = Trim(part, bytes, keep_first), chars = Trim(part, chars, keep_first);
      if (chars.begin == chars.end) bytes.end = bytes.begin;
    }
    encoding_.Add(piece.id, 0, number_, bytes, chars);
  }
  byte_ = word.end, chars_ += count;
  number_ += !given_;
}

void TextEncoder::AddWords(size_t begin, size_t end, WordContext context) {
  const absl::string_view part = text_.substr(begin, end - begin);
  pipeline_.pre_tokenizer->Split(part, context, [&](size_t from, size_t to, bool prefixed) {
    AddWord({static_cast<int64_t>(begin + from), static_cast<int64_t>(begin + to)}, prefixed);
  });
}

void TextEncoder::AddToken(const AddedTokens::Match& match) {
  const Span bytes = pipeline_.post.trims_spans ? match.token : match.span;
  Advance(bytes.begin);
  const int64_t chars = chars_;
  Advance(bytes.end);
  encoding_.Add(match.id, 0, number_, bytes, {chars, chars_});
  number_ += !given_;
  Advance(match.span.end);
}

void TextEncoder::AddNormalized(size_t begin, size_t end) {
  NormalText normal;
  pipeline_.NormalizeText(text_.substr(begin, end - begin), true, &normal);
  const size_t first = encoding_.ids.size();
  TextEncoder inner(pipeline_, normal.text, given_, number_, &encoding_);
  ForEachPart(
      pipeline_.added_normal, normal.text,
      [&](size_t from, size_t to) {
        inner.AddWords(from, to, Pipeline::ContextOf(normal, from, begin, given_));
      },
      [&](const AddedTokens::Match& match) { inner.AddToken(match); });
  number_ = inner.number_;
  std::vector<int64_t> chars;  // code points of the part before each of its bytes, and in all
  int64_t count = 0;
  for (size_t at = begin; at < end; ++count) {
    const CodePoint c = CodePointAt(text_.substr(0, end), at);
    chars.resize(chars.size() + c.size, count);
    at += c.size;
  }
  chars.push_back(count);
  for (size_t i = first; i < encoding_.ids.size(); ++i) {
    Span bytes = encoding_.bytes[i];
    if (bytes.begin < bytes.end) {
      bytes = {normal.source[bytes.begin].begin, normal.source[bytes.end - 1].end};
    } else {
      const auto at = bytes.begin > 0 ? normal.source[bytes.begin - 1].end : 0;
      bytes = {at, at};
    }
    const auto offset = static_cast<int64_t>(begin);
    encoding_.bytes[i] = {offset + bytes.begin, offset + bytes.end};
    encoding_.chars[i] = {chars_ + chars[bytes.begin], chars_ + chars[bytes.end]};
  }
  byte_ = end, chars_ += count;
}

void TextEncoder::Run() {
  ForEachPart(
      pipeline_.added, text_,
      [&](size_t begin, size_t end) {
        if (pipeline_.NormalizesText()) return AddNormalized(begin, end);
        AddWords(begin, end, {.start = begin == 0, .given = given_});
      },
      [&](const AddedTokens::Match& match) { AddToken(match); });
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
  return Assemble(pipeline_.post.single, special,
      [&](int, Encoding* encoding) { TextEncoder(pipeline_, text, false, 0, encoding).Run(); });
}

Encoding Tokenizer::EncodePair(absl::string_view a, absl::string_view b) const {
  return Assemble(pipeline_.post.pair, true, [&](int text, Encoding* encoding) {
    TextEncoder(pipeline_, text == 0 ? a : b, false, 0, encoding).Run();
  });
}

Encoding Tokenizer::EncodeWords(absl::Span<const std::string> words, bool special) const {
  return Assemble(pipeline_.post.single, special, [&](int, Encoding* encoding) {
    for (size_t i = 0; i < words.size(); ++i)
      TextEncoder(pipeline_, words[i], true, static_cast<int32_t>(i), encoding).Run();
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
