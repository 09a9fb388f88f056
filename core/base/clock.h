// Time that only goes forward.
#ifndef CLOZE_CORE_BASE_CLOCK_H_
#define CLOZE_CORE_BASE_CLOCK_H_

#include <chrono>

namespace cloze {

// Seconds since some moment, untouched by changes of the system's clock.
inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CLOCK_H_
