#include "core/base/system.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/control_groups.h"

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

int64_t PeakMemory() {
  return std::max<int64_t>(SystemNumber("/proc/self/status", "VmHWM:"), 0) * kKilobyte;
}

}  // namespace cloze
