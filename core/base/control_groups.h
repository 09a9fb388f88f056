// Limits of the control groups (cgroups) of this process, versions 1 and 2.
#ifndef CLOZE_CORE_BASE_CONTROL_GROUPS_H_
#define CLOZE_CORE_BASE_CONTROL_GROUPS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace cloze {

// In all functions `root` stands for "/" in tests.

// Returns the folders of this process's control group and of its ancestors, innermost first: of
// version 1 for `controller` ("memory", "cpu"), of version 2 for "". The mount point comes last; in
// a container it is the group itself.
std::vector<std::string> ControlGroups(const std::string& controller, const std::string& root);

// Returns limit - used, at least 0; kUnlimited if the limit is negative (unknown).
int64_t Remaining(int64_t limit, int64_t used);

// Returns the bytes that this process can still allocate within the limits of its control groups;
// kUnlimited if there are none.
int64_t MemoryOfGroups(const std::string& root = "");

// Returns the least CPU quota of the control groups in cores; 0 if there is none.
double CoresOfGroups(const std::string& root = "");

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_CONTROL_GROUPS_H_
