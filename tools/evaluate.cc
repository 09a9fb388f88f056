// `cloze evaluate`: metrics of a model on held-out data, as JSON.
#include <algorithm>
#include <optional>

#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"
#include "proto/spec.h"
#include "tasks/inference/evaluate.h"
#include "tasks/training/setup.h"
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

// The task as the run's own spec.textproto says; without one (a folder from elsewhere), the head's
// with default fields.
absl::StatusOr<LoadedSpec> TaskOf(const std::string& folder, const ModelConfig& config) {
  const std::string path = JoinPath(folder, "spec.textproto");
  LoadedSpec loaded;
  if (PathExists(path)) {
    ASSIGN_OR_RETURN(loaded, LoadVerifiedSpec(path, {}));
    if (HeadOf(loaded.spec) == config.head) return loaded;
    return Error(Exit::kMismatch,
        absl::StrCat(QuotePath(path), ": its task is not that of config.json beside it"));
  }
  loaded.path = folder;
  TaskSpec& spec = loaded.spec;
  const int64_t most = std::min(config.max_positions - config.position_offset, 512);
  switch (config.head) {
    case HeadKind::kMaskedLm:
      spec.mutable_masked_lm()->set_max_tokens(std::min<int64_t>(most, 128));
      break;
    case HeadKind::kSequenceClassification: {
      SequenceClassificationSpec* task = spec.mutable_sequence_classification();
      task->set_max_tokens(config.reading.max_tokens > 0
                               ? std::min<int64_t>(most, config.reading.max_tokens)
                               : most);
      task->set_long_texts(config.reading.long_texts);
      task->set_kind(
          config.problem == Problem::kSingleLabel  ? SequenceClassificationSpec::SINGLE_LABEL
          : config.problem == Problem::kMultiLabel ? SequenceClassificationSpec::MULTI_LABEL
                                                   : SequenceClassificationSpec::REGRESSION);
      break;
    }
    case HeadKind::kTokenTagging: spec.mutable_token_tagging()->set_max_tokens(most); break;
    case HeadKind::kNone:
      return Error(Exit::kMismatch,
          absl::StrCat(QuotePath(folder), " has no head; there is nothing to evaluate"));
  }
  return loaded;
}

absl::StatusOr<LoadedSpec> SpecOf(const Options& options, const ModelConfig& config) {
  ASSIGN_OR_RETURN(LoadedSpec loaded, TaskOf(options.infer.model, config));
  DataSpec data =
      loaded.spec.validation().files_size() > 0 ? loaded.spec.validation() : loaded.spec.train();
  data.clear_max_examples();
  data.clear_files();
  data.clear_format();  // by the extension of the new files
  for (const std::string& file : options.data) data.add_files(file);
  *loaded.spec.mutable_validation() = data;
  for (const std::string& assignment : options.overrides)
    RETURN_IF_ERROR(ApplyOverride(&loaded, absl::StrCat("validation.", assignment)));
  const DataSpec& read = loaded.spec.validation();
  if (!std::equal(
          read.files().begin(), read.files().end(), options.data.begin(), options.data.end()))
    return Error(Exit::kUsage, "--set files: --data names the files");
  RETURN_IF_ERROR(VerifyRanges(loaded));
  return loaded;
}

absl::Status EvaluateModel(Options options) {
  ASSIGN_OR_RETURN(const BaseAndAdapter both, OneModel(options.infer));
  if (!both.adapter.empty()) options.infer.model = both.adapter;
  ASSIGN_OR_RETURN(const auto model, LoadModel(both.base, both.adapter));
  const ModelConfig& config = model->config();
  ASSIGN_OR_RETURN(const LoadedSpec loaded, SpecOf(options, config));
  const TaskSpec& spec = loaded.spec;
  auto loading = LoadTokenizer(options.infer.model, spec.model().lowercase());
  if (ExitOf(loading.status()) == Exit::kNoInput)
    loading = LoadTokenizer(both.base, spec.model().lowercase());
  ASSIGN_OR_RETURN(const auto tokenizer, std::move(loading));
  const std::atomic<bool>* stop = StopOnSignals();
  ASSIGN_OR_RETURN(const TemporaryFolder cache, TemporaryFolder::Create());
  ASSIGN_OR_RETURN(
      const BuiltStore built, BuildStore(loaded, spec.validation(), config, *tokenizer,
                                  {.cache_dir = cache.path(), .progress = nullptr, .stop = stop}));
  for (const std::string& line : DescribeStore("data", built))
    std::fprintf(stderr, "%s\n", line.c_str());
  std::optional<Masker> masker;
  if (spec.has_masked_lm()) {
    ASSIGN_OR_RETURN(masker, Masker::Create(spec.masked_lm(), *tokenizer, spec.seed()));
  }
  ASSIGN_OR_RETURN(
      const DType compute, ComputeOf(ComputeNamed(options.infer.compute), Use::kInference));
  ASSIGN_OR_RETURN(
      const MetricResults results, Evaluate(*model, built.store,
                                       {.compute = compute,
                                           .masker = masker.has_value() ? &*masker : nullptr,
                                           .stop = stop,
                                           .viterbi = options.viterbi}));
  return WriteStdout(results.ToJson() + "\n");
}

}  // namespace

void AddEvaluate(CLI::App& app, Run* run) {
  CLI::App* command = app.add_subcommand("evaluate", "Metrics of a model on held-out data.");
  auto options = std::make_shared<Options>();
  AddInferOptions(command, &options->infer, false);
  command->add_option("--data", options->data, "Files; columns and fields as in the run's spec.")
      ->required();
  command
      ->add_option("--set", options->overrides,
          "Override how the files are read: --set text_field=sentence. Fields of DataSpec.")
      ->take_all()
      ->allow_extra_args(false);
  AddSwitch(command, "viterbi",
      "Labels of a span scheme (BIO, IOBES): decode the best sequence that the scheme allows. "
      "Default: as in training.",
      "Use the best label of each word.", [=](bool on) { options->viterbi = on; });
  command->callback([=] { *run = [=] { return EvaluateModel(*options); }; });
}

}  // namespace cloze
