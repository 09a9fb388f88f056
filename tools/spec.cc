// `cloze spec`: checks, prints and explains task specs.
#include "proto/spec.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tasks/training/run_inputs.h"
#include "tools/command.h"
#include "tools/process.h"

namespace cloze {
namespace {

struct SpecOptions {
  std::string file;
  std::vector<std::string> overrides;
  bool spec_only = false;
};

absl::Status Check(const SpecOptions& options) {
  ASSIGN_OR_RETURN(const LoadedSpec loaded, LoadVerifiedSpec(options.file, options.overrides));
  if (!options.spec_only) {
    const std::vector<absl::Status> wrong = CheckInputs(loaded);
    const auto message = [](std::string* out, const absl::Status& status) {
      absl::StrAppend(out, std::string(status.message()));
    };
    if (!wrong.empty()) return Error(ExitOf(wrong[0]), absl::StrJoin(wrong, "\n", message));
  }
  return WriteStdout(absl::StrCat(QuotePath(options.file), ": ok\n"));
}

absl::Status PrintSpec(const SpecOptions& options) {
  ASSIGN_OR_RETURN(const LoadedSpec loaded, LoadVerifiedSpec(options.file, options.overrides));
  return WriteStdout(PrintEffective(loaded.spec));
}

absl::Status Explain(const std::string& filter) {
  ASSIGN_OR_RETURN(const std::string text, ExplainSpec(filter));
  return WriteStdout(text);
}

void DeclareFile(Command& command, SpecOptions& options) {
  command.Add("file", &options.file, "Spec file (protobuf text format).", {.required = true});
  AddSetOption(command, &options.overrides);
}

void DeclareCheck(Command& command, SpecOptions& options) {
  DeclareFile(command, options);
  command.Add("--spec-only", &options.spec_only,
      "Check the spec alone; do not open the models and files that it names.");
}

}  // namespace

void AddSpec(Command& app) {
  const auto declare = [](Command& spec) -> Run {
    spec.AddCommand<SpecOptions>("check",
        "Validate a spec. Reports the first syntax error; else every invalid field; else every "
        "model, file or column that the spec names and that is missing.",
        "  cloze spec check run.textproto\n"
        "  cloze spec check run.textproto --set optimizer.learning_rate=1e-4",
        DeclareCheck, Check);
    spec.AddCommand<SpecOptions>("print", "Print a spec with all defaults.",
        "  cloze spec print run.textproto\n"
        "  cloze spec print run.textproto --set repeat=5 > five.textproto",
        DeclareFile, PrintSpec);
    spec.AddCommand<std::string>(
        "explain", "Describe the fields of a spec: type, default, range and meaning.",
        "  cloze spec explain optimizer\n"
        "  cloze spec explain learning_rate",
        [](Command& command, std::string& filter) {
          command.Add("field", &filter,
              "Fields to describe: a path (optimizer.beta1), a message (OptimizerSpec) or a name "
              "(beta1). Default: all fields.");
        },
        Explain);
    return nullptr;
  };
  app.AddLazily("spec",
      "Validate, print or explain specs, the configuration files of training runs.",
      "  cloze spec check tools/specs/sst2.textproto\n"
      "  cloze spec explain optimizer",
      declare);
}

}  // namespace cloze
