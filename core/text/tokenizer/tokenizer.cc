// The steps of tokenising: special tokens in raw text, words, their normal form, pieces, ids.
#include "core/text/tokenizer/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer/added_tokens.h"
#include "core/text/tokenizer/byte_bpe.h"
#include "core/text/tokenizer/tokenizer_data.h"
#include "core/text/tokenizer/word_cache.h"
#include "core/text/tokenizer/wordpiece.h"

namespace cloze {
namespace {

// Memory of a thread that AppendIds uses again and again.
struct Scratch {
  WordCache cache;
  std::string word, part;
  std::vector<Piece> pieces;
};

Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

uint32_t NextSerial() {
  static std::atomic<uint32_t> serial{0};
  return ++serial;
}

// Appends text with every invalid sequence replaced by U+FFFD.
void AppendValid(absl::string_view text, std::string* out) {
  if (IsUtf8(text)) {
    out->append(text.data(), text.size());
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    AppendUtf8(c.value, out);
    at += c.size;
  }
}

// The place of `piece` without the blanks around it, as Hugging Face trims offsets; keep_first: a
// lone blank is not in the text.
Span Trim(absl::string_view piece, Span span, bool keep_first) {
  const auto blanks = [](absl::string_view s) {
    const size_t n = s.find_first_not_of(' ');
    return static_cast<int64_t>(n == absl::string_view::npos ? s.size() : n);
  };
  int64_t leading = blanks(piece);
  const int64_t trailing = leading == static_cast<int64_t>(piece.size())
                               ? leading
                               : 0;  // no other token ends with a blank
  if (leading == 1 && keep_first) leading = 0;
  span.begin = std::min(span.begin + leading, span.end);
  if (trailing > 0 && span.end >= trailing) span.end = std::max(span.end - trailing, span.begin);
  return span;
}

}  // namespace

struct Tokenizer::Rep {
  explicit Rep(TokenizerData d)
      : data(std::move(d)), normalizer(data.options), model(data.tokens, Find(data.names.unk)),
        serial(NextSerial()) {}

  int32_t Find(const std::string& token) const {
    const auto at = token.empty() ? data.tokens.end()
                                  : std::find(data.tokens.begin(), data.tokens.end(), token);
    return at == data.tokens.end() ? -1 : static_cast<int32_t>(at - data.tokens.begin());
  }

  // Appends the ids of one word of raw text.
  void AppendWord(absl::string_view raw, Scratch* scratch, std::vector<int32_t>* ids) const;
  // Sets scratch->pieces to the pieces of a word of raw text.
  void SplitWord(absl::string_view raw, Scratch* scratch) const;
  // Appends the tokens of `text`, special tokens around it excepted; *word is the number of the
  // next word.
  void EncodeText(
      absl::string_view text, int32_t* word, bool count_words, Encoding* encoding) const;
  // Appends the tokens of the word at bytes [begin, end) of the text, whose first character is
  // number `chars`; returns its characters.
  int64_t EncodeWord(
      absl::string_view text, Span bytes, int64_t chars, int32_t word, Encoding* encoding) const;
  // The same for byte-level BPE; `blank`: a blank stands before the word, but not in the text.
  int64_t EncodeByteWord(absl::string_view text, Span bytes, int64_t chars, bool blank,
      int32_t word, Encoding* encoding) const;
  // Calls f(begin, end, blank) for each word of a part of the text between added tokens.
  template <class F>
  void ForEachWord(absl::string_view part, bool prefix, std::string* scratch, F f) const;
  bool Holds(const std::vector<std::string>& list, const std::string& item) const {
    return std::find(list.begin(), list.end(), item) != list.end();
  }
  void AddToken(int32_t id) {
    const std::string& token = data.tokens[id];
    added.Add(token, id, Holds(data.lstrip, token), Holds(data.rstrip, token));
  }

  TokenizerData data;
  Normalizer normalizer;
  WordPiece model;  // of a byte-level BPE only a table of its tokens
  std::optional<ByteBpe> bpe;
  AddedTokens added;
  SpecialIds special;
  std::vector<int32_t> special_ids;  // in order
  uint32_t serial;                   // tells tokenizers apart in the cache
};

void Tokenizer::Rep::SplitWord(absl::string_view raw, Scratch* scratch) const {
  if (bpe.has_value()) {
    scratch->word.clear();
    AppendValid(raw, &scratch->word);
    bpe->Split(scratch->word, &scratch->pieces);
  } else if (normalizer.NormalizeWord(raw, data.max_word_chars, &scratch->word)) {
    model.Split(scratch->word, &scratch->pieces);
  } else {
    scratch->pieces.assign(1, {model.unknown(), 0, 0});
  }
}

void Tokenizer::Rep::AppendWord(
    absl::string_view raw, Scratch* scratch, std::vector<int32_t>* ids) const {
  WordCache::Slot* slot = raw.size() <= WordCache::kMaxWord ? scratch->cache.Find(raw) : nullptr;
  if (slot != nullptr && WordCache::Holds(*slot, serial, raw)) {
    ids->insert(ids->end(), slot->ids, slot->ids + slot->ids_size);
    return;
  }
  SplitWord(raw, scratch);
  const size_t begin = ids->size();
  for (const Piece& piece : scratch->pieces) ids->push_back(piece.id);
  if (slot != nullptr && scratch->pieces.size() <= WordCache::kMaxIds) {
    WordCache::Put(slot, serial, raw, absl::MakeConstSpan(*ids).subspan(begin));
  }
}

int64_t Tokenizer::Rep::EncodeWord(
    absl::string_view text, Span bytes, int64_t chars, int32_t word, Encoding* encoding) const {
  Scratch& scratch = ThreadScratch();
  const absl::string_view raw = text.substr(bytes.begin, bytes.end - bytes.begin);
  SplitWord(raw, &scratch);
  const std::vector<Piece>& pieces = scratch.pieces;
  if (pieces.size() == 1) {
    const int64_t count = CountCodePoints(raw);
    encoding->Add(pieces[0].id, 0, word, bytes, {chars, chars + count});
    return count;
  }
  // Which raw character did each byte of the normal form come from?
  std::string normal;
  std::vector<int32_t> source;
  std::vector<int64_t> starts;
  for (size_t at = 0; at < raw.size();) {
    const CodePoint c = CodePointAt(raw, at);
    normalizer.Append(c.value, &normal);
    source.resize(normal.size(), static_cast<int32_t>(starts.size()));
    starts.push_back(at);
    at += c.size;
  }
  const int64_t count = starts.size();
  starts.push_back(raw.size());
  for (const Piece& piece : pieces) {
    const int64_t first = source[piece.begin], last = source[piece.end - 1] + 1;
    encoding->Add(piece.id, 0, word, {bytes.begin + starts[first], bytes.begin + starts[last]},
        {chars + first, chars + last});
  }
  return count;
}

int64_t Tokenizer::Rep::EncodeByteWord(absl::string_view text, Span bytes, int64_t chars,
    bool blank, int32_t word, Encoding* encoding) const {
  Scratch& scratch = ThreadScratch();
  std::string& spelling = scratch.word;
  spelling.assign(blank, ' ');
  std::vector<int32_t> source(blank,
      0);  // the character of the text that each byte came from; the blank goes with the first one
  std::vector<int64_t> starts;
  for (int64_t at = bytes.begin; at < bytes.end;) {
    const CodePoint c = CodePointAt(text, at);
    AppendUtf8(c.value, &spelling);
    source.resize(spelling.size(), static_cast<int32_t>(starts.size()));
    starts.push_back(at);
    at += c.size;
  }
  const int64_t count = starts.size();
  if (count == 0) starts.push_back(bytes.begin);
  starts.push_back(count == 0 && bytes.begin < static_cast<int64_t>(text.size())
                       ? bytes.begin + CodePointAt(text, bytes.begin).size
                       : bytes.end);
  bpe->Split(spelling, &scratch.pieces);
  for (const Piece& piece : scratch.pieces) {
    const int64_t first = source[piece.begin], last = source[piece.end - 1] + 1;
    Span in_bytes{starts[first], starts[last]}, in_chars{chars + first, chars + last};
    if (data.trim_offsets) {
      const absl::string_view part =
          absl::string_view(spelling).substr(piece.begin, piece.end - piece.begin);
      const bool keep_first =
          (blank && piece.begin == 0) || (data.trim_keeps_first && in_bytes.begin == 0);
      in_bytes = Trim(part, in_bytes, keep_first), in_chars = Trim(part, in_chars, keep_first);
      if (in_chars.begin == in_chars.end)
        in_bytes.end = in_bytes.begin;  // of a blank that is not in the text nothing is left
    }
    encoding->Add(piece.id, 0, word, in_bytes, in_chars);
  }
  return count;
}

template <class F>
void Tokenizer::Rep::ForEachWord(
    absl::string_view part, bool prefix, std::string* scratch, F f) const {
  if (!bpe.has_value()) {
    normalizer.ForEachWord(part, [&](size_t begin, size_t end) { f(begin, end, false); });
  } else if (!prefix || part.empty() || part[0] == ' ') {
    ForEachByteWord(part, [&](size_t begin, size_t end) { f(begin, end, false); });
  } else {
    scratch->assign(1, ' ').append(part.data(), part.size());
    ForEachByteWord(*scratch,
        [&](size_t begin, size_t end) { f(begin == 0 ? 0 : begin - 1, end - 1, begin == 0); });
  }
}

void Tokenizer::Rep::EncodeText(
    absl::string_view text, int32_t* word, bool count_words, Encoding* encoding) const {
  Scratch& scratch = ThreadScratch();
  const bool prefix = data.add_prefix_space || !count_words;
  size_t byte = 0;
  int64_t chars = 0;  // characters before `byte`
  const auto advance = [&](size_t to) {
    chars += CountCodePoints(text.substr(byte, to - byte)), byte = to;
  };
  for (size_t from = 0; from < text.size();) {
    const AddedTokens::Match match = added.Find(text, from);
    // Sequences that are cut by a match are invalid on both sides of it, so that counting piece by
    // piece is right.
    ForEachWord(text.substr(from, match.begin - from), prefix, &scratch.part,
        [&](size_t begin, size_t end, bool blank) {
          advance(from + begin);
          const Span bytes{static_cast<int64_t>(from + begin), static_cast<int64_t>(from + end)};
          chars += bpe.has_value() ? EncodeByteWord(text, bytes, chars, blank, *word, encoding)
                                   : EncodeWord(text, bytes, chars, *word, encoding);
          byte = from + end;
          *word += count_words;
        });
    if (match.id >= 0) {
      const bool trim = bpe.has_value() && data.trim_offsets;
      const Span place{static_cast<int64_t>(trim ? match.token_begin : match.begin),
          static_cast<int64_t>(trim ? match.token_end : match.end)};
      advance(place.begin);
      const int64_t before = chars;
      advance(place.end);
      encoding->Add(match.id, 0, *word, place, {before, chars});
      *word += count_words;
      advance(match.end);
    }
    from = match.end;
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    TokenizerData data, const std::string& origin, bool lines) {
  RETURN_IF_ERROR(CheckTokens(origin, lines, &data));
  auto rep = std::make_unique<Rep>(std::move(data));
  const SpecialNames& names = rep->data.names;
  rep->special = {rep->Find(names.pad), rep->Find(names.unk), rep->Find(names.cls),
      rep->Find(names.sep), rep->Find(names.mask)};
  const SpecialIds& s = rep->special;
  for (const int32_t id : {s.pad, s.unk, s.cls, s.sep, s.mask}) {
    if (id >= 0) rep->special_ids.push_back(id), rep->AddToken(id);
  }
  std::sort(rep->special_ids.begin(), rep->special_ids.end());
  for (const int32_t id : rep->data.added) rep->AddToken(id);
  if (rep->data.byte_level)
    rep->bpe.emplace(
        rep->data.tokens, rep->data.merges, rep->data.drops_unknown ? -1 : rep->special.unk);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(rep)));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    std::vector<std::string> tokens, NormalizerOptions options) {
  TokenizerData data;
  data.tokens = std::move(tokens);
  data.options = options;
  return Create(std::move(data), "the vocabulary", false);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::CreateBpe(
    std::vector<std::string> tokens, std::vector<std::pair<int32_t, int32_t>> merges) {
  TokenizerData data;
  data.tokens = std::move(tokens);
  data.byte_level = true;
  data.merges = std::move(merges);
  data.names = {"<pad>", "<unk>", "<s>", "</s>", "<mask>"};
  data.lstrip = {"<mask>"};
  return Create(std::move(data), "the vocabulary", false);
}

void Tokenizer::AppendIds(absl::string_view text, std::vector<int32_t>* ids) const {
  Scratch& scratch = ThreadScratch();
  for (size_t from = 0; from < text.size();) {
    const AddedTokens::Match match = rep_->added.Find(text, from);
    const absl::string_view part = text.substr(from, match.begin - from);
    rep_->ForEachWord(part, rep_->data.add_prefix_space, &scratch.part,
        [&](size_t begin, size_t end, bool blank) {
          // With a blank put before it, a word stands in scratch.part.
          const absl::string_view word = blank ? absl::string_view(scratch.part).substr(0, end + 1)
                                               : part.substr(begin, end - begin);
          rep_->AppendWord(word, &scratch, ids);
        });
    if (match.id >= 0) ids->push_back(match.id);
    from = match.end;
  }
}

Encoding Tokenizer::Encode(absl::string_view text, bool special) const {
  Encoding encoding;
  int32_t word = 0;
  if (special) encoding.Add(rep_->special.cls, 0, -1, {}, {});
  rep_->EncodeText(text, &word, true, &encoding);
  if (special) encoding.Add(rep_->special.sep, 0, -1, {}, {});
  return encoding;
}

Encoding Tokenizer::EncodePair(absl::string_view a, absl::string_view b) const {
  Encoding encoding = Encode(a);
  if (byte_level()) encoding.Add(rep_->special.sep, 0, -1, {}, {});
  const size_t first = encoding.ids.size();
  int32_t word = 0;
  rep_->EncodeText(b, &word, true, &encoding);
  encoding.Add(rep_->special.sep, 0, -1, {}, {});
  if (!byte_level()) std::fill(encoding.types.begin() + first, encoding.types.end(), 1);
  return encoding;
}

Encoding Tokenizer::EncodeWords(absl::Span<const std::string> words, bool special) const {
  Encoding encoding;
  if (special) encoding.Add(rep_->special.cls, 0, -1, {}, {});
  for (size_t i = 0; i < words.size(); ++i) {
    int32_t word = static_cast<int32_t>(i);
    rep_->EncodeText(words[i], &word, false, &encoding);
  }
  if (special) encoding.Add(rep_->special.sep, 0, -1, {}, {});
  return encoding;
}

std::string Tokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text, bytes;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size() || is_special(id)) continue;
    if (byte_level()) {
      bytes += BytesOfToken(token(id));
      continue;
    }
    absl::string_view piece = token(id);
    if (piece.size() > 2 && piece.substr(0, 2) == WordPiece::kPrefix) {
      piece.remove_prefix(2);
    } else if (!text.empty()) {
      text += ' ';
    }
    text.append(piece.data(), piece.size());
  }
  AppendValid(bytes, &text);
  return text;
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(rep_->data.tokens.size()); }
const std::string& Tokenizer::token(int32_t id) const { return rep_->data.tokens[id]; }
int32_t Tokenizer::id(absl::string_view token) const { return rep_->model.Find(token); }

bool Tokenizer::ContinuesWord(int32_t id) const {
  if (!byte_level()) return absl::StartsWith(token(id), WordPiece::kPrefix);
  // Words begin with their blank, and punctuation is a word of its own.
  const auto first = static_cast<unsigned char>(BytesOfToken(token(id))[0]);
  return first >= 0x80 || absl::ascii_isalnum(first);
}

std::string Tokenizer::TokenText(int32_t id) const {
  return byte_level() ? Decode({id}) : token(id);
}

const TokenizerData& Tokenizer::data() const { return rep_->data; }
bool Tokenizer::byte_level() const { return rep_->bpe.has_value(); }

std::string Tokenizer::other_rules() const {
  const TokenizerData& d = rep_->data;
  if (!d.byte_level) return "";
  return absl::StrCat(MergesText(d), d.add_prefix_space, d.drops_unknown,
      absl::StrJoin(d.lstrip, " "), " | ", absl::StrJoin(d.rstrip, " "));
}

bool Tokenizer::SameIds(const Tokenizer& other) const {
  bool same = vocab_size() == other.vocab_size() && other_rules() == other.other_rules();
  for (int32_t id = 0; same && id < vocab_size(); ++id) same = token(id) == other.token(id);
  return same;
}

bool Tokenizer::is_special(int32_t id) const {
  return std::binary_search(rep_->special_ids.begin(), rep_->special_ids.end(), id);
}
const SpecialIds& Tokenizer::special() const { return rep_->special; }
const NormalizerOptions& Tokenizer::options() const { return rep_->data.options; }

}  // namespace cloze
