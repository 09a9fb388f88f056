#include "core/text/tokenizer/tokenizer.h"

#include <algorithm>
#include <atomic>

#include "absl/functional/function_ref.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer/byte_bpe.h"
#include "core/text/tokenizer/byte_level.h"
#include "core/text/tokenizer/word_cache.h"
#include "core/text/tokenizer/wordpiece.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

uint32_t NextSerial() {
  static std::atomic<uint32_t> serial{0};
  return ++serial;
}

std::string ValidUtf8(std::string text) {
  if (IsUtf8(text)) return text;
  std::string valid;
  Utf8Normalizer().Append(text, text.size(), &valid, nullptr);
  return valid;
}

// Returns `span` without the blanks around the token `piece`, as Hugging Face trims offsets; with
// `keep_first`, a single leading blank stays.
Span Trim(absl::string_view piece, Span span, bool keep_first) {
  const size_t begin = piece.find_first_not_of(' ');
  if (begin == absl::string_view::npos) {  // only such tokens end with a blank
    const auto blanks = static_cast<int64_t>(piece.size());
    span.begin = std::min(span.begin + (blanks == 1 && keep_first ? 0 : blanks), span.end);
    if (span.end >= blanks) span.end = std::max(span.end - blanks, span.begin);
    return span;
  }
  if (begin > 1 || !keep_first)
    span.begin = std::min(span.begin + static_cast<int64_t>(begin), span.end);
  return span;
}

using Items = absl::Span<const PostProcessor::Item>;
constexpr PostProcessor::Item kTextAlone[] = {{.text = 0}};

// Puts special tokens around the tokens that add_text(text, encoding) adds for each text.
Encoding Assemble(Items items, absl::FunctionRef<void(int, Encoding*)> add_text) {
  Encoding encoding;
  for (const PostProcessor::Item& item : items) {
    const size_t begin = encoding.types.size();
    if (item.text < 0) {
      encoding.Add(item.id, item.type, -1, {}, {});
    } else {
      add_text(item.text, &encoding);
      std::fill(encoding.types.begin() + begin, encoding.types.end(), item.type);
    }
  }
  return encoding;
}

// The only place that knows the kinds of tokenizers.
Pipeline MakePipeline(const TokenizerData& data, const TokenIds& ids, const SpecialIds& special) {
  const PostProcessor::Item cls{.id = special.cls}, sep{.id = special.sep}, a{.text = 0};
  Pipeline p;
  p.post.single = {cls, a, sep};
  switch (data.kind) {
    case SubwordKind::kWordPiece: {
      auto normalizer = std::make_unique<BertNormalizer>(data.options);
      p.pre_tokenizer = std::make_unique<BertPreTokenizer>(normalizer.get());
      p.normalizer = std::move(normalizer);
      p.model = std::make_unique<WordPiece>(data.tokens, special.unk, data.max_word_chars);
      p.post.pair = {cls, a, sep, {.text = 1, .type = 1}, {.id = special.sep, .type = 1}};
      break;
    }
    case SubwordKind::kByteBpe:
      p.normalizer = std::make_unique<Utf8Normalizer>();
      p.pre_tokenizer = std::make_unique<ByteLevelPreTokenizer>(data.add_prefix_space);
      p.model = std::make_unique<ByteBpe>(data, ids, data.drops_unknown ? -1 : special.unk);
      p.post.pair = {cls, a, sep, sep, {.text = 1}, sep};
      p.post.trims_spans = data.trim_offsets, p.post.keeps_first_blank = data.trim_keeps_first;
      break;
  }
  return p;
}

}  // namespace

// Memory of a thread, shared by its tokenizers.
struct Tokenizer::Scratch {
  WordCache cache;
  std::string word;  // normalised
  std::vector<Piece> pieces;
  std::vector<int32_t> source;  // code point of the raw word that each byte of `word` comes from
  std::vector<int64_t> starts;  // byte where each code point of the raw word starts
};

Tokenizer::Scratch& Tokenizer::ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

// Where EncodeText is in its text.
struct Tokenizer::Place {
  absl::string_view text;
  Scratch* scratch;
  int64_t byte = 0, chars = 0;  // code points before `byte`

  void Advance(int64_t to) {
    chars += CountCodePoints(text.substr(byte, to - byte));
    byte = to;
  }
};

Tokenizer::Tokenizer(TokenizerData data, TokenIds ids)
    : data_(std::move(data)), ids_(std::move(ids)), serial_(NextSerial()) {
  const SpecialNames& names = data_.names;
  special_ = {id(names.pad), id(names.unk), id(names.cls), id(names.sep), id(names.mask)};
  for (const int32_t id : {special_.pad, special_.unk, special_.cls, special_.sep, special_.mask}) {
    if (id < 0) continue;
    special_ids_.push_back(id);
    AddToken(id);
  }
  std::sort(special_ids_.begin(), special_ids_.end());
  for (const int32_t id : data_.added) AddToken(id);
  pipeline_ = MakePipeline(data_, ids_, special_);
}

void Tokenizer::AddToken(int32_t id) {
  const auto is_in = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), token(id)) != list.end();
  };
  added_.Add(token(id), id, is_in(data_.lstrip), is_in(data_.rstrip));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    TokenizerData data, const TokenOrigin& origin) {
  ASSIGN_OR_RETURN(TokenIds ids, CheckTokens(origin, &data));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(data), std::move(ids)));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    std::vector<std::string> tokens, NormalizerOptions options) {
  TokenizerData data;
  data.tokens = std::move(tokens);
  data.options = options;
  return Create(std::move(data));
}

void Tokenizer::Split(absl::string_view raw, bool prefixed, Scratch* scratch) const {
  scratch->word.clear();
  if (prefixed) absl::StrAppend(&scratch->word, pipeline_.pre_tokenizer->prefix());
  pipeline_.normalizer->Append(raw, pipeline_.model->max_word_bytes(), &scratch->word, nullptr);
  pipeline_.model->Split(scratch->word, &scratch->pieces);
}

void Tokenizer::AppendWord(
    absl::string_view raw, bool prefixed, Scratch* scratch, std::vector<int32_t>* ids) const {
  const uint32_t owner = 2 * serial_ + prefixed;
  WordCache::Slot* slot = raw.size() <= WordCache::kMaxWord ? scratch->cache.Find(raw) : nullptr;
  if (slot != nullptr && WordCache::Holds(*slot, owner, raw)) {
    ids->insert(ids->end(), slot->ids, slot->ids + slot->ids_size);
    return;
  }
  Split(raw, prefixed, scratch);
  const size_t begin = ids->size();
  for (const Piece& piece : scratch->pieces) ids->push_back(piece.id);
  if (slot != nullptr && scratch->pieces.size() <= WordCache::kMaxIds)
    WordCache::Put(slot, owner, raw, absl::MakeConstSpan(*ids).subspan(begin));
}

void Tokenizer::AppendIds(absl::string_view text, std::vector<int32_t>* ids) const {
  Scratch* scratch = &ThreadScratch();
  for (size_t from = 0; from < text.size();) {
    const AddedTokens::Match match = added_.Find(text, from);
    const absl::string_view part = text.substr(from, match.begin - from);
    pipeline_.pre_tokenizer->Split(part, false, [&](size_t begin, size_t end, bool prefixed) {
      AppendWord(part.substr(begin, end - begin), prefixed, scratch, ids);
    });
    if (match.id >= 0) ids->push_back(match.id);
    from = match.end;
  }
}

int64_t Tokenizer::MapToText(
    Span word, bool prefixed, absl::string_view text, Scratch* scratch) const {
  const absl::string_view raw = text.substr(word.begin, word.end - word.begin);
  scratch->source.assign(prefixed ? pipeline_.pre_tokenizer->prefix().size() : 0, 0);
  scratch->word.resize(scratch->source.size());
  pipeline_.normalizer->Append(
      raw, pipeline_.model->max_word_bytes(), &scratch->word, &scratch->source);
  scratch->starts.clear();
  int64_t at = word.begin;
  while (at < word.end) {
    scratch->starts.push_back(at);
    at += CodePointAt(text, at).size;
  }
  const int64_t count = scratch->starts.size();
  if (count == 0 && at < text.size()) {  // a word that is only the prefix covers the next character
    scratch->starts.push_back(at);
    at += CodePointAt(text, at).size;
  }
  scratch->starts.push_back(at);
  return count;
}

void Tokenizer::EncodeWord(
    Span word, bool prefixed, int32_t number, Place* place, Encoding* encoding) const {
  Scratch* scratch = place->scratch;
  const PostProcessor& post = pipeline_.post;
  const absl::string_view raw = place->text.substr(word.begin, word.end - word.begin);
  place->Advance(word.begin);
  Split(raw, prefixed, scratch);
  const std::vector<Piece>& pieces = scratch->pieces;
  // One piece over all of the word needs no map, and a word that is too long has none.
  const bool whole = !raw.empty() && pieces.size() == 1 && pieces[0].begin == 0 &&
                     pieces[0].end == scratch->word.size();
  const int64_t count =
      whole ? CountCodePoints(raw) : MapToText(word, prefixed, place->text, scratch);
  for (const Piece& piece : pieces) {
    Span bytes = word, chars{place->chars, place->chars + count};
    if (!whole) {
      const int64_t first = scratch->source[piece.begin], last = scratch->source[piece.end - 1] + 1;
      bytes = {scratch->starts[first], scratch->starts[last]};
      chars = {place->chars + first, place->chars + last};
    }
    if (post.trims_spans) {
      const bool keep_first =
          (prefixed && piece.begin == 0) || (post.keeps_first_blank && bytes.begin == 0);
      const absl::string_view text = scratch->word;
      const absl::string_view part = text.substr(piece.begin, piece.end - piece.begin);
      bytes = Trim(part, bytes, keep_first), chars = Trim(part, chars, keep_first);
      if (chars.begin == chars.end) bytes.end = bytes.begin;
    }
    encoding->Add(piece.id, 0, number, bytes, chars);
  }
  place->byte = word.end, place->chars += count;
}

// `word` is the number of the first word, or of all words if the text is given as one word.
void Tokenizer::EncodeText(
    absl::string_view text, bool given, int32_t word, Encoding* encoding) const {
  Place place{text, &ThreadScratch()};
  for (size_t from = 0; from < text.size();) {
    const AddedTokens::Match match = added_.Find(text, from);
    // An invalid sequence that a match cuts is invalid on both sides, so code points can be counted
    // part by part.
    const absl::string_view part = text.substr(from, match.begin - from);
    pipeline_.pre_tokenizer->Split(part, given, [&](size_t begin, size_t end, bool prefixed) {
      const Span bytes{static_cast<int64_t>(from + begin), static_cast<int64_t>(from + end)};
      EncodeWord(bytes, prefixed, word, &place, encoding);
      word += !given;
    });
    if (match.id >= 0) {
      const bool trim = pipeline_.post.trims_spans;
      const auto begin = static_cast<int64_t>(trim ? match.token_begin : match.begin),
                 end = static_cast<int64_t>(trim ? match.token_end : match.end);
      place.Advance(begin);
      const int64_t chars = place.chars;
      place.Advance(end);
      encoding->Add(match.id, 0, word, {begin, end}, {chars, place.chars});
      word += !given;
      place.Advance(match.end);
    }
    from = match.end;
  }
}

Encoding Tokenizer::Encode(absl::string_view text, bool special) const {
  return Assemble(special ? Items(pipeline_.post.single) : Items(kTextAlone),
      [&](int, Encoding* encoding) { EncodeText(text, false, 0, encoding); });
}

Encoding Tokenizer::EncodePair(absl::string_view a, absl::string_view b) const {
  return Assemble(pipeline_.post.pair,
      [&](int text, Encoding* encoding) { EncodeText(text == 0 ? a : b, false, 0, encoding); });
}

Encoding Tokenizer::EncodeWords(absl::Span<const std::string> words, bool special) const {
  return Assemble(
      special ? Items(pipeline_.post.single) : Items(kTextAlone), [&](int, Encoding* encoding) {
        for (size_t i = 0; i < words.size(); ++i)
          EncodeText(words[i], true, static_cast<int32_t>(i), encoding);
      });
}

std::string Tokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocab_size() && !is_special(id))
      pipeline_.model->AppendDecoded(token(id), &text);
  }
  return ValidUtf8(std::move(text));
}

std::string Tokenizer::TokenText(int32_t id) const {
  return ValidUtf8(pipeline_.model->Show(token(id)));
}

int32_t Tokenizer::id(absl::string_view token) const {
  const auto at = ids_.find(token);
  return at == ids_.end() ? -1 : at->second;
}

bool Tokenizer::is_special(int32_t id) const {
  return std::binary_search(special_ids_.begin(), special_ids_.end(), id);
}

void Tokenizer::AddToKey(Hasher* key) const {
  key->AddNumber(vocab_size());
  for (int32_t id = 0; id < vocab_size(); ++id) {
    key->AddText(token(id));
    key->AddNumber(is_special(id));
  }
  if (const std::string rules = RulesKey(data_); !rules.empty()) key->AddText(rules);
  const NormalizerOptions& o = options();
  for (bool option : {o.clean_text, o.chinese_chars, o.strip_accents, o.lowercase})
    key->AddNumber(option);
  for (int32_t id : {special_.pad, special_.unk, special_.cls, special_.sep, special_.mask})
    key->AddNumber(id);
}

bool Tokenizer::SameIds(const Tokenizer& other) const {
  return data_.tokens == other.data_.tokens && RulesKey(data_) == RulesKey(other.data_);
}

}  // namespace cloze
