#include "tools/evaluation.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "tasks/run/run_folder.h"
#include "tools/infer.h"

namespace cloze {

absl::StatusOr<TaskAndSpec> TaskOf(const std::string& folder, const ModelConfig& config) {
  const std::string path = SpecOfRun(folder);
  TaskAndSpec found;
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
    // What training has fitted.
    JsonFields fields(config.task_fields, JoinPath(folder, "config.json"));
    found.task->Restore(config, fields, found.task->max_tokens());
    RETURN_IF_ERROR(fields.status());
    return found;
  }
  found.loaded.path = folder;
  ASSIGN_OR_RETURN(*found.loaded.spec.mutable_train(), TrainingData(folder, config));
  ASSIGN_OR_RETURN(found.task, RestoreTask(folder, config, config.max_tokens()));
  return found;
}

void AddDataSet(Command& command, std::vector<std::string>* overrides) {
  command.Add("--set", overrides,
      "Override a field of `validation` in the run's spec: text_field=sentence (`cloze spec "
      "explain DataSpec` lists them). Repeatable.",
      {.type = "FIELD=VALUE", .repeatable = true});
}

absl::Status SetData(const std::vector<std::string>& files,
    const std::vector<std::string>& overrides, LoadedSpec* loaded) {
  if (files.empty()) {
    if (loaded->spec.validation().files().empty())
      return Error(Exit::kUsage, "--data: expected files: ", QuotePath(loaded->path),
          " has no validation data");
    for (const std::string& assignment : overrides)
      RETURN_IF_ERROR(ApplyOverride(loaded, assignment, "--set", "validation."));
    return VerifyValues(*loaded);
  }
  DataSpec data = AllExamples(loaded->spec.validation().files_size() > 0 ? loaded->spec.validation()
                                                                         : loaded->spec.train());
  data.clear_files();
  if (data.format() != DataSpec::FOLDERS || !absl::c_all_of(files, IsDirectory))
    data.clear_format();  // by the extension of the new files
  for (const std::string& file : files) data.add_files(file);
  *loaded->spec.mutable_validation() = data;
  std::erase_if(
      loaded->where, [](const auto& entry) { return absl::StartsWith(entry.first, "validation"); });
  loaded->where["validation"] = "--data";
  for (const std::string& assignment : overrides)
    RETURN_IF_ERROR(ApplyOverride(loaded, assignment, "--set", "validation."));
  const DataSpec& read = loaded->spec.validation();
  if (!absl::c_equal(read.files(), files))
    return Error(Exit::kUsage, "--set files: --data names the files");
  return VerifyValues(*loaded);
}

}  // namespace cloze
