#include "tasks/answers.h"

#include "absl/strings/str_cat.h"
#include "tasks/probabilities.h"

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

Example WithRow(std::vector<int32_t> ids, int64_t row) {
  Example example;
  example.second = static_cast<int32_t>(ids.size());
  example.rows = {static_cast<int32_t>(row)};
  example.ids = std::move(ids);
  return example;
}

std::string Answers::AnswerKey(const TextLogits& text) const {
  const ConstMat logits = text.logits;
  std::string key;
  for (int64_t r = 0; r < logits.rows; ++r)
    absl::StrAppend(&key, BestIndex({logits.f32(r), static_cast<size_t>(logits.cols)}), " ");
  return key;
}

}  // namespace cloze
