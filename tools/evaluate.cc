// `cloze evaluate`: metrics of a model on held-out data, as JSON.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "proto/spec.h"
#include "tasks/build.h"
#include "tasks/inference/predictor.h"
#include "tools/infer.h"

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
  found.loaded.path = folder;
  ASSIGN_OR_RETURN(found.task, RestoreTask(folder, config, std::min(config.max_tokens(), 512)));
  if (found.task != nullptr) return found;
  return Error(Exit::kMismatch, QuotePath(folder), " has no head; there is nothing to evaluate");
}

// Puts the files to evaluate into the spec's validation.
absl::Status SetData(const Options& options, LoadedSpec* loaded) {
  DataSpec data =
      loaded->spec.validation().files_size() > 0 ? loaded->spec.validation() : loaded->spec.train();
  data.clear_max_examples();
  data.clear_share();
  data.clear_leave_out();
  data.clear_files();
  data.clear_format();  // by the extension of the new files
  for (const std::string& file : options.data) data.add_files(file);
  *loaded->spec.mutable_validation() = data;
  for (const std::string& assignment : options.overrides)
    RETURN_IF_ERROR(ApplyOverride(loaded, absl::StrCat("validation.", assignment)));
  const DataSpec& read = loaded->spec.validation();
  if (!absl::c_equal(read.files(), options.data))
    return Error(Exit::kUsage, "--set files: --data names the files");
  return VerifyRanges(*loaded);
}

absl::Status EvaluateModel(const Options& options) {
  const InferOptions& infer = options.infer;
  const std::vector<NamedAdapter> named = AdaptersOf(infer);
  // The folder with the task, and the base below it if it is an adapter's.
  std::string folder = infer.model, base = infer.model;
  const bool is_adapter = IsAdapter(folder);
  if (named.size() + is_adapter > 1)
    return UsageError("--adapter: one adapter at a time can be evaluated");
  if (is_adapter) {
    ASSIGN_OR_RETURN(base, BaseOf(folder));
  }
  if (!named.empty()) folder = named[0].folder;
  const bool adapted = is_adapter || !named.empty();
  ASSIGN_OR_RETURN(const auto model, LoadModel(base, adapted ? folder : ""));
  const ModelConfig& config = model->config();
  ASSIGN_OR_RETURN(TaskAndSpec found, TaskOf(folder, config));
  auto& [task, loaded] = found;
  RETURN_IF_ERROR(SetData(options, &loaded));
  const TaskSpec& spec = loaded.spec;
  auto loading = LoadTokenizer(folder, spec.model().lowercase());
  if (ExitOf(loading.status()) == Exit::kNoInput)
    loading = LoadTokenizer(base, spec.model().lowercase());
  ASSIGN_OR_RETURN(const auto tokenizer, std::move(loading));
  RETURN_IF_ERROR(task->Bind(config, tokenizer.get(), spec.seed()));
  const std::atomic<bool>* stop = StopOnSignals();
  ASSIGN_OR_RETURN(const TemporaryFolder cache, TemporaryFolder::Create());
  ASSIGN_OR_RETURN(
      const BuiltStore built, BuildStore(loaded, *task, spec.validation(), config, *tokenizer,
                                  {.cache_dir = cache.path(), .progress = nullptr, .stop = stop}));
  for (const std::string& line : DescribeStore("data", built))
    std::fprintf(stderr, "%s\n", line.c_str());
  ASSIGN_OR_RETURN(const DType compute, ComputeOf(infer));
  ASSIGN_OR_RETURN(const MetricResults results,
      Evaluate(*model, *task, built.store,
          {.compute = compute, .stop = stop, .decode = {.viterbi = options.viterbi}}));
  return WriteStdout(results.ToJson() + "\n");
}

}  // namespace

void AddEvaluate(Command& app) {
  const auto declare = [](Command& command, Options& options) {
    AddInferOptions(command, &options.infer, false);
    command.Add("--data", &options.data,
        "Data files, with the columns or fields of the run's spec.", {.required = true});
    command.Add("--set", &options.overrides,
        "Override a field of DataSpec: --set text_field=sentence. Repeatable.",
        {.repeatable = true});
    AddViterbi(command, &options.viterbi);
  };
  app.AddCommand<Options>("evaluate", "Compute the metrics of a model on labelled data.",
      "  cloze evaluate --model runs/sst2 --data data/sst2/test.tsv\n"
      "  cloze evaluate --model runs/sst2 --data dev.tsv --set max_examples=1000",
      declare, EvaluateModel);
}

}  // namespace cloze
