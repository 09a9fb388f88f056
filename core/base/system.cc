#include "core/base/system.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/control_groups.h"
#include "core/base/json.h"

namespace cloze {
namespace {

constexpr int64_t kKilobyte = 1024;

}  // namespace

std::string ReadSystemFile(const std::string& path) {
  std::string text(16384, '\0');
  std::FILE* file = std::fopen(path.c_str(), "re");
  text.resize(file == nullptr ? 0 : std::fread(text.data(), 1, text.size(), file));
  if (file != nullptr) std::fclose(file);
  return text;
}

std::vector<int64_t> SystemNumbers(const std::string& path, absl::string_view label) {
  std::vector<int64_t> numbers;
  const std::string text = ReadSystemFile(path);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    const size_t first = label.empty() ? 0 : 1;
    if (first == 1 && (words.empty() || words[0] != label)) continue;
    int64_t number = 0;
    for (size_t i = first; i < words.size() && absl::SimpleAtoi(words[i], &number); ++i)
      numbers.push_back(number);
    break;
  }
  return numbers;
}

int64_t SystemNumber(const std::string& path, absl::string_view label) {
  const std::vector<int64_t> numbers = SystemNumbers(path, label);
  return numbers.empty() ? -1 : numbers[0];
}

int64_t AvailableMemory() {
  rlimit addresses = {RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(RLIMIT_AS, &addresses);  // unlimited is negative as int64_t
  return std::min({Remaining(addresses.rlim_cur,
                       SystemNumber("/proc/self/status", "VmSize:") * kKilobyte),
      Remaining(SystemNumber("/proc/meminfo", "MemAvailable:") * kKilobyte, 0), MemoryOfGroups()});
}

absl::Status CheckCpu() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")) return absl::OkStatus();
  return Error(
      Exit::kCpu, "this CPU has no SSE4.2: expected x86-64-v2, that is a CPU of 2009 or later");
}

absl::Status Caught(absl::FunctionRef<absl::Status()> f, absl::string_view remedy) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return Error(Exit::kLimit, "out of memory (try ", remedy, ")");
  } catch (const nlohmann::json::exception& error) {
    return Error(
        Exit::kData, "a JSON file has a value of an unexpected type: ", Quote(error.what()));
  } catch (const std::exception& error) {
    return Error(Exit::kLimit, "system error: ", Quote(error.what()),
        " (check ulimit -v and -u, and the limits of the cgroup)");
  }
}

int64_t PeakMemory() {
  return std::max<int64_t>(SystemNumber("/proc/self/status", "VmHWM:"), 0) * kKilobyte;
}

}  // namespace cloze
