// Handles Ctrl-C and other signals, for commands that must save or remove files first.
#ifndef CLOZE_TOOLS_STOP_H_
#define CLOZE_TOOLS_STOP_H_

#include <atomic>

namespace cloze {

// Returns a flag that the first SIGINT, SIGTERM or SIGHUP sets. The second signal ends the process
// at once with 128 + its number. SIGHUP stays ignored if it was (nohup).
const std::atomic<bool>* StopOnSignals();

}  // namespace cloze

#endif  // CLOZE_TOOLS_STOP_H_
