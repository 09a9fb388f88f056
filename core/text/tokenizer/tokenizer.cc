#include "core/text/tokenizer/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "core/base/text.h"
#include "core/text/tokenizer/schemes.h"

namespace cloze {
namespace {

std::string ValidUtf8(std::string text) {
  if (IsUtf8(text)) return text;
  std::string valid;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = CodePointAt(text, at);
    AppendUtf8(c.value, &valid);
    at += c.size;
  }
  return valid;
}

Pipeline MakePipeline(const TokenizerData& data, const TokenIds& ids, int32_t unknown) {
  Pipeline p;
  data.scheme->SetStages(data, ids, unknown, &p);
  p.post.trims_spans = data.trim_offsets;
  p.post.keeps_first_space = data.trim_keeps_first;
  p.steps.insert(p.steps.end(), data.steps.begin(), data.steps.end());
  const auto resolve = [&](const std::vector<TemplateItem>& items) {
    std::vector<PostProcessor::Item> result;
    for (const TemplateItem& item : items) {
      const int32_t id = item.text < 0 ? ids.Find(item.token) : -1;
      result.push_back({.id = id, .text = item.text, .type = item.type});
    }
    return result;
  };
  p.post.single = resolve(data.templates.single), p.post.pair = resolve(data.templates.pair);
  return p;
}

// Returns what determines ids and spans besides tokens, special tokens and options. Checkpoints
// hold its hash: settings that earlier versions lacked add nothing unless they are used.
std::string RulesKey(const TokenizerData& data) {
  const std::string side = data.truncates_left ? " | left" : "", scheme = data.scheme->Key(data);
  if (!data.rules.empty()) return scheme + side;
  std::string key = side + scheme;
  for (const int32_t id : data.added) {
    if (!absl::c_linear_search(data.special, id)) absl::StrAppend(&key, " | added ", id);
  }
  for (const int32_t id : data.normalized) absl::StrAppend(&key, " | normalized ", id);
  for (const std::string& token : data.single_word) absl::StrAppend(&key, " | single ", token);
  return key;
}

// A word and its ids. Longer words and those with more ids are not cached.
struct CachedWord {
  static constexpr size_t kMaxSize = 22, kMaxIds = 9;
  uint32_t owner = 0;  // 0: empty
  uint8_t size = 0, ids_size = 0;
  char word[kMaxSize];
  int32_t ids[kMaxIds];

  bool Holds(uint32_t who, absl::string_view raw) const {
    return owner == who && size == raw.size() && std::memcmp(word, raw.data(), raw.size()) == 0;
  }
};
static_assert(sizeof(CachedWord) == 64);

// Memory of a thread, shared by its tokenizers.
struct IdsScratch {
  static constexpr int kBits = 15;
  // The ids of recent words, 2 MB. A word replaces the word in its slot.
  std::vector<CachedWord> cache = std::vector<CachedWord>(size_t{1} << kBits);
  NormalText normal;  // of the part of a text
  std::string word;   // normalized
  std::vector<Subword> pieces;

  // Returns the slot for a word, by a hash of its bytes, eight at a time.
  CachedWord* Slot(absl::string_view word) {
    uint64_t hash = word.size() * 0x9E3779B97F4A7C15u;
    for (size_t at = 0; at < word.size(); at += 8) {
      uint64_t part = 0;
      std::memcpy(&part, word.data() + at, std::min<size_t>(8, word.size() - at));
      hash = (hash ^ part) * 0xD6E8FEB86659FD93u;
      hash ^= hash >> 32;
    }
    return &cache[hash * 0x9E3779B97F4A7C15u >> (64 - kBits)];  // the upper bits are mixed best
  }
};

// `owner` distinguishes tokenizers, and words with and without a prefix.
void AppendWord(const Pipeline& pipeline, uint32_t owner, absl::string_view raw, bool prefixed,
    IdsScratch* scratch, std::vector<int32_t>* ids) {
  CachedWord* slot = raw.size() <= CachedWord::kMaxSize ? scratch->Slot(raw) : nullptr;
  if (slot != nullptr && slot->Holds(owner, raw)) {
    ids->insert(ids->end(), slot->ids, slot->ids + slot->ids_size);
    return;
  }
  pipeline.Normalize(raw, prefixed, &scratch->word);
  pipeline.model->Split(scratch->word, &scratch->pieces);
  const std::vector<Subword>& pieces = scratch->pieces;
  for (const Subword& piece : pieces) ids->push_back(piece.id);
  if (slot == nullptr || pieces.size() > CachedWord::kMaxIds) {
    ClearScratch(&scratch->word), ClearScratch(&scratch->pieces);
    return;
  }
  slot->owner = owner;
  slot->size = raw.size(), slot->ids_size = pieces.size();
  std::copy(raw.begin(), raw.end(), slot->word);
  std::copy(ids->end() - pieces.size(), ids->end(), slot->ids);
}

}  // namespace

void Pipeline::NormalizeText(absl::string_view raw, bool tracked, NormalText* text) const {
  text->Set(raw, tracked);
  for (const auto& step : steps) step->Apply(text);
}

WordContext Pipeline::ContextOf(const NormalText& normal, size_t from, size_t begin, bool given) {
  const auto first = normal.source.begin() + std::min(from, normal.source.size()),
             end = std::find_if(first, normal.source.end(),
                 [&](const Span&span) { return begin + span.begin > 0; });
  return {.start = static_cast<size_t>(end - first), .given = given};
}

void Pipeline::Normalize(
    absl::string_view raw, bool prefixed, std::string* word, std::vector<int32_t>* source) const {
  word->clear();
  if (prefixed) absl::StrAppend(word, pre_tokenizer->prefix());
  if (source != nullptr) source->assign(word->size(), 0);
  normalizer->Append(raw, model->max_word_bytes(), word, source);
}

Tokenizer::Tokenizer(TokenizerData data, TokenIds ids)
    : data_(std::move(data)), ids_(std::move(ids)) {
  static std::atomic<uint32_t> serial{0};
  serial_ = ++serial;
  const SpecialNames& names = data_.names;
  special_ = {id(names.pad), id(names.unk), id(names.cls), id(names.sep), id(names.mask)};
  is_special_.resize(data_.tokens.size());
  for (const int32_t id : special_.All()) {
    if (id >= 0) is_special_[id] = true;
  }
  for (const int32_t id : data_.special) is_special_[id] = true;
  pipeline_ = MakePipeline(data_, ids_, special_.unk);
  std::set<int32_t> added(data_.added.begin(), data_.added.end());
  for (const int32_t id : special_.All()) {
    if (id >= 0 && data_.json.empty()) added.insert(id);
  }
  const std::set<std::string> lstrip(data_.lstrip.begin(), data_.lstrip.end()),
      rstrip(data_.rstrip.begin(), data_.rstrip.end()),
      single(data_.single_word.begin(), data_.single_word.end());
  const std::set<int32_t> normalized(data_.normalized.begin(), data_.normalized.end());
  std::vector<AddedTokens::Token> raw, normal;
  NormalText text;
  for (const int32_t id : added) {
    AddedTokens::Token found{token(id), id, lstrip.contains(token(id)), rstrip.contains(token(id)),
        single.contains(token(id))};
    if (!normalized.contains(id)) {
      raw.push_back(std::move(found));
      continue;
    }
    pipeline_.NormalizeText(token(id), false, &text);
    found.text = text.text;
    normal.push_back(std::move(found));
  }
  pipeline_.added = AddedTokens(std::move(raw));
  pipeline_.added_normal = AddedTokens(std::move(normal));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(
    TokenizerData data, const TokenOrigin& origin) {
  ASSIGN_OR_RETURN(TokenIds ids, CheckTokens(origin, &data));
  auto tokenizer = absl::WrapUnique(new Tokenizer(std::move(data), std::move(ids)));
  NormalText text;
  for (const int32_t id : tokenizer->data_.normalized) {
    tokenizer->pipeline_.NormalizeText(tokenizer->token(id), false, &text);
    if (!text.text.empty()) continue;
    return Error(Exit::kData, QuotePath(origin.file),
        ": added_tokens: ", Quote(tokenizer->token(id)),
        ": the normalizer leaves nothing of it: expected normalized ", "false");
  }
  return tokenizer;
}

void Tokenizer::AppendIds(absl::string_view text, std::vector<int32_t>* ids) const {
  thread_local IdsScratch thread_scratch;
  IdsScratch* scratch = &thread_scratch;
  const auto add_token = [&](const AddedTokens::Match& match) { ids->push_back(match.id); };
  const auto add_words = [&](absl::string_view part, WordContext context) {
    pipeline_.pre_tokenizer->Split(part, context, [&](size_t begin, size_t end, bool prefixed) {
      AppendWord(pipeline_, 2 * serial_ + prefixed, part.substr(begin, end - begin), prefixed,
          scratch, ids);
    });
  };
  const auto add_text = [&](size_t begin, size_t end) {
    const absl::string_view part = text.substr(begin, end - begin);
    if (!pipeline_.NormalizesText(part)) return add_words(part, {.start = begin == 0});
    const bool tracked = begin == 0 && pipeline_.pre_tokenizer->needs_start();
    pipeline_.NormalizeText(part, tracked, &scratch->normal);
    const absl::string_view normal = scratch->normal.text;
    const auto add_normal = [&](size_t from, size_t to) {
      add_words(
          normal.substr(from, to - from), Pipeline::ContextOf(scratch->normal, from, begin, false));
    };
    ForEachPart(pipeline_.added_normal, normal, add_normal, add_token);
  };
  ForEachPart(pipeline_.added, text, add_text, add_token);
}

std::string Tokenizer::Decode(absl::Span<const int32_t> ids) const {
  std::string text;
  bool first = true;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size() || is_special(id)) continue;
    pipeline_.model->AppendDecoded(token(id), first, &text);
    first = false;
  }
  return ValidUtf8(std::move(text));
}

std::string Tokenizer::TokenText(int32_t id) const {
  return ValidUtf8(pipeline_.model->Show(token(id)));
}

int32_t Tokenizer::id(absl::string_view token) const { return ids_.Find(token); }

void Tokenizer::AddToKey(Hasher* key) const {
  key->AddNumber(vocab_size());
  for (int32_t id = 0; id < vocab_size(); ++id) {
    key->AddText(token(id));
    key->AddNumber(is_special(id));
  }
  if (const std::string rules = RulesKey(data_); !rules.empty()) key->AddText(rules);
  const NormalizerOptions o = data_.scheme->normalizer_options();
  for (const bool option : {o.clean_text, o.chinese_chars, o.strip_accents, o.lowercase})
    key->AddNumber(option);
  for (const int32_t id : special_.All()) key->AddNumber(id);
}

bool Tokenizer::SameIds(const Tokenizer& other) const {
  return data_.tokens == other.data_.tokens && RulesKey(data_) == RulesKey(other.data_) &&
         data_.scheme->normalizer_options() == other.data_.scheme->normalizer_options() &&
         special_.All() == other.special_.All();
}

}  // namespace cloze
