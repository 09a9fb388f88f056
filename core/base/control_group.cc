#include "core/base/control_group.h"

#include <cstdio>
#include <cstring>

namespace cloze {

std::vector<std::string> ControlGroups() {
  const std::string mount = "/sys/fs/cgroup";
  std::string group;
  if (std::FILE* file = std::fopen("/proc/self/cgroup", "re")) {
    char line[4096];
    while (std::fgets(line, sizeof(line), file) != nullptr) {
      if (std::strncmp(line, "0::/", 4) == 0) group.assign(line + 3, std::strcspn(line + 3, "\n"));
    }
    std::fclose(file);
  }
  std::vector<std::string> folders;
  for (; group.size() > 1; group.resize(group.rfind('/'))) folders.push_back(mount + group);
  folders.push_back(mount);
  return folders;
}

}  // namespace cloze
