#include "tasks/long_text.h"

#include <algorithm>

namespace cloze {
namespace {

Keep KeepOf(SequenceClassificationSpec::LongTexts long_texts) {
  switch (long_texts) {
    case SequenceClassificationSpec::TAIL: return Keep::kTail;
    case SequenceClassificationSpec::HEAD_TAIL: return Keep::kHeadTail;
    case SequenceClassificationSpec::HEAD:
    case SequenceClassificationSpec::WINDOWS: break;
  }
  return Keep::kHead;
}

// <class> head tail <sep>.
TextSequence Wrap(
    const SpecialIds& special, absl::Span<const int32_t> head, absl::Span<const int32_t> tail) {
  TextSequence sequence;
  sequence.ids.reserve(head.size() + tail.size() + 2);
  sequence.ids.push_back(special.cls);
  sequence.ids.insert(sequence.ids.end(), head.begin(), head.end());
  sequence.ids.insert(sequence.ids.end(), tail.begin(), tail.end());
  sequence.ids.push_back(special.sep);
  sequence.second = sequence.ids.size();
  return sequence;
}

}  // namespace

std::vector<TextSequence> SequencesOfText(const Tokenizer& tokenizer, absl::string_view text,
    const std::string* pair, int64_t max_tokens, SequenceClassificationSpec::LongTexts long_texts,
    int64_t* cut) {
  *cut = 0;
  if (pair != nullptr) {
    Encoding encoding = tokenizer.EncodePair(text, *pair);
    *cut = Truncate(&encoding, max_tokens, KeepOf(long_texts));
    const int64_t second =
        std::find(encoding.types.begin(), encoding.types.end(), 1) - encoding.types.begin();
    return {{std::move(encoding.ids), second}};
  }
  std::vector<int32_t> pieces;
  tokenizer.AppendIds(text, &pieces);
  const absl::Span<const int32_t> all = pieces;
  const int64_t count = all.size(), room = max_tokens - 2;
  if (count <= room) return {Wrap(tokenizer.special(), all, {})};
  std::vector<TextSequence> sequences;
  if (long_texts == SequenceClassificationSpec::WINDOWS) {
    const int64_t windows = (count + room - 1) / room;
    for (int64_t i = 0; i < windows; ++i) {
      const int64_t begin = i * (count - room) / (windows - 1);
      sequences.push_back(Wrap(tokenizer.special(), all.subspan(begin, room), {}));
    }
    return sequences;
  }
  *cut = count - room;
  const int64_t first = FirstKept(room, KeepOf(long_texts));
  sequences.push_back(
      Wrap(tokenizer.special(), all.subspan(0, first), all.subspan(count - (room - first))));
  return sequences;
}

}  // namespace cloze
