#include "core/base/system.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/json.h"

namespace cloze {
namespace {

constexpr int64_t kKilobyte = 1024;

// Returns limit - used, at least 0; kUnlimited if the limit is negative (unknown).
int64_t Remaining(int64_t limit, int64_t used) {
  return limit < 0 ? kUnlimited : std::max<int64_t>(limit - std::max<int64_t>(used, 0), 0);
}

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

std::vector<std::string> ControlGroups(const std::string& controller, const std::string& root) {
  const std::string lines = ReadSystemFile(root + "/proc/self/cgroup");
  std::string mount = absl::StrCat(root, "/sys/fs/cgroup"), group;
  if (!controller.empty()) absl::StrAppend(&mount, "/", controller);
  for (absl::string_view line : absl::StrSplit(lines, '\n')) {  // NUMBER:CONTROLLERS:/GROUP
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::vector<absl::string_view> names = absl::StrSplit(parts[1], ',');
    if (absl::c_linear_search(names, controller)) group = std::string(parts[2]);
  }
  std::vector<std::string> folders;
  for (; group.size() > 1; group.resize(group.rfind('/'))) folders.push_back(mount + group);
  folders.push_back(mount);
  return folders;
}

int64_t MemoryOfGroups(const std::string& root) {
  int64_t least = kUnlimited;
  for (const std::string& group : ControlGroups("", root)) {
    least = std::min(least, Remaining(SystemNumber(group + "/memory.max"),
                                SystemNumber(group + "/memory.stat", "anon")));
  }
  for (const std::string& group : ControlGroups("memory", root)) {
    least = std::min(least, Remaining(SystemNumber(group + "/memory.limit_in_bytes"),
                                SystemNumber(group + "/memory.stat", "total_rss")));
  }
  return least;
}

double CoresOfGroups(const std::string& root) {
  double least = 0;
  const auto limit = [&](int64_t quota, int64_t period) {
    const double cores = quota > 0 && period > 0 ? static_cast<double>(quota) / period : 0;
    if (cores > 0) least = least > 0 ? std::min(least, cores) : cores;
  };
  for (const std::string& group : ControlGroups("", root)) {
    const std::vector<int64_t> numbers = SystemNumbers(group + "/cpu.max");
    if (numbers.size() >= 2) limit(numbers[0], numbers[1]);  // else "max"
  }
  for (const std::string& group : ControlGroups("cpu", root)) {
    limit(SystemNumber(group + "/cpu.cfs_quota_us"), SystemNumber(group + "/cpu.cfs_period_us"));
  }
  return least;
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
