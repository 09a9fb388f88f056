// Runs the built program the way a user does.
#ifndef CLOZE_TESTS_TOOLS_RUN_H_
#define CLOZE_TESTS_TOOLS_RUN_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace cloze {

struct RunResult {
  int exit = -1;  // -1 when a signal ended it
  std::string out, err;
};

// Runs `cloze <arguments>`; the arguments are shell text, so that redirections work. `before`
// stands in front of the program: "echo hi | ".
RunResult RunCloze(const std::string& arguments, const std::string& before = "");

// A `cloze` that runs, with pipes as its standard input and output.
class Conversation {
 public:
  explicit Conversation(const std::vector<std::string>& arguments);
  ~Conversation();  // kills it if it still runs
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void Say(const std::string& text);
  // The next line that it writes, without the line end; "(nothing)" when it has not come after half
  // a minute, or its output has ended.
  std::string Hear();
  // Ends its input and waits for it; its exit code, or -1 when a signal ended it.
  int End();

 private:
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  std::string heard_;
};

// A new folder that is removed at the end of the program.
std::string TemporaryFolder();

}  // namespace cloze

#endif  // CLOZE_TESTS_TOOLS_RUN_H_
