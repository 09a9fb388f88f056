#include "tools/evaluation.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "tasks/run/run_folder.h"
#include "tasks/training/run_inputs.h"
#include "tools/infer.h"

namespace cloze {

absl::StatusOr<LabelledData> LabelledData::Open(const std::string& folder,
    const ModelConfig& config, const std::vector<std::string>& files,
    const std::vector<std::string>& overrides) {
  const std::string path = SpecOfRun(folder);
  LabelledData found;
  if (MakeTask(config.head) == nullptr)
    return Error(Exit::kMismatch, QuotePath(folder), " has no head that can be evaluated",
        path.empty() ? "" : " (the metrics of its training are in metrics.json)");
  if (!path.empty()) {
    ASSIGN_OR_RETURN(found.loaded, LoadVerifiedSpec(path, {}));
    KeepRules(found.loaded.spec, &found.loaded.spec);
    found.task = MakeTask(found.loaded.spec);
    if (found.task->head() != config.head)
      return Error(
          Exit::kMismatch, QuotePath(path), ": its task is not that of the config.json beside it");
    // The values that training has fitted.
    JsonFields fields(config.task_fields, JoinPath(folder, "config.json"));
    found.task->Restore(config, fields, found.task->max_tokens());
    RETURN_IF_ERROR(fields.status());
  } else {
    found.loaded.path = folder;
    ASSIGN_OR_RETURN(*found.loaded.spec.mutable_train(), TrainingData(folder, config));
    ASSIGN_OR_RETURN(found.task, RestoreTask(folder, config, config.max_tokens()));
  }
  RETURN_IF_ERROR(SetData(files, overrides, &found.loaded));
  return found;
}

absl::Status LabelledData::Build(const ModelConfig& config, const Tokenizer* tokenizer) {
  RETURN_IF_ERROR(task->Bind(config, tokenizer, loaded.spec.seed()));
  ASSIGN_OR_RETURN(cache, ScratchFolder::Create());
  ASSIGN_OR_RETURN(
      built, BuildStore(loaded, *task, loaded.spec.validation(), config, *tokenizer,
                 {.cache_dir = cache->path(), .progress = nullptr, .stop = StopOnSignals()}));
  return absl::OkStatus();
}

void AddDataSet(Command& command, std::vector<std::string>* overrides) {
  command.Add("--set", overrides,
      "Override a field of `validation` in the run's spec: text_field=sentence (`cloze spec "
      "explain DataSpec` lists them). Repeatable.",
      {.type = "FIELD=VALUE", .repeatable = true});
}

absl::Status SetData(const std::vector<std::string>& files,
    const std::vector<std::string>& overrides, LoadedSpec* loaded) {
  const DataSpec& validation = loaded->spec.validation();
  if (files.empty() && validation.files().empty())
    return Error(Exit::kUsage, "--data: expected files: ", QuotePath(loaded->path),
        " has no validation data");
  if (!files.empty()) {
    DataSpec data = AllExamples(validation.files_size() > 0 ? validation : loaded->spec.train());
    data.clear_files();
    if (data.format() != DataSpec::FOLDERS || !absl::c_all_of(files, IsDirectory))
      data.clear_format();  // by the extension of the new files
    for (const std::string& file : files) data.add_files(file);
    *loaded->spec.mutable_validation() = data;
    std::erase_if(loaded->where,
        [](const auto& entry) { return absl::StartsWith(entry.first, "validation"); });
    loaded->where["validation"] = "--data";
  }
  for (const std::string& assignment : overrides)
    RETURN_IF_ERROR(ApplyOverride(loaded, assignment, "--set", "validation."));
  if (!files.empty() && !absl::c_equal(loaded->spec.validation().files(), files))
    return Error(Exit::kUsage, "--set files: --data names the files");
  return VerifyValues(*loaded);
}

}  // namespace cloze
