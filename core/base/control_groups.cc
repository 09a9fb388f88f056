#include "core/base/control_groups.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/system.h"

namespace cloze {

int64_t Remaining(int64_t limit, int64_t used) {
  return limit < 0 ? kUnlimited : std::max<int64_t>(limit - std::max<int64_t>(used, 0), 0);
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

}  // namespace cloze
