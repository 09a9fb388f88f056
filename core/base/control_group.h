// Limits of the control groups that this process is in.
#ifndef CLOZE_CORE_BASE_CONTROL_GROUP_H_
#define CLOZE_CORE_BASE_CONTROL_GROUP_H_

#include <string>
#include <vector>

namespace cloze {

// Folders of the process's group (version 2) and of those around it, the innermost first; the mount
// itself, which in a container is the group, comes last.
std::vector<std::string> ControlGroups();

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CONTROL_GROUP_H_
