// Which steps were skipped because their numbers were not finite, and when there are too many of
// them.
#ifndef CLOZE_TASKS_TRAINING_SKIPPED_STEPS_H_
#define CLOZE_TASKS_TRAINING_SKIPPED_STEPS_H_

#include <cstdint>
#include <deque>

namespace cloze {

class SkippedSteps {
 public:
  static constexpr int64_t kMostInARow = 9, kWindow = 1000, kMostInWindow = 10;

  // Steps come in ascending order.
  void Add(int64_t step);
  // More than kMostInARow one after the other, or more than kMostInWindow (1 %) of the kWindow
  // steps up to the last that was added.
  bool TooMany() const { return InARow() > kMostInARow || InWindow() > kMostInWindow; }
  // Steps just before and with the last one that was added.
  int64_t InARow() const;
  int64_t InWindow() const { return recent_.size(); }
  // The last ones: all that later answers depend on.
  const std::deque<int64_t>& recent() const { return recent_; }

 private:
  std::deque<int64_t> recent_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SKIPPED_STEPS_H_
