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
  command->add_option("file", options->file, "Spec in protobuf text format.")->required();
  AddSetOption(command, &options->overrides);
  return command;
}

}  // namespace

void AddSpec(CLI::App& app, Run* run) {
  CLI::App* spec = app.add_subcommand("spec", "Check, print or explain task specs.");
  spec->require_subcommand(1);
  auto options = std::make_shared<Options>();
  AddOne(spec, options, "check",
      "Say whether a spec is right: the first word that cannot be read, or all that does not fit.")
      ->callback([=] { *run = [=] { return Check(*options); }; });
  AddOne(spec, options, "print", "Print a spec with all defaults filled in.")->callback([=] {
    *run = [=] { return PrintSpec(*options); };
  });
  CLI::App* explain =
      spec->add_subcommand("explain", "Print fields with type, default, range and comment.");
  explain->add_option("field", options->filter,
      "Only this: a path (optimizer.beta1), a message (OptimizerSpec) or a field's name.");
  explain->callback([=] { *run = [=] { return Explain(*options); }; });
}

}  // namespace cloze
