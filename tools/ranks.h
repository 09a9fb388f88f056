// How a program joins and leaves the ranks that train with it: `cloze` is alone (tools/main.cc),
// `cloze-mpi` uses MPI (tools/mpi).
#ifndef CLOZE_TOOLS_RANKS_H_
#define CLOZE_TOOLS_RANKS_H_

#include "core/base/ranks.h"

namespace cloze {

// The ranks of this program.
Ranks& ProgramRanks();

// Runs the command line. Returns the exit code, and the error of the command, which it does not
// print, in *status.
int RunProgram(int argc, char** argv, absl::Status* status);

}  // namespace cloze

#endif  // CLOZE_TOOLS_RANKS_H_
