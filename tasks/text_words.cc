#include "tasks/text_words.h"

#include "core/text/unicode/unicode.h"

namespace cloze {
namespace {

std::vector<TextWord> TokenizerWords(const Tokenizer& tokenizer, absl::string_view text) {
  const Encoding e = tokenizer.Encode(text, false);
  std::vector<TextWord> words;
  for (size_t i = 0; i < e.ids.size(); ++i) {
    if (i == 0 || e.words[i] != e.words[i - 1]) words.push_back({e.bytes[i], e.chars[i]});
    words.back().bytes.end = e.bytes[i].end;
    words.back().chars.end = e.chars[i].end;
  }
  return words;
}

}  // namespace

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

OrderedJson PlaceOf(Span bytes, Span chars) {
  return {{"start", chars.begin}, {"end", chars.end}, {"byte_start", bytes.begin},
      {"byte_end", bytes.end}};
}

std::vector<std::string> Slices(absl::string_view text, const std::vector<TextWord>& words) {
  std::vector<std::string> slices;
  for (const TextWord& w : words) slices.push_back(Slice(text, w.bytes));
  return slices;
}

}  // namespace cloze
