// `cloze verify`: checks the files of a run against the hashes and samples stored with them.
#include "tasks/jobs/verify.h"

#include "tools/command.h"
#include "tools/process.h"

namespace cloze {
namespace {

std::string Line(const Verdict& verdict) {
  OrderedJson line = {{"folder", verdict.folder}, {"sound", verdict.status.ok()}};
  if (verdict.manifest) line["step"] = verdict.step;
  if (verdict.status.ok()) {
    line["numbers"] = verdict.numbers;
    line["samples_differ_by"] =
        verdict.difference.has_value() ? OrderedJson(*verdict.difference) : OrderedJson();
    if (!verdict.manifest)
      line["warning"] = "no MANIFEST: the files cannot be compared with what was written";
  } else {
    line["error"] = std::string(verdict.status.message());
  }
  return ToJsonLine(line) + "\n";
}

struct VerifyOptions {
  std::string run, base;
};

absl::Status Verify(const VerifyOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<Verdict> verdicts, VerifyRun(options.run, options.base));
  absl::Status worst;
  int bad = 0;
  for (const Verdict& verdict : verdicts) {
    RETURN_IF_ERROR(WriteStdout(Line(verdict)));
    if (verdict.status.ok()) continue;
    ++bad;
    if (worst.ok() || ExitOf(verdict.status) == Exit::kIo) worst = verdict.status;
  }
  if (bad == 0) return absl::OkStatus();
  return Error(ExitOf(worst) == Exit::kIo ? Exit::kIo : Exit::kMismatch, bad, " of ",
      verdicts.size(), " not sound: ", std::string(worst.message()));
}

}  // namespace

void AddVerify(Command& app) {
  app.AddCommand<VerifyOptions>(
      "verify",
      "Check the model and all checkpoints of a run, and of the runs of a sweep or of `repeat`, "
      "for damage. Compares sizes and hashes of all files, checks that all weights and moments are "
      "finite, and that the stored sample inputs "
      "still give the stored outputs. Prints one JSON line per folder. Exit codes: 0 all sound, 66 "
      "nothing found, 74 unreadable, 76 damaged.",
      "  cloze verify runs/sst2\n"
      "  cloze verify runs/sst2/step-00000700",
      [](Command& command, VerifyOptions& options) {
        command.Add(
            "run", &options.run, "Run directory, checkpoint or model folder.", {.required = true});
        command.Add("--model", &options.base,
            "Base model of an adapter. Default: the one that the adapter names.");
      },
      Verify);
}

}  // namespace cloze
