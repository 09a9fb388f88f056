// Text to ids: the fast path and the one with offsets agree, offsets stay inside the text, and no
// id is outside the vocabulary.
#include <algorithm>

#include "core/text/tokenizer/tokenizer.h"
#include "core/text/unicode/unicode.h"
#include "tests/fuzz/input.h"

namespace cloze {
namespace {

std::unique_ptr<Tokenizer> Make(NormalizerOptions options) {
  std::vector<std::string> tokens = {"<pad>", "<unk>", "<class>", "<sep>", "<mask>", "the", "##s",
      "##\xC3\xA9", "\xE4\xBD\xA0", "#", "##", "<", ">"};
  for (char c = 'a'; c <= 'z'; ++c)
    tokens.push_back(std::string(1, c)), tokens.push_back(std::string("##") + c + c);
  auto tokenizer = Tokenizer::Create({.tokens = tokens, .scheme = BertScheme(options)});
  CLOZE_CHECK(tokenizer.ok());
  return *std::move(tokenizer);
}

void CheckSpans(const std::vector<Span>& spans, int64_t size) {
  for (size_t i = 0; i < spans.size(); ++i) {
    CLOZE_CHECK(spans[i].begin >= 0 && spans[i].begin <= spans[i].end && spans[i].end <= size);
    if (i > 0) CLOZE_CHECK(spans[i].begin >= spans[i - 1].begin);
  }
}

void Check(const Tokenizer& tokenizer, const std::string& text) {
  const Encoding e = tokenizer.Encode(text, false);
  std::vector<int32_t> ids;
  tokenizer.AppendIds(text, &ids);
  CLOZE_CHECK(ids == e.ids && e.ids.size() <= text.size());
  for (const int32_t id : ids) CLOZE_CHECK(id >= 0 && id < tokenizer.vocab_size());
  CheckSpans(e.bytes, text.size());
  CheckSpans(e.chars, CountCodePoints(text));
  CLOZE_CHECK(std::is_sorted(e.words.begin(), e.words.end()));
  tokenizer.Decode(ids);
  const size_t half = text.size() / 2;
  Encoding pair = tokenizer.EncodePair(text.substr(0, half), text.substr(half));
  const int64_t before = pair.ids.size(), cut = Truncate(&pair, 16);
  CLOZE_CHECK(before == cut + static_cast<int64_t>(pair.ids.size()) && pair.ids.size() <= 16);
  for (const int32_t word : tokenizer.EncodeWords({text.substr(0, half), text.substr(half)}).words)
    CLOZE_CHECK(word >= -1 && word < 2);
}

}  // namespace
}  // namespace cloze

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cloze;
  static const auto lower = Make({}), cased = Make({.clean_text = false,
                                          .chinese_chars = false,
                                          .strip_accents = false,
                                          .lowercase = false});
  const std::string text(reinterpret_cast<const char*>(data), size);
  Check(*lower, text);
  Check(*cased, text);
  return 0;
}
