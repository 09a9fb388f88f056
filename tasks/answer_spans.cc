#include "tasks/answer_spans.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"
#include "tasks/probabilities.h"

namespace cloze {

EncodedQuestion EncodeQuestion(const Tokenizer& tokenizer, const QuestionAnsweringSpec& spec,
    absl::string_view question, absl::string_view context) {
  const Encoding all = tokenizer.EncodePair(question, context);
  const int64_t size = all.ids.size(), count = tokenizer.Encode(context, false).ids.size(),
                begin = size - 1 - count;
  int64_t asked = 0;  // tokens of the question
  while (1 + asked < begin && all.words[1 + asked] >= 0) ++asked;
  const int64_t kept = std::min<int64_t>(
      {asked, spec.longest_question(), static_cast<int64_t>(spec.max_tokens()) / 2});
  EncodedQuestion encoded;
  encoded.stats.cut_tokens = asked - kept;
  std::vector<int32_t> prefix(all.ids.begin(), all.ids.begin() + 1 + kept);
  prefix.insert(prefix.end(), all.ids.begin() + 1 + asked, all.ids.begin() + begin);
  encoded.prefix = prefix.size();
  encoded.bytes.assign(all.bytes.begin() + begin, all.bytes.end() - 1);
  encoded.chars.assign(all.chars.begin() + begin, all.chars.end() - 1);
  const int64_t room = std::max<int64_t>(spec.max_tokens() - encoded.prefix - 1, 1);
  const int64_t step = room - std::min<int64_t>(spec.overlap(), room / 2);
  for (int64_t first = 0;; first += step) {
    const int64_t end = std::min(first + room, count);
    Example& window = encoded.windows.emplace_back();
    window.ids = prefix;
    window.ids.insert(
        window.ids.end(), all.ids.begin() + begin + first, all.ids.begin() + begin + end);
    window.ids.push_back(all.ids.back());
    const bool second_type = all.types.back() == 1;
    window.second = static_cast<int32_t>(second_type ? encoded.prefix : window.ids.size());
    window.continues = first > 0;
    encoded.first.push_back(first);
    encoded.stats.text_tokens += CountTextTokens(tokenizer, window.ids);
    encoded.stats.unknown_tokens +=
        std::count(window.ids.begin(), window.ids.end(), tokenizer.special().unk);
    if (end == count) break;
  }
  encoded.stats.truncated = encoded.stats.cut_tokens > 0;
  return encoded;
}

void SetTargets(const std::vector<Question::Answer>& answers, EncodedQuestion* encoded) {
  int64_t start = -1, end = -1;  // first and last token of the answer
  if (!answers.empty()) {
    const int64_t from = answers[0].start, to = from + CountCodePoints(answers[0].text);
    for (int64_t i = 0; i < static_cast<int64_t>(encoded->chars.size()); ++i) {
      const Span& token = encoded->chars[i];
      if (start < 0 && token.end > from && token.begin < to) start = i;
      if (token.begin < to && token.end > from) end = i;
    }
  }
  for (size_t w = 0; w < encoded->windows.size(); ++w) {
    const int64_t first = encoded->first[w], shift = encoded->prefix - first;
    const bool inside = start >= first && end < first + encoded->length(w);
    encoded->windows[w].rows = {static_cast<int32_t>(inside ? start + shift : 0),
        static_cast<int32_t>(inside ? end + shift : 0)};
    encoded->windows[w].labels = {kAnswerStart, kAnswerEnd};
  }
}

FoundAnswer FindAnswer(
    const EncodedQuestion& encoded, const QuestionAnsweringSpec& spec, const TextLogits& text) {
  std::vector<double> starts, ends;  // candidates
  double best = -std::numeric_limits<double>::infinity(),
         null = std::numeric_limits<double>::infinity();
  int64_t begin = -1, end = -1, row = 0;
  for (size_t w = 0; w < text.windows.size(); ++w) {
    const float *cls = text.logits.f32(row), *at = text.logits.f32(row + encoded.prefix);
    const int64_t n = encoded.length(w), stride = text.logits.stride;
    null = std::min(null, double{cls[kAnswerStart]} + cls[kAnswerEnd]);
    if (spec.unanswerable() || n == 0) {
      starts.push_back(cls[kAnswerStart]);
      ends.push_back(cls[kAnswerEnd]);
    }
    for (int64_t i = 0; i < n; ++i) {
      starts.push_back(at[i * stride + kAnswerStart]);
      ends.push_back(at[i * stride + kAnswerEnd]);
      for (int64_t j = i; j < std::min<int64_t>(n, i + spec.longest_answer()); ++j) {
        const double sum = double{at[i * stride + kAnswerStart]} + at[j * stride + kAnswerEnd];
        if (sum <= best) continue;
        best = sum;
        begin = encoded.first[w] + i;
        end = encoded.first[w] + j;
      }
    }
    row += text.windows[w].ids.size();
  }
  FoundAnswer answer;
  answer.none = begin < 0 || (spec.unanswerable() && null > best);
  answer.score = static_cast<float>(
      std::exp((answer.none ? null : best) - LogSumExp(starts) - LogSumExp(ends)));
  if (answer.none) return answer;
  answer.bytes = {encoded.bytes[begin].begin, encoded.bytes[end].end};
  answer.chars = {encoded.chars[begin].begin, encoded.chars[end].end};
  return answer;
}

}  // namespace cloze
