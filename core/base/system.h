// Facts about the system: time, files of /proc and /sys, control groups, memory.
#ifndef CLOZE_CORE_BASE_SYSTEM_H_
#define CLOZE_CORE_BASE_SYSTEM_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Returns seconds since an arbitrary moment, independent of changes of the system clock.
inline double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns the first 16 KB of a file of /proc or /sys; "" when it cannot be read.
std::string ReadSystemFile(const std::string& path);

// Returns the numbers that follow `label` in the first line that begins with it, up to the first
// word that is not a number. An empty label stands for the first line.
std::vector<int64_t> SystemNumbers(const std::string& path, absl::string_view label = "");

// Returns the first of SystemNumbers; -1 when there is none.
int64_t SystemNumber(const std::string& path, absl::string_view label = "");

// Returns the bytes that this process can still allocate: the least of the machine's available
// memory, the control groups' limits and `ulimit -v`. kUnlimited when nothing is known.
int64_t AvailableMemory();

// kCpu unless this CPU has what oneDNN and the baseline kernels need: x86-64-v2.
absl::Status CheckCpu();

// Calls f and turns exceptions of the standard library, of the JSON parser and of oneDNN into a
// status. `remedy`: what helps if memory is short.
absl::Status Caught(absl::FunctionRef<absl::Status()> f, absl::string_view remedy);

// Returns the peak of resident memory in bytes; 0 when unknown.
int64_t PeakMemory();

// Returns the folders of this process's control group and of its ancestors, innermost first: of
// version 1 for `controller` ("memory", "cpu"), of version 2 for "". The mount point comes last; in
// a container it is the group itself.
std::vector<std::string> ControlGroups(const std::string& controller, const std::string& root);

// Returns the bytes that this process can still allocate within the limits of its control groups;
// kUnlimited if there are none.
int64_t MemoryOfGroups(const std::string& root = "");

// Returns the least CPU quota of the control groups in cores; 0 if there is none.
double CoresOfGroups(const std::string& root = "");

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_SYSTEM_H_
