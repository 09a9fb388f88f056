// The logits of a text, put together from its windows.
#ifndef CLOZE_TASKS_TEXT_LOGITS_H_
#define CLOZE_TASKS_TEXT_LOGITS_H_

#include <functional>
#include <vector>

#include "core/tensor/mat.h"
#include "tasks/data/example_store.h"

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

}  // namespace cloze

#endif  // CLOZE_TASKS_TEXT_LOGITS_H_
