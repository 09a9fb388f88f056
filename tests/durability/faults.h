// File operations of this process that fail when told to: the test program's own write(), fsync(),
// ... stand before those of libc.
#ifndef CLOZE_TESTS_DURABILITY_FAULTS_H_
#define CLOZE_TESTS_DURABILITY_FAULTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cloze {

enum class Fault {
  kNone,
  kNoSpace,  // ENOSPC
  kIo,       // EIO; close() closes all the same
  kShort,    // write() takes half, and the next one has no space; nothing happens to other calls
  kKill      // the process is killed before the call
};

// A call that was seen: its name, and the path that it is about ("" for a file without a name).
struct FileCall {
  std::string name, path;
};

// From now on calls about files under `folder` that change something are counted, and call `at`
// (from 1) fails. Also records them, and writes to standard error that contain "saved ", which are
// not counted.
void ArmFaults(const std::string& folder, int64_t at, Fault fault);
// Until DisarmFaults, `hook` is asked before each such call, and before files are opened to read
// ("open to read") and read ("read", pread() only). If it returns an errno, the call fails with it.
void SetFaultHook(std::function<int(const FileCall&)> hook);
// Stops that. Returns what was recorded.
std::vector<FileCall> DisarmFaults();

// Adds to the time of day (not to the monotonic clock) that this process sees, growing by as much
// with each look at the clock.
void SetClockJump(int64_t seconds_a_look);

}  // namespace cloze

#endif  // CLOZE_TESTS_DURABILITY_FAULTS_H_
