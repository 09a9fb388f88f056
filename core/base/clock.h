// Monotonic time.
#ifndef CLOZE_CORE_BASE_CLOCK_H_
#define CLOZE_CORE_BASE_CLOCK_H_

#include <chrono>

namespace cloze {

// Returns seconds since an arbitrary moment, independent of changes of the system clock.
inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CLOCK_H_
