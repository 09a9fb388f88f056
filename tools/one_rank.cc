#include <cstdio>

#include "tasks/console/screen.h"
#include "tools/ranks.h"

namespace cloze {

Ranks& ProgramRanks() { return OneRank(); }

int LeaveRanks(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", ForTerminal(status.message()).c_str());
  return static_cast<int>(ExitOf(status));
}

}  // namespace cloze
