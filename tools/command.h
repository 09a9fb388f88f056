// The commands of the programs and their options. Hides the parser, CLI11, which compiles slowly.
#ifndef CLOZE_TOOLS_COMMAND_H_
#define CLOZE_TOOLS_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/status.h"

// All commands of `cloze`, in the order of `cloze --help`. To add one, write tools/<name>.cc, which
// defines Add<Name>, and add Name here.
#define CLOZE_COMMANDS(X) \
  X(Spec)                 \
  X(Data)                 \
  X(Vocab)                \
  X(Vectors)              \
  X(Tokenize)             \
  X(Pretrain)             \
  X(Finetune)             \
  X(Evaluate)             \
  X(Predict)              \
  X(Tag)                  \
  X(FillMask)             \
  X(Generate)             \
  X(Score)                \
  X(Encode)               \
  X(Search)               \
  X(Similar)              \
  X(Neighbors)            \
  X(Analogy)              \
  X(Attention)            \
  X(Merge)                \
  X(Export)               \
  X(Quantize)             \
  X(Verify)               \
  X(Report)               \
  X(Bench)                \
  X(Help)                 \
  X(Version)

namespace CLI {
class App;
}

namespace cloze {

// The work of a command. Its status becomes the exit code.
using Run = std::function<absl::Status()>;

struct CommandLine {
  Run run;           // the command, or printing of the help or the version
  int threads = 0;   // 0: the cores that this process may use
  bool all = false;  // declare the options of all commands, not only of the one that was chosen
  std::string command = {};                 // its name
  std::vector<std::string> for_ranks = {};  // names of the commands that several ranks can run
};

class Command;

// The description of a program of this tree. Each program defines kProgram.
struct Program {
  const char *name, *description;
  const char* footer;  // of its help
  bool needs_command;  // else its work without one is line->run, which `declare` sets
  // Adds its commands and options.
  void (*declare)(Command& root, CommandLine* line);
};
extern const Program kProgram;

// Parses the command line of the program. kUsage with the whole message, from "cloze spec: unknown
// ...".
absl::StatusOr<CommandLine> ParseCommandLine(std::vector<std::string> words);
// Returns the program with all commands and their options, for the manual. Parse nothing with it.
std::shared_ptr<CLI::App> DeclareAll();
// The version of the program, such as "0.2.0".
absl::string_view Version();
// The Git commit from which the program was built: 12 digits, with "+" if files differ from it;
// "unknown" without Git.
extern const char kCommit[];

// The values that an option accepts, beyond its type.
struct OptionLimits {
  bool required = false;
  double min = 0, max = 0;                // of a number; unlimited if equal
  std::vector<std::string> choices = {};  // all values; empty: any
  std::string type = {};                  // name of the value in the help; empty: by its type
  int count = 0;                          // of the values of a list; 0: one or more
  bool repeatable = false;                // a list; each value needs the option's name
};

class Command {
 public:
  using Variable =
      std::variant<bool*, int*, int64_t*, double*, std::string*, std::vector<std::string>*>;

  Command(CLI::App* app, CommandLine* line) : app_(app), line_(line) {}

  // Adds an option "--name" (without a value if *variable is a bool) or an argument "name". The
  // help shows *variable as the default unless it is zero or empty.
  void Add(const std::string& name, Variable variable, std::string help,
      const OptionLimits& limits = {});
  // Adds `--name` and `--no-name`, which exclude each other.
  void AddSwitch(const std::string& name, std::optional<bool>* variable, const std::string& help,
      const std::string& help_of_no);

  // Adds a command, which `declare(Command&, Options&)` completes if it is chosen. Then runs
  // `work(Options)`. Files are opened by `work`, so that a missing file is Exit::kNoInput. The
  // first sentence of `help` appears in `cloze --help`. `--help` and `--threads` are in every
  // command. `examples`: lines, each indented by two spaces. `ranks`: several ranks can run it.
  template <typename Options, typename Declare, typename Work>
  void AddCommand(const std::string& name, const std::string& help, const std::string& examples,
      Declare declare, Work work, bool ranks = false) {
    if (ranks) line_->for_ranks.push_back(name);
    AddLazily(name, help, examples, [=](Command& command) -> Run {
      auto options = std::make_shared<Options>();
      declare(command, *options);
      return [=] { return work(*options); };
    });
  }
  // Adds a command with subcommands, which `declare` adds; it then returns no work.
  void AddLazily(const std::string& name, const std::string& help, const std::string& examples,
      const std::function<Run(Command&)>& declare);

 private:
  CLI::App* app_;
  CommandLine* line_;
};

#define CLOZE_DECLARE(Name) void Add##Name(Command& app);
CLOZE_COMMANDS(CLOZE_DECLARE)
#undef CLOZE_DECLARE

// Adds `--set FIELD=VALUE` for commands that read a spec.
void AddSetOption(Command& command, std::vector<std::string>* overrides);

// Returns an error of the command line that the parser cannot detect.
inline absl::Status UsageError(const std::string& message) { return Error(Exit::kUsage, message); }

}  // namespace cloze

#endif  // CLOZE_TOOLS_COMMAND_H_
