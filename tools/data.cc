// `cloze data`: checks the data of a spec.
#include <unistd.h>

#include <string>
#include <vector>

#include "core/base/text.h"
#include "proto/spec.h"
#include "tasks/jobs/data_check.h"
#include "tools/command.h"
#include "tools/process.h"

namespace cloze {
namespace {

struct DataOptions {
  std::string spec;
  std::vector<std::string> overrides;
  bool json = false, strict = false;
};

absl::Status CheckDataOf(const DataOptions& options) {
  ASSIGN_OR_RETURN(const LoadedSpec loaded, LoadVerifiedSpec(options.spec, options.overrides));
  const std::atomic<bool>* stop = StopOnSignals();
  ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create());
  ASSIGN_OR_RETURN(const OrderedJson check, CheckData(loaded, scratch.path(), stop));
  const bool json = options.json || !::isatty(1);
  RETURN_IF_ERROR(WriteStdout(json ? ToJsonLine(check) + "\n" : DataTable(check)));
  const size_t warnings = check["warnings"].size();
  if (!options.strict || warnings == 0) return absl::OkStatus();
  return Error(Exit::kData, QuotePath(options.spec), ": ", Counted(warnings, "warning"),
      " about the data: expected none with --strict");
}

}  // namespace

void AddData(Command& app) {
  const auto declare = [](Command& data) -> Run {
    data.AddCommand<DataOptions>(
        "check",
        "Count what the data of a spec contain and what is unusual: labels, lengths in tokens, "
        "truncated, empty and repeated texts, equal texts with different labels, validation texts "
        "that are also in train, unknown tokens, almost equal labels. Prints a table on a "
        "terminal, else JSON. Exit code 0, or 65 if there are warnings and --strict is given.",
        "  cloze data check tools/specs/sst2.textproto\n"
        "  cloze data check tools/specs/sst2.textproto --strict --json",
        [](Command& command, DataOptions& options) {
          command.Add("spec", &options.spec, "Spec file.", {.required = true});
          AddSetOption(command, &options.overrides);
          command.Add("--json", &options.json, "Print JSON on a terminal too.");
          command.Add("--strict", &options.strict, "Exit with 65 if there are warnings.");
        },
        CheckDataOf);
    return nullptr;
  };
  app.AddLazily("data", "Check the data of a spec before training.",
      "  cloze data check tools/specs/sst2.textproto\n"
      "  cloze data check tools/specs/imdb.textproto --json",
      declare);
}

}  // namespace cloze
