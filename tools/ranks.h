// Joining and leaving the ranks of a job: `cloze` is a single rank (tools/one_rank.cc),
// `cloze-mpi` uses MPI (tools/mpi).
#ifndef CLOZE_TOOLS_RANKS_H_
#define CLOZE_TOOLS_RANKS_H_

#include "core/comm/ranks.h"

namespace cloze {

// The ranks of this program; joins them at the first call.
Ranks& ProgramRanks();

// Prints the error of the program, once for all ranks, and leaves them. Returns the exit code.
int LeaveRanks(const absl::Status& status);

}  // namespace cloze

#endif  // CLOZE_TOOLS_RANKS_H_
