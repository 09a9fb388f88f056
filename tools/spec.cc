// `cloze spec`: writes, checks, prints and explains task specs.
#include "proto/spec.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "tasks/jobs/new_spec.h"
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

absl::Status PrintNewSpec(NewSpecOptions options) {
  constexpr int64_t kMaxInput = 1 << 30;
  ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create());
  const std::string named = absl::StrJoin(options.files, " ");
  for (std::string& file : options.files) {
    if (!IsStream(file)) continue;
    if (options.files.size() > 1)
      return UsageError("a stream must be the only input: expected files");
    file = JoinPath(scratch.path(), "input");  // a stream can be read only once
    ASSIGN_OR_RETURN(const std::string text, ReadInput("-", kMaxInput));
    RETURN_IF_ERROR(WriteNewFile(file, text));
    options.save_as = "data";
  }
  ASSIGN_OR_RETURN(const NewSpec spec, GuessSpec(options));
  const std::string use =
      spec.pretrains ? absl::StrCat("cloze fill-mask --model ", spec.directory)
                     : absl::StrCat("cloze ", spec.command, " --model ", spec.directory, " NEW");
  return WriteStdout(absl::StrCat("# Written by `cloze spec new ", Quote(named),
      "`: change what it guessed wrong.\n# Save it as run.textproto; then:\n", "#   cloze ",
      spec.pretrains ? "pretrain" : "finetune", " run.textproto\n#   ", use, "\n", spec.text));
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

void DeclareNew(Command& command, NewSpecOptions& options) {
  command.Add("data", &options.files,
      "Files, patterns or folders; - is standard input. Files with dev or valid in their names are "
      "validation data; those with test are left out.",
      {.required = true});
  command.Add("--from", &options.start_from, "Model folder to start from. Default: a new encoder.",
      {.type = "FOLDER"});
  command.Add("--text-field", &options.text_field, "Column of the text. Default: guessed.",
      {.type = "NAME"});
  command.Add("--text-pair-field", &options.pair_field,
      "Column of the second text of a pair. Default: guessed.", {.type = "NAME"});
  command.Add("--label-field", &options.label_field, "Column of the label. Default: guessed.",
      {.type = "NAME"});
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
    spec.AddCommand<NewSpecOptions>("new",
        "Write a spec for data: tables, JSON lines, CoNLL files, texts, a folder per class with a "
        "file per text, or SQuAD's JSON. Finds out how the files are written, which columns hold "
        "the texts and the label, and the task; comments say what it found and what it guessed.",
        "  cloze spec new tickets.csv > tickets.textproto\n"
        "  cloze spec new train.csv dev.csv --from models/minilm > run.textproto\n"
        "  cloze spec new aclImdb/train > imdb.textproto",
        DeclareNew, PrintNewSpec);
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
      "Write, validate, print or explain specs, the configuration files of training runs.",
      "  cloze spec new tickets.csv > tickets.textproto\n"
      "  cloze spec check tickets.textproto\n"
      "  cloze spec explain optimizer",
      declare);
}

}  // namespace cloze
