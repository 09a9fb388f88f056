// The sub-commands of `cloze`, one file each: tools/<name>.cc defines Add<Name>, and main.cc lists
// it.
#ifndef CLOZE_TOOLS_COMMAND_H_
#define CLOZE_TOOLS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace cloze {

// What the chosen sub-command does once the whole command line is known to be right. Its status
// becomes the exit code.
using Run = std::function<absl::Status()>;

// Declares a sub-command of `app`, with its options kept alive by the callback, which puts the work
// into *run:
//
//   void AddPredict(CLI::App& app, Run* run) {
//     CLI::App* command = app.add_subcommand("predict", "Label texts with a classifier.");
//     auto options = std::make_shared<Options>();
//     command->add_option("--model", options->model, "Model folder.")->required();
//     command->callback([=] { *run = [=] { return Predict(*options); }; });
//   }
//
// `--help` and `--threads` are added by main.cc to each; unknown flags are answered there too. A
// sub-command only takes values apart in its Run: a file that is missing is Exit::kNoInput from
// there, not a usage error of CLI11.
using AddCommand = void (*)(CLI::App& app, Run* run);

void AddSpec(CLI::App& app, Run* run);
void AddVocab(CLI::App& app, Run* run);
void AddTokenize(CLI::App& app, Run* run);
void AddPretrain(CLI::App& app, Run* run);
void AddFinetune(CLI::App& app, Run* run);
void AddEvaluate(CLI::App& app, Run* run);
void AddPredict(CLI::App& app, Run* run);
void AddTag(CLI::App& app, Run* run);
void AddFillMask(CLI::App& app, Run* run);
void AddEncode(CLI::App& app, Run* run);
void AddNeighbors(CLI::App& app, Run* run);
void AddAnalogy(CLI::App& app, Run* run);
void AddAttention(CLI::App& app, Run* run);
void AddMerge(CLI::App& app, Run* run);
void AddVerify(CLI::App& app, Run* run);
void AddBench(CLI::App& app, Run* run);

// Declares `--set FIELD=VALUE`, which may come again and again, for commands that read a spec.
inline void AddSetOption(CLI::App* command, std::vector<std::string>* overrides) {
  command
      ->add_option("--set", *overrides,
          "Override a field of the spec, e.g. optimizer.learning_rate=1e-4; a list with commas, "
          "train.files=a.tsv,b.tsv. Repeatable.")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Declares `--name` and `--no-name`, which exclude each other; `set` is called with what was given.
inline void AddSwitch(CLI::App* command, const std::string& name, const std::string& help,
    const std::function<void(bool)>& set) {
  CLI::Option* on = command->add_flag_callback(
      "--" + name, [=] { set(true); }, help);
  command
      ->add_flag_callback(
          "--no-" + name, [=] { set(false); }, "The opposite.")
      ->excludes(on);
}

// A command line that CLI11 cannot judge is wrong: ends with Exit::kUsage.
inline absl::Status UsageError(const std::string& message) { return Error(Exit::kUsage, message); }

}  // namespace cloze

#endif  // CLOZE_TOOLS_COMMAND_H_
