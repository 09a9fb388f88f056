// Runs the built program as a user does.
#ifndef CLOZE_TESTS_TOOLS_RUN_H_
#define CLOZE_TESTS_TOOLS_RUN_H_

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cloze {

struct RunResult {
  int exit = -1;  // -1 if a signal ended it
  std::string out, err;
};

// Runs `cloze <arguments>` in a shell, so that redirections work. `before` precedes the program:
// "echo hi | ".
RunResult RunCloze(const std::string& arguments, const std::string& before = "");

// Returns the JSON value of each line of `text`.
std::vector<nlohmann::json> JsonLines(const std::string& text);

// A running `cloze` with pipes as its standard input and output.
class Conversation {
 public:
  explicit Conversation(const std::vector<std::string>& arguments);
  ~Conversation();  // kills the program if it still runs
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void Say(const std::string& text);
  // Returns the next line of output without the line end, or "(nothing)" after 30 seconds or at the
  // end of the output.
  std::string Hear();
  // Closes the input and waits for the program. Returns its exit code, or -1 if a signal ended it.
  int End();

 private:
  pid_t pid_ = -1;
  int in_ = -1, out_ = -1;
  std::string heard_;
};

// Returns the bytes of a file; empty if it cannot be read.
std::string Content(const std::string& path);

// Creates a folder that is removed at the end of the program.
std::string TemporaryFolder();

}  // namespace cloze

#endif  // CLOZE_TESTS_TOOLS_RUN_H_
