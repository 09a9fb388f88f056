#include "tasks/training/skipped_steps.h"

namespace cloze {

void SkippedSteps::Add(int64_t step) {
  recent_.push_back(step);
  while (recent_.front() <= step - kWindow) recent_.pop_front();
}

int64_t SkippedSteps::InARow() const {
  int64_t n = 0;
  for (auto step = recent_.rbegin(); step != recent_.rend() && *step == recent_.back() - n; ++step)
    ++n;
  return n;
}

}  // namespace cloze
