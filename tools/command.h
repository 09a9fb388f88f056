// The commands of `cloze`.
#ifndef CLOZE_TOOLS_COMMAND_H_
#define CLOZE_TOOLS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"

// All commands, in the order of `cloze --help`. To add one, write tools/<name>.cc, which defines
// Add<Name>, and add Name here.
#define CLOZE_COMMANDS(X) \
  X(Spec)                 \
  X(Vocab)                \
  X(Tokenize)             \
  X(Pretrain)             \
  X(Finetune)             \
  X(Evaluate)             \
  X(Predict)              \
  X(Tag)                  \
  X(FillMask)             \
  X(Encode)               \
  X(Neighbors)            \
  X(Analogy)              \
  X(Attention)            \
  X(Merge)                \
  X(Verify)               \
  X(Bench)

namespace cloze {

// The work of a command. Its status becomes the exit code.
using Run = std::function<absl::Status()>;

// Adds a command with its options to `app`. The callback of the command stores its work in *run,
// which runs after the whole command line has been parsed:
//
//   void AddPredict(CLI::App& app, Run* run) {
//     CLI::App* command = app.add_subcommand("predict", "Label texts with a classifier.");
//     auto options = std::make_shared<Options>();
//     command->add_option("--model", options->model, "Model folder.")->required();
//     command->footer("Examples:\n  cloze predict --model runs/sst2 texts.txt");
//     command->callback([=] { *run = [=] { return Predict(*options); }; });
//   }
//
// The first sentence of the description appears in `cloze --help`. `--help` and `--threads` are
// added to every command. Files are opened in Run, so that a missing file is Exit::kNoInput.
using AddCommand = void (*)(CLI::App& app, Run* run);

#define CLOZE_DECLARE(Name) void Add##Name(CLI::App& app, Run* run);
CLOZE_COMMANDS(CLOZE_DECLARE)
#undef CLOZE_DECLARE

// Adds `--set FIELD=VALUE`, which may be repeated, for commands that read a spec.
inline void AddSetOption(CLI::App* command, std::vector<std::string>* overrides) {
  command
      ->add_option("--set", *overrides,
          "Override a field of the spec: optimizer.learning_rate=1e-4, or a list: "
          "train.files=a.tsv,b.tsv. Repeatable.")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Adds `--name` and `--no-name`, which exclude each other and call `set`.
inline void AddSwitch(CLI::App* command, const std::string& name, const std::string& help,
    const std::string& help_of_no, const std::function<void(bool)>& set) {
  CLI::Option* on = command->add_flag_callback(
      "--" + name, [=] { set(true); }, help);
  command
      ->add_flag_callback(
          "--no-" + name, [=] { set(false); }, help_of_no)
      ->excludes(on);
}

// Returns an error of the command line that CLI11 cannot detect.
inline absl::Status UsageError(const std::string& message) { return Error(Exit::kUsage, message); }

}  // namespace cloze

#endif  // CLOZE_TOOLS_COMMAND_H_
