// Spans of a context as answers: the windows of a question and its context, the targets of
// training, and the likeliest span.
#ifndef CLOZE_TASKS_ANSWER_SPANS_H_
#define CLOZE_TASKS_ANSWER_SPANS_H_

#include <vector>

#include "proto/task.pb.h"
#include "tasks/answers.h"
#include "tasks/record.h"
#include "tasks/squad.h"

namespace cloze {

// Kinds of stored labels: columns of the logits, and bits that mark the rows of a batch.
inline constexpr int32_t kAnswerStart = 0, kAnswerEnd = 1;

// The windows of a question with its context: <class> question <sep> part of the context <sep>.
struct EncodedQuestion : EncodedText {
  std::vector<int64_t> first;      // of each window: its first token of the context
  int64_t prefix = 0;              // tokens before the context
  std::vector<Span> bytes, chars;  // of each token of the context

  // Tokens of the context in window w.
  int64_t length(size_t w) const { return windows[w].ids.size() - prefix - 1; }
};

// Cuts a question and its context into windows of spec.max_tokens() tokens that overlap. The
// tokenizer must encode pairs as <special> question ... context <special>.
EncodedQuestion EncodeQuestion(const Tokenizer& tokenizer, const QuestionAnsweringSpec& spec,
    absl::string_view question, absl::string_view context);

// Marks the first answer in each window that holds all of it, and <class> in the others.
void SetTargets(const std::vector<Question::Answer>& answers, EncodedQuestion* encoded);

struct FoundAnswer {
  bool none = true;
  Span bytes, chars;  // in the context
  float score = 0;    // probability of the start times that of the end, over all windows
};

// Returns the span with the largest sum of start and end logits (Devlin et al. 2019). Returns none
// if spec.unanswerable() and the smallest sum of <class> over the windows is larger, or if the
// context has no tokens.
FoundAnswer FindAnswer(
    const EncodedQuestion& encoded, const QuestionAnsweringSpec& spec, const TextLogits& text);

}  // namespace cloze

#endif  // CLOZE_TASKS_ANSWER_SPANS_H_
