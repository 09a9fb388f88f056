// Steps that were skipped because their loss or gradient was not finite, and the limit for them.
#ifndef CLOZE_TASKS_TRAINING_SKIPPED_STEPS_H_
#define CLOZE_TASKS_TRAINING_SKIPPED_STEPS_H_

#include <cstdint>
#include <deque>

namespace cloze {

class SkippedSteps {
 public:
  static constexpr int64_t kMaxInARow = 9, kWindow = 1000, kMaxInWindow = 10;

  // Requires ascending steps.
  void Add(int64_t step) {
    recent_.push_back(step);
    while (recent_.front() <= step - kWindow) recent_.pop_front();
  }
  // True if more than kMaxInARow consecutive steps, or more than kMaxInWindow (1 %) of the kWindow
  // steps up to the last one added, were skipped.
  bool TooMany() const { return InARow() > kMaxInARow || InWindow() > kMaxInWindow; }
  // Consecutive skipped steps that end with the last one added.
  int64_t InARow() const {
    int64_t n = 0;
    while (n < InWindow() && recent_[recent_.size() - 1 - n] == recent_.back() - n) ++n;
    return n;
  }
  int64_t InWindow() const { return recent_.size(); }
  // The steps in the window, which decide all later answers.
  const std::deque<int64_t>& recent() const { return recent_; }

 private:
  std::deque<int64_t> recent_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SKIPPED_STEPS_H_
