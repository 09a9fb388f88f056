// Limits that specs, model folders and data files share.
#ifndef CLOZE_CORE_BASE_LIMITS_H_
#define CLOZE_CORE_BASE_LIMITS_H_

namespace cloze {

// Labels of a task, and bytes of a label.
inline constexpr int kMaxLabels = 10'000, kMaxLabelBytes = 1024;

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_LIMITS_H_
