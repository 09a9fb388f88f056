// The command line of `cloze`: commands, options and help.
#ifndef CLOZE_TOOLS_COMMAND_LINE_H_
#define CLOZE_TOOLS_COMMAND_LINE_H_

#include "tools/command.h"

namespace cloze {

struct CommandLine {
  Run run;          // the command, or printing of the help or the version
  int threads = 0;  // 0: the cores that this process may use
};

// Parses the command line. kUsage with the whole message, from "cloze spec: unknown ...".
absl::StatusOr<CommandLine> ParseCommandLine(int argc, char** argv);

}  // namespace cloze

#endif  // CLOZE_TOOLS_COMMAND_LINE_H_
