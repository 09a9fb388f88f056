// `cloze spec`: checks, prints and explains task specs.
#include "proto/spec.h"

#include <memory>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/output.h"

namespace cloze {
namespace {

struct Options {
  std::string file, filter;
  std::vector<std::string> overrides;
};

absl::Status Check(const Options& options) {
  RETURN_IF_ERROR(LoadVerifiedSpec(options.file, options.overrides).status());
  return WriteStdout(absl::StrCat(QuotePath(options.file), ": ok\n"));
}

absl::Status PrintSpec(const Options& options) {
  ASSIGN_OR_RETURN(const LoadedSpec loaded, LoadVerifiedSpec(options.file, options.overrides));
  return WriteStdout(PrintEffective(loaded.spec));
}

absl::Status Explain(const Options& options) {
  ASSIGN_OR_RETURN(const std::string text, ExplainSpec(options.filter));
  return WriteStdout(text);
}

CLI::App* AddOne(CLI::App* spec, const std::shared_ptr<Options>& options, const char* name,
    const char* summary) {
  CLI::App* command = spec->add_subcommand(name, summary);
  command->add_option("file", options->file, "Spec file (protobuf text format).")->required();
  AddSetOption(command, &options->overrides);
  return command;
}

}  // namespace

void AddSpec(CLI::App& app, Run* run) {
  CLI::App* spec = app.add_subcommand(
      "spec", "Validate, print or explain specs, the configuration files of training runs.");
  spec->require_subcommand(1);
  spec->footer(
      "Examples:\n"
      "  cloze spec check tools/specs/sst2.textproto\n"
      "  cloze spec explain optimizer");
  auto options = std::make_shared<Options>();
  AddOne(spec, options, "check",
      "Validate a spec: report the first syntax error, or every invalid field.")
      ->callback([=] { *run = [=] { return Check(*options); }; });
  AddOne(spec, options, "print", "Print a spec with all defaults.")->callback([=] {
    *run = [=] { return PrintSpec(*options); };
  });
  CLI::App* explain = spec->add_subcommand(
      "explain", "Describe the fields of a spec: type, default, range and meaning.");
  explain->add_option("field", options->filter,
      "Fields to describe: a path (optimizer.beta1), a message (OptimizerSpec) or a name (beta1). "
      "Default: all fields.");
  explain->callback([=] { *run = [=] { return Explain(*options); }; });
}

}  // namespace cloze
