#include "tasks/record.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/base/text.h"
#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

// Moves the start of a token's place behind the spaces there.
void TrimSpaces(absl::string_view text, TextWord* place) {
  while (place->bytes.begin < place->bytes.end) {
    const CodePoint c = CodePointAt(text, place->bytes.begin);
    if (!IsSpace(c.value)) break;
    place->bytes.begin += c.size, ++place->chars.begin;
  }
}

// True if a token starts a word although its tokenizer cuts only at spaces: words end at
// punctuation and, in scripts without spaces, with each token.
bool StartsWord(const Tokenizer& tokenizer, absl::string_view text, Span before, Span token) {
  if (!tokenizer.cuts_only_spaces()) return false;
  const bool follows = before.begin < before.end && before.end <= token.begin;
  if (!follows || token.begin == token.end) return false;
  const char32_t c = CodePointAt(text, token.begin).value;
  const size_t last = std::max<size_t>(before.begin, Utf8Floor(text, before.end - 1));
  const char32_t d = CodePointAt(text, last).value;
  return IsUnspaced(c) || IsUnspaced(d) || IsPunctuation(c) || IsPunctuation(d);
}

std::vector<TextWord> TokenizerWords(const Tokenizer& tokenizer, absl::string_view text) {
  const Encoding e = tokenizer.Encode(text, false);
  std::vector<TextWord> words;
  Span before;  // bytes of the last token with text
  int32_t word = -1;
  for (size_t i = 0; i < e.ids.size(); ++i) {
    TextWord token{e.bytes[i], e.chars[i]};
    TrimSpaces(text, &token);
    if (token.bytes.begin >= token.bytes.end) continue;  // spaces, which may be trimmed
    if (e.words[i] != word || StartsWord(tokenizer, text, before, token.bytes))
      words.push_back(token);
    words.back().bytes.end = token.bytes.end;
    words.back().chars.end = token.chars.end;
    word = e.words[i], before = token.bytes;
  }
  return words;
}

using Ids = absl::Span<const int32_t>;

// <class> head tail <sep>.
Example Wrap(const SpecialIds& special, Ids head, Ids tail = {}) {
  Example example;
  example.ids.reserve(head.size() + tail.size() + 2);
  example.ids.push_back(special.cls);
  example.ids.insert(example.ids.end(), head.begin(), head.end());
  example.ids.insert(example.ids.end(), tail.begin(), tail.end());
  example.ids.push_back(special.sep);
  example.second = static_cast<int32_t>(example.ids.size());
  return example;
}

// The windows of a single text; counts cut_tokens.
std::vector<Example> WindowsOfText(const SpecialIds& special, Ids pieces, int64_t room,
    SequenceClassificationSpec::LongTexts long_texts, Keep keep, int64_t* cut) {
  const int64_t count = pieces.size();
  if (count <= room) return {Wrap(special, pieces)};
  if (long_texts != SequenceClassificationSpec::WINDOWS) {
    *cut = count - room;
    const int64_t first = FirstKept(room, keep);
    return {Wrap(special, pieces.subspan(0, first), pieces.subspan(count - (room - first)))};
  }
  std::vector<Example> windows;
  const int64_t last = (count + room - 1) / room - 1;
  for (int64_t i = 0; i <= last; ++i)
    windows.push_back(Wrap(special, pieces.subspan(i * (count - room) / last, room)));
  return windows;
}

// Pieces of words: those of word w are ids[begin[w]] ... ids[begin[w + 1] - 1], at least one and at
// most `most`.
struct Pieces {
  std::vector<int32_t> ids;
  std::vector<int64_t> begin = {0};

  Pieces(const Tokenizer& tokenizer, absl::Span<const std::string> words, int64_t most,
      DataStats* stats) {
    const Encoding encoding = tokenizer.EncodeWords(words, /*special=*/false);
    size_t at = 0;
    for (size_t w = 0; w < words.size(); ++w) {
      const auto first = encoding.ids.begin() + at;
      int64_t count = 0;
      for (; at < encoding.ids.size() && encoding.words[at] == static_cast<int32_t>(w); ++at)
        ++count;
      ids.insert(ids.end(), first, first + std::min(count, most));
      if (count == 0) ids.push_back(tokenizer.special().unk);
      begin.push_back(ids.size());
      stats->empty_words += count == 0;
      stats->truncated += count > most;
      stats->cut_tokens += std::max<int64_t>(count - most, 0);
    }
    stats->unknown_tokens += std::count(ids.begin(), ids.end(), tokenizer.special().unk);
  }
  int64_t of(int64_t first, int64_t last) const { return begin[last] - begin[first]; }
};

// The words [first, last) of each window.
struct Extent {
  int64_t first, last;
};
std::vector<Extent> Cut(const Pieces& pieces, int64_t capacity, Overlap overlap) {
  const int64_t n = pieces.begin.size() - 1;
  std::vector<Extent> extents;
  for (int64_t first = 0, last = 0; last < n;) {
    while (last < n && pieces.of(first, last + 1) <= capacity) ++last;
    extents.push_back({first, last});
    int64_t next = last;
    while (
        overlap == Overlap::kHalf && next > first + 1 && pieces.of(next - 1, last) <= capacity / 2)
      --next;
    while (last < n && pieces.of(next, last + 1) > capacity) ++next;  // a long word needs the room
    first = next;
  }
  return extents;
}

}  // namespace

void CutCounts::Add(int64_t cut, size_t sequences, int64_t limit) {
  texts += cut > 0;
  tokens += cut;
  windows += sequences > 1;
  if (cut > 0 || sequences > 1) max_tokens = limit;
}

std::string CutCounts::DescribeCut() const {
  return absl::StrCat("longer than the model's ", max_tokens, " tokens: ", Counted(texts, "text"),
      ", ", Counted(tokens, "token"), " cut off");
}

Example ExampleOf(Encoding encoding, int64_t max_tokens, int64_t* dropped, Keep keep) {
  *dropped = Truncate(&encoding, max_tokens, keep);
  Example example;
  example.second = static_cast<int32_t>(
      std::find(encoding.types.begin(), encoding.types.end(), 1) - encoding.types.begin());
  example.ids = std::move(encoding.ids);
  return example;
}

absl::StatusOr<Example> EncodeRecord(
    const Record& record, const ModelInput& input, CutCounts* cut) {
  Example example;
  if (record.kind == Record::Kind::kIds) {
    const int64_t count = record.ids.size();
    if (count == 0 || count > input.longest)
      return Error(Exit::kData, "ids: ", count, " tokens: expected 1 to ", input.longest);
    if (record.second >= 0 && record.second < (input.token_types < 2 ? count : 1)) {
      return Error(Exit::kData, "\"token_type_ids\": expected ",
          input.token_types < 2 ? "only 0: the model has one type" : "0 for the first token");
    }
    example.ids = record.ids;
    example.second = static_cast<int32_t>(record.second < 0 ? count : record.second);
    return example;
  }
  ASSIGN_OR_RETURN(const Tokenizer* tokenizer, input.tokenizer);
  int64_t dropped = 0;
  example =
      ExampleOf(EncodeWhole(*tokenizer, record), input.longest, &dropped, tokenizer->usual_keep());
  cut->Add(dropped, 1, input.longest);
  return example;
}

Encoding EncodeWhole(const Tokenizer& tokenizer, const Record& record) {
  if (record.kind == Record::Kind::kPair)
    return tokenizer.EncodePair(record.text, record.text_pair);
  if (record.kind == Record::Kind::kWords) return tokenizer.EncodeWords(record.words);
  return tokenizer.Encode(record.text);
}

int64_t CountTextTokens(const Tokenizer& tokenizer, absl::Span<const int32_t> ids) {
  return absl::c_count_if(
      ids, [&](int32_t id) { return id == tokenizer.special().unk || !tokenizer.is_special(id); });
}

OrderedJson InputMembers(const Record& record) {
  if (record.kind == Record::Kind::kIds) return {{"ids", record.ids}};
  if (record.kind == Record::Kind::kWords) return {{"tokens", record.words}};
  OrderedJson members = {{"text", record.text}};
  if (record.kind == Record::Kind::kPair) members["text_pair"] = record.text_pair;
  return members;
}

void SetAllRows(Example* example) {
  example->rows.resize(example->ids.size());
  std::iota(example->rows.begin(), example->rows.end(), 0);
  example->further.assign(example->rows.size(), 0);
}

EncodedText SequencesOfText(const Tokenizer& tokenizer, absl::string_view text,
    const std::string* pair, int64_t max_tokens, SequenceClassificationSpec::LongTexts long_texts) {
  const SpecialIds& special = tokenizer.special();
  const Keep keep = long_texts == SequenceClassificationSpec::TAIL        ? Keep::kTail
                    : long_texts == SequenceClassificationSpec::HEAD_TAIL ? Keep::kHeadTail
                                                                          : tokenizer.usual_keep();
  EncodedText sequences;
  DataStats& stats = sequences.stats;
  if (pair != nullptr) {
    sequences.windows.push_back(
        ExampleOf(tokenizer.EncodePair(text, *pair), max_tokens, &stats.cut_tokens, keep));
  } else {
    std::vector<int32_t> pieces;
    tokenizer.AppendIds(text, &pieces);
    sequences.windows =
        WindowsOfText(special, pieces, max_tokens - 2, long_texts, keep, &stats.cut_tokens);
  }
  for (Example& window : sequences.windows) {
    window.rows = {0};
    window.continues = &window != &sequences.windows.front();
    stats.text_tokens += std::count_if(window.ids.begin(), window.ids.end(),
        [&](int32_t id) { return id != special.cls && id != special.sep; });
    stats.unknown_tokens += std::count(window.ids.begin(), window.ids.end(), special.unk);
  }
  stats.truncated = stats.cut_tokens > 0 || sequences.windows.size() > 1;
  return sequences;
}

EncodedText CutIntoWindows(const Tokenizer& tokenizer, absl::Span<const std::string> words,
    absl::Span<const int32_t> labels, int32_t max_tokens, Overlap overlap) {
  CLOZE_CHECK(max_tokens >= 3);
  EncodedText sequences;
  sequences.stats.words = words.size();
  const int64_t capacity = max_tokens - 2;
  const Pieces pieces(tokenizer, words, capacity, &sequences.stats);
  const std::vector<Extent> extents = Cut(pieces, capacity, overlap);
  int64_t word = 0;  // the next without an owner
  for (size_t i = 0; i < extents.size(); ++i) {
    const auto [first, last] = extents[i];
    Example window = Wrap(
        tokenizer.special(), Ids(pieces.ids).subspan(pieces.begin[first], pieces.of(first, last)));
    window.continues = i > 0;
    // A word belongs to the window whose nearer end is farthest from it. The ends of the sentence
    // do not count, because no context is missing there.
    const int64_t end = i + 1 < extents.size() ? (last - 1 + extents[i + 1].first) / 2 + 1 : last;
    for (; word < end; ++word) {
      window.rows.push_back(static_cast<int32_t>(1 + pieces.of(first, word)));
      window.further.push_back(static_cast<int32_t>(pieces.of(word, word + 1) - 1));
      if (!labels.empty()) window.labels.push_back(labels[word]);
    }
    sequences.stats.text_tokens += pieces.of(first, last);
    sequences.windows.push_back(std::move(window));
  }
  return sequences;
}

std::vector<TextWord> WordsOfText(const Tokenizer& tokenizer, absl::string_view text) {
  const std::vector<TextWord> seen = TokenizerWords(tokenizer, text);
  std::vector<TextWord> words;
  size_t next = 0;  // of `seen`
  TextWord run;
  const auto close = [&](int64_t byte, int64_t character) {
    run.bytes.end = byte, run.chars.end = character;
    const size_t before = words.size();
    while (next < seen.size() && seen[next].bytes.begin < byte) words.push_back(seen[next++]);
    const bool covered =
        words.size() > before || (!words.empty() && words.back().bytes.end > run.bytes.begin);
    if (run.bytes.begin < byte && !covered) words.push_back(run);
  };
  int64_t character = 0;
  for (size_t at = 0; at < text.size(); ++character) {
    const CodePoint c = CodePointAt(text, at);
    const int64_t byte = at, end = at + c.size;
    if (IsSpace(c.value)) {
      close(byte, character);
      run = {{end, end}, {character + 1, character + 1}};
    }
    at = end;
  }
  close(text.size(), character);
  return words;
}

std::string Slice(absl::string_view text, Span bytes) {
  return std::string(text.substr(bytes.begin, bytes.end - bytes.begin));
}

std::vector<std::string> Slices(absl::string_view text, const std::vector<TextWord>& words) {
  std::vector<std::string> slices;
  for (const TextWord& w : words) slices.push_back(Slice(text, w.bytes));
  return slices;
}

OrderedJson OffsetsJson(Span bytes, Span chars) {
  return {{"start", chars.begin}, {"end", chars.end}, {"byte_start", bytes.begin},
      {"byte_end", bytes.end}};
}

}  // namespace cloze
