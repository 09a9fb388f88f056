// Runs the built program the way a user does.
#ifndef CLOZE_TESTS_TOOLS_RUN_H_
#define CLOZE_TESTS_TOOLS_RUN_H_

#include <string>

namespace cloze {

struct RunResult {
  int exit = -1;  // -1 when a signal ended it
  std::string out, err;
};

// Runs `cloze <arguments>`; the arguments are shell text, so that redirections work. `before` stands in front of the program: "echo hi | ".
RunResult RunCloze(const std::string& arguments, const std::string& before = "");

// A new folder that is removed at the end of the program.
std::string TemporaryFolder();

}  // namespace cloze

#endif  // CLOZE_TESTS_TOOLS_RUN_H_
