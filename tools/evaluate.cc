// `cloze evaluate`: metrics of a model on held-out data, as JSON.
#include <algorithm>
#include <optional>

#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "proto/spec.h"
#include "tasks/build.h"
#include "tasks/compute.h"
#include "tasks/inference/evaluate.h"
#include "tools/infer.h"
#include "tools/stop.h"
#include "tools/temporary_folder.h"

namespace cloze {
namespace {

struct Options {
  InferOptions infer;
  std::vector<std::string> data, overrides;
  std::optional<bool> viterbi;
};

// What the model was trained on: the task, and how its data are read.
struct TaskAndSpec {
  std::unique_ptr<Task> task;
  LoadedSpec loaded;
};

// From the run's own spec.textproto; without one (a folder from elsewhere), from the model folder
// with default fields.
absl::StatusOr<TaskAndSpec> TaskOf(const std::string& folder, const ModelConfig& config) {
  const std::string path = JoinPath(folder, "spec.textproto");
  TaskAndSpec found;
  if (PathExists(path)) {
    ASSIGN_OR_RETURN(found.loaded, LoadVerifiedSpec(path, {}));
    found.task = MakeTask(found.loaded.spec);
    if (found.task->head() == config.head) return found;
    return Error(
        Exit::kMismatch, QuotePath(path), ": its task is not that of the config.json beside it");
  }
  constexpr int32_t kLongest = 512;
  found.loaded.path = folder;
  ASSIGN_OR_RETURN(
      found.task, RestoreTask(folder, config, std::min(config.max_tokens(), kLongest)));
  if (found.task != nullptr) return found;
  return Error(Exit::kMismatch, QuotePath(folder), " has no head; there is nothing to evaluate");
}

// Puts the files to evaluate into the spec's validation.
absl::Status SetData(const Options& options, LoadedSpec* loaded) {
  DataSpec data =
      loaded->spec.validation().files_size() > 0 ? loaded->spec.validation() : loaded->spec.train();
  data.clear_max_examples();
  data.clear_files();
  data.clear_format();  // by the extension of the new files
  for (const std::string& file : options.data) data.add_files(file);
  *loaded->spec.mutable_validation() = data;
  for (const std::string& assignment : options.overrides)
    RETURN_IF_ERROR(ApplyOverride(loaded, absl::StrCat("validation.", assignment)));
  const DataSpec& read = loaded->spec.validation();
  if (!std::equal(
          read.files().begin(), read.files().end(), options.data.begin(), options.data.end()))
    return Error(Exit::kUsage, "--set files: --data names the files");
  return VerifyRanges(*loaded);
}

absl::Status EvaluateModel(Options options) {
  ASSIGN_OR_RETURN(const BaseAndAdapter both, OneModel(options.infer));
  if (!both.adapter.empty()) options.infer.model = both.adapter;
  ASSIGN_OR_RETURN(const auto model, LoadModel(both.base, both.adapter));
  const ModelConfig& config = model->config();
  ASSIGN_OR_RETURN(TaskAndSpec both_specs, TaskOf(options.infer.model, config));
  auto& [task, loaded] = both_specs;
  RETURN_IF_ERROR(SetData(options, &loaded));
  const TaskSpec& spec = loaded.spec;
  auto loading = LoadTokenizer(options.infer.model, spec.model().lowercase());
  if (ExitOf(loading.status()) == Exit::kNoInput)
    loading = LoadTokenizer(both.base, spec.model().lowercase());
  ASSIGN_OR_RETURN(const auto tokenizer, std::move(loading));
  RETURN_IF_ERROR(task->Bind(config, tokenizer.get(), spec.seed()));
  const std::atomic<bool>* stop = StopOnSignals();
  ASSIGN_OR_RETURN(const TemporaryFolder cache, TemporaryFolder::Create());
  ASSIGN_OR_RETURN(
      const BuiltStore built, BuildStore(loaded, *task, spec.validation(), config, *tokenizer,
                                  {.cache_dir = cache.path(), .progress = nullptr, .stop = stop}));
  for (const std::string& line : DescribeStore("data", built))
    std::fprintf(stderr, "%s\n", line.c_str());
  ASSIGN_OR_RETURN(
      const DType compute, ComputeOf(ComputeNamed(options.infer.compute), Use::kInference));
  ASSIGN_OR_RETURN(const MetricResults results,
      Evaluate(*model, *task, built.store,
          {.compute = compute, .stop = stop, .decode = {.viterbi = options.viterbi}}));
  return WriteStdout(results.ToJson() + "\n");
}

}  // namespace

void AddEvaluate(CLI::App& app, Run* run) {
  CLI::App* command =
      app.add_subcommand("evaluate", "Compute the metrics of a model on labelled data.");
  auto options = std::make_shared<Options>();
  AddInferOptions(command, &options->infer, false);
  command
      ->add_option(
          "--data", options->data, "Data files, with the columns or fields of the run's spec.")
      ->required();
  command
      ->add_option("--set", options->overrides,
          "Override a field of DataSpec: --set text_field=sentence. Repeatable.")
      ->take_all()
      ->allow_extra_args(false);
  AddViterbi(command, &options->viterbi);
  command->footer(
      "Examples:\n"
      "  cloze evaluate --model runs/sst2 --data data/sst2/test.tsv");
  command->callback([=] { *run = [=] { return EvaluateModel(*options); }; });
}

}  // namespace cloze
