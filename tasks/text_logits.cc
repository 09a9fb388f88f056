#include "tasks/text_logits.h"

namespace cloze {

void WindowJoiner::Add(const Example& window, ConstMat logits) {
  if (!window.continues) Finish();
  windows_.push_back(window);
  labels_ = logits.cols;
  rows_ += logits.rows;
  for (int64_t r = 0; r < logits.rows; ++r)
    logits_.insert(logits_.end(), logits.f32(r), logits.f32(r) + logits.cols);
}

void WindowJoiner::Finish() {
  if (windows_.empty()) return;
  on_text_({windows_, View(static_cast<const float*>(logits_.data()), rows_, labels_)});
  windows_.clear();
  logits_.clear();
  rows_ = 0;
}

}  // namespace cloze
