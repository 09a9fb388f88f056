// Reading of what a user asks, and answers of a task: windows of texts, their logits, JSON.
#ifndef CLOZE_TASKS_ANSWERS_H_
#define CLOZE_TASKS_ANSWERS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/json.h"
#include "encoder/model.h"
#include "tasks/data/example_store.h"
#include "tasks/record.h"

namespace cloze {

// The windows of one text, and the logits of their rows, window after window.
struct TextLogits {
  absl::Span<const Example> windows;
  ConstMat logits;  // [sum of the windows' rows, labels] f32
};

// Joins consecutive windows into texts: a window with `continues` belongs to the text before it.
class WindowJoiner {
 public:
  // Calls `on_text` for each text when it is complete; the argument is valid during the call.
  explicit WindowJoiner(std::function<void(const TextLogits&)> on_text)
      : on_text_(std::move(on_text)) {}
  // Adds a window; logits [rows of the window, labels] f32.
  void Add(const Example& window, ConstMat logits);
  // Completes the last text.
  void Finish();

 private:
  std::function<void(const TextLogits&)> on_text_;
  std::vector<Example> windows_;
  std::vector<float> logits_;
  int64_t rows_ = 0, labels_ = 0;
};

// The user's settings for inference. Tasks ignore those that do not apply to them.
struct DecodeOptions {
  std::optional<bool> viterbi = std::nullopt;  // token_tagging; none: as the model was trained
  int top = 5;                                 // masked_lm: tokens in an answer
  bool fit = false;  // during training: fit temperature and thresholds, if the spec asks for it
  int errors = 10;   // wrong texts that an evaluation shows, of one label a text or a word
};

// Returns the members of an answer, in the order to print. Thread-safe. Copies the weights that it
// needs when it is made; the task must outlive it.
using Decoder = std::function<OrderedJson(const Record& record, const TextLogits& text)>;

// Returns a sequence of type 0 and one row.
Example WithRow(std::vector<int32_t> ids, int64_t row);

// Const methods are thread-safe.
class Answers {
 public:
  virtual ~Answers() = default;
  // The windows of a record, with the rows whose logits the answer needs. kData or kUsage for a
  // kind of record that the task does not take; the tokenizer's error if there is none.
  virtual absl::StatusOr<std::vector<Example>> Encode(
      const Record& record, const ModelInput& input, CutCounts* cut) const = 0;
  // By default none: `cloze generate` does not use it.
  virtual Decoder NewDecoder(const Model& /*model*/, const DecodeOptions& /*options*/) const {
    return nullptr;
  }
  // Returns the probabilities behind an answer [answers, labels], with one answer per text or, of a
  // tagger, per word; of a regression, the number. By default none.
  virtual std::vector<float> Probabilities(const TextLogits& /*text*/) const { return {}; }
  // Returns a key that is equal for equal answers; "" if answers are numbers. By default the best
  // label of each row.
  virtual std::string AnswerKey(const TextLogits& text) const;
  // True if the answer to any text is one or more labels, or a part of the text.
  virtual bool has_discrete_answers() const { return false; }
  // True if lines of text are pairs.
  virtual bool reads_pairs() const { return false; }
  // Returns the sequence of `ids` whose row is kept as a sample of the model.
  virtual Example Sample(std::vector<int32_t> ids) const {
    const int64_t middle = std::ssize(ids) / 2;
    return WithRow(std::move(ids), middle);
  }
};

}  // namespace cloze

#endif  // CLOZE_TASKS_ANSWERS_H_
