// Ctrl-C and its kin, for commands that have something to save or to remove.
#ifndef CLOZE_TOOLS_STOP_H_
#define CLOZE_TOOLS_STOP_H_

#include <atomic>

namespace cloze {

// From now on the first SIGINT, SIGTERM or SIGHUP makes the flag true, and the second one ends the
// process at once with 128 + its number. A SIGHUP that the process was started to ignore (nohup)
// stays ignored.
const std::atomic<bool>* StopOnSignals();

}  // namespace cloze

#endif  // CLOZE_TOOLS_STOP_H_
