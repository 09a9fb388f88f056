// The steps of tokenising: special tokens in raw text, words, their normal form, pieces, ids.
#include "core/text/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/file.h"
#include "core/text/added_tokens.h"
#include "core/text/tokenizer_data.h"
#include "core/text/word_cache.h"
#include "core/text/wordpiece.h"

namespace cloze {
namespace {

// Memory of a thread that AppendIds uses again and again.
struct Scratch {
  WordCache cache;
  std::string word;
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

void Put(Encoding* encoding, int32_t id, int32_t type, int32_t word, Span bytes, Span chars) {
  encoding->ids.push_back(id);
  encoding->types.push_back(type);
  encoding->words.push_back(word);
  encoding->bytes.push_back(bytes);
  encoding->chars.push_back(chars);
}

// Appends tokens [begin, end) of `from`, as text number `type`.
void Append(const Encoding& from, size_t begin, size_t end, Encoding* to) {
  for (size_t i = begin; i < end; ++i) Put(to, from.ids[i], from.types[i], from.words[i], from.bytes[i], from.chars[i]);
}

}  // namespace

struct Tokenizer::Rep {
  explicit Rep(TokenizerData d)
      : data(std::move(d)), normalizer(data.options), model(data.tokens, Find(data.names.unk)), serial(NextSerial()) {}

  int32_t Find(const std::string& token) const {
    const auto at = token.empty() ? data.tokens.end() : std::find(data.tokens.begin(), data.tokens.end(), token);
    return at == data.tokens.end() ? -1 : static_cast<int32_t>(at - data.tokens.begin());
  }

  // Appends the ids of one word of raw text.
  void AppendWord(absl::string_view raw, Scratch* scratch, std::vector<int32_t>* ids) const;
  // Sets scratch->pieces to the pieces of a word of raw text.
  void SplitWord(absl::string_view raw, Scratch* scratch) const;
  // Appends the tokens of `text`, special tokens around it excepted; *word is the number of the next word.
  void EncodeText(absl::string_view text, int32_t* word, bool count_words, Encoding* encoding) const;
  // Appends the tokens of the word at bytes [begin, end) of the text, whose first character is number `chars`; returns its characters.
  int64_t EncodeWord(absl::string_view text, Span bytes, int64_t chars, int32_t word, Encoding* encoding) const;

  TokenizerData data;
  Normalizer normalizer;
  WordPiece model;
  AddedTokens added;
  SpecialIds special;
  std::vector<int32_t> special_ids;  // in order
  uint32_t serial;                   // tells tokenizers apart in the cache
};

void Tokenizer::Rep::SplitWord(absl::string_view raw, Scratch* scratch) const {
  if (normalizer.NormalizeWord(raw, data.max_word_chars, &scratch->word)) {
    model.Split(scratch->word, &scratch->pieces);
  } else {
    scratch->pieces.assign(1, {model.unknown(), 0, 0});
  }
}

void Tokenizer::Rep::AppendWord(absl::string_view raw, Scratch* scratch, std::vector<int32_t>* ids) const {
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

int64_t Tokenizer::Rep::EncodeWord(absl::string_view text, Span bytes, int64_t chars, int32_t word, Encoding* encoding) const {
  Scratch& scratch = ThreadScratch();
  const absl::string_view raw = text.substr(bytes.begin, bytes.end - bytes.begin);
  SplitWord(raw, &scratch);
  const std::vector<Piece>& pieces = scratch.pieces;
  if (pieces.size() == 1) {
    const int64_t count = CountCodePoints(raw);
    Put(encoding, pieces[0].id, 0, word, bytes, {chars, chars + count});
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
    Put(encoding, piece.id, 0, word, {bytes.begin + starts[first], bytes.begin + starts[last]}, {chars + first, chars + last});
  }
  return count;
}

void Tokenizer::Rep::EncodeText(absl::string_view text, int32_t* word, bool count_words, Encoding* encoding) const {
  size_t byte = 0;
  int64_t chars = 0;  // characters before `byte`
  const auto advance = [&](size_t to) { chars += CountCodePoints(text.substr(byte, to - byte)), byte = to; };
  for (size_t from = 0; from < text.size();) {
    const AddedTokens::Match match = added.Find(text, from);
    // Sequences that are cut by a match are invalid on both sides of it, so that counting piece by piece is right.
    normalizer.ForEachWord(text.substr(from, match.begin - from), [&](size_t begin, size_t end) {
      advance(from + begin);
      const Span bytes{static_cast<int64_t>(from + begin), static_cast<int64_t>(from + end)};
      chars += EncodeWord(text, bytes, chars, *word, encoding), byte = from + end;
      *word += count_words;
    });
    if (match.id >= 0) {
      advance(match.begin);
      const int64_t before = chars;
      advance(match.end);
      Put(encoding, match.id, 0, *word, {static_cast<int64_t>(match.begin), static_cast<int64_t>(match.end)}, {before, chars});
      *word += count_words;
    }
    from = match.end;
  }
}

Tokenizer::Tokenizer(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Tokenizer::~Tokenizer() = default;

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromData(const std::string& origin, bool lines, TokenizerData* data) {
  RETURN_IF_ERROR(CheckTokens(origin, lines, data));
  auto rep = std::make_unique<Rep>(std::move(*data));
  const SpecialNames& names = rep->data.names;
  rep->special = {rep->Find(names.pad), rep->Find(names.unk), rep->Find(names.cls), rep->Find(names.sep), rep->Find(names.mask)};
  const SpecialIds& s = rep->special;
  for (const int32_t id : {s.pad, s.unk, s.cls, s.sep, s.mask}) {
    if (id >= 0) rep->special_ids.push_back(id), rep->added.Add(rep->data.tokens[id], id);
  }
  std::sort(rep->special_ids.begin(), rep->special_ids.end());
  for (const int32_t id : rep->data.added) rep->added.Add(rep->data.tokens[id], id);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(rep)));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(std::vector<std::string> tokens, NormalizerOptions options) {
  TokenizerData data;
  data.tokens = std::move(tokens);
  data.options = options;
  return FromData("the vocabulary", false, &data);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::string& path, bool lowercase) {
  TokenizerData data;
  data.options.lowercase = data.options.strip_accents = lowercase;
  const bool folder = IsDirectory(path);
  const std::string json = folder ? JoinPath(path, "tokenizer.json") : path;
  const std::string config = JoinPath(path, "tokenizer_config.json"), vocab = folder ? JoinPath(path, "vocab.txt") : path;
  const bool from_json = folder ? PathExists(json) : path.size() >= 5 && path.compare(path.size() - 5, 5, ".json") == 0;
  if (folder && !from_json && !PathExists(vocab)) {
    return Error(Exit::kNoInput, absl::StrCat(QuotePath(path), ": holds neither tokenizer.json nor vocab.txt"));
  }
  if (from_json) {
    ASSIGN_OR_RETURN(data, ReadTokenizerJson(json));
  } else {
    ASSIGN_OR_RETURN(data.tokens, ReadVocabFile(vocab));
  }
  if (folder && PathExists(config)) RETURN_IF_ERROR(ReadTokenizerConfig(config, !from_json, &data));
  return FromData(from_json ? json : vocab, !from_json, &data);
}

absl::Status Tokenizer::Save(const std::string& directory, int64_t max_length) const {
  std::string vocab;
  for (const std::string& token : rep_->data.tokens) vocab += token, vocab += '\n';
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, "vocab.txt"), vocab));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, "special_tokens_map.json"), SpecialTokensMapJson(rep_->data)));
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directory, "tokenizer_config.json"), TokenizerConfigJson(rep_->data, max_length)));
  return WriteFileAtomically(JoinPath(directory, "tokenizer.json"), TokenizerJson(rep_->data, rep_->special_ids));
}

void Tokenizer::AppendIds(absl::string_view text, std::vector<int32_t>* ids) const {
  Scratch& scratch = ThreadScratch();
  for (size_t from = 0; from < text.size();) {
    const AddedTokens::Match match = rep_->added.Find(text, from);
    const absl::string_view part = text.substr(from, match.begin - from);
    rep_->normalizer.ForEachWord(part, [&](size_t begin, size_t end) { rep_->AppendWord(part.substr(begin, end - begin), &scratch, ids); });
    if (match.id >= 0) ids->push_back(match.id);
    from = match.end;
  }
}

Encoding Tokenizer::Encode(absl::string_view text, bool special) const {
  Encoding encoding;
  int32_t word = 0;
  if (special) Put(&encoding, rep_->special.cls, 0, -1, {}, {});
  rep_->EncodeText(text, &word, true, &encoding);
  if (special) Put(&encoding, rep_->special.sep, 0, -1, {}, {});
  return encoding;
}

Encoding Tokenizer::EncodePair(absl::string_view a, absl::string_view b) const {
  Encoding encoding = Encode(a);
  const size_t first = encoding.ids.size();
  int32_t word = 0;
  rep_->EncodeText(b, &word, true, &encoding);
  Put(&encoding, rep_->special.sep, 0, -1, {}, {});
  std::fill(encoding.types.begin() + first, encoding.types.end(), 1);
  return encoding;
}

Encoding Tokenizer::EncodeWords(absl::Span<const std::string> words, bool special) const {
  Encoding encoding;
  if (special) Put(&encoding, rep_->special.cls, 0, -1, {}, {});
  for (size_t i = 0; i < words.size(); ++i) {
    int32_t word = static_cast<int32_t>(i);
    rep_->EncodeText(words[i], &word, false, &encoding);
  }
  if (special) Put(&encoding, rep_->special.sep, 0, -1, {}, {});
  return encoding;
}

int64_t Tokenizer::Truncate(Encoding* encoding, int64_t max_length) const {
  const int64_t size = encoding->ids.size();
  if (size <= max_length) return 0;
  // The texts are [a, a_end) and [b, b_end); what is around them is kept.
  const std::vector<int32_t>&words = encoding->words, &types = encoding->types;
  const int64_t split = std::find(types.begin(), types.end(), 1) - types.begin();
  const int64_t a = words[0] < 0 ? 1 : 0, a_end = words[split - 1] < 0 ? split - 1 : split;
  const int64_t b = split, b_end = size > split && words[size - 1] < 0 ? size - 1 : size;
  int64_t keep_a = std::max<int64_t>(a_end - a, 0), keep_b = b_end - b;
  const int64_t room = std::max<int64_t>(max_length - (size - keep_a - keep_b), 0);
  max_length = std::max<int64_t>(max_length, 0);
  if (split == size) {
    keep_a = std::min(keep_a, room);
  } else {
    // As Hugging Face: the shorter text stays whole if it fits into half of the room, else both get half, the longer one the odd token.
    // The reference stops to read a text after the word that reaches max_length.
    const auto read = [&](int64_t begin, int64_t count) {
      int64_t n = std::min(count, max_length);
      while (n > 0 && n < count && words[begin + n] == words[begin + n - 1]) ++n;
      return n;
    };
    keep_a = read(a, keep_a), keep_b = read(b, keep_b);
    int64_t& shorter = keep_a > keep_b ? keep_b : keep_a;
    int64_t& longer = keep_a > keep_b ? keep_a : keep_b;
    shorter = std::min(shorter, room / 2);
    longer = std::min(longer, room - shorter);
  }
  Encoding cut;
  Append(*encoding, 0, a + keep_a, &cut);
  if (a_end >= a) Append(*encoding, a_end, b + keep_b, &cut);
  Append(*encoding, b_end, size, &cut);
  *encoding = std::move(cut);
  return size - static_cast<int64_t>(encoding->ids.size());
}

std::string Tokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size() || is_special(id)) continue;
    absl::string_view piece = token(id);
    if (piece.size() > 2 && piece.substr(0, 2) == WordPiece::kPrefix) {
      piece.remove_prefix(2);
    } else if (!text.empty()) {
      text += ' ';
    }
    text.append(piece.data(), piece.size());
  }
  return text;
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(rep_->data.tokens.size()); }
const std::string& Tokenizer::token(int32_t id) const { return rep_->data.tokens[id]; }
int32_t Tokenizer::id(absl::string_view token) const { return rep_->model.Find(token); }
bool Tokenizer::is_special(int32_t id) const { return std::binary_search(rep_->special_ids.begin(), rep_->special_ids.end(), id); }
const SpecialIds& Tokenizer::special() const { return rep_->special; }
const NormalizerOptions& Tokenizer::options() const { return rep_->data.options; }

}  // namespace cloze
