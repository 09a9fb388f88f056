#include "tasks/jobs/verify.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/adapter.h"
#include "encoder/folder/model_folder.h"
#include "encoder/folder/sentence_vectors.h"
#include "encoder/model.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/samples.h"
#include "tasks/run/trainer_state.h"

namespace cloze {
namespace {

// Reads every f32 tensor and counts its numbers; kData if one is not finite.
absl::Status CheckNumbers(const std::string& path, int64_t* numbers) {
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::Open(path));
  std::vector<float> values;
  for (const TensorInfo& tensor : reader.tensors()) {
    if (tensor.type != FileType::kF32) continue;
    values.resize(tensor.elements());
    RETURN_IF_ERROR(reader.ReadF32(tensor.name, absl::MakeSpan(values)));
    *numbers += values.size();
  }
  return absl::OkStatus();
}

absl::Status CheckModel(
    const std::string& folder, const std::string& given, std::optional<double>* difference) {
  ASSIGN_OR_RETURN(const std::string base, BaseFolder(folder, given));
  ASSIGN_OR_RETURN(const auto model, LoadModel(base, IsAdapter(folder) ? folder : ""));
  if (!PathExists(JoinPath(folder, kSamplesName))) return absl::OkStatus();
  ASSIGN_OR_RETURN(*difference, CheckSamples(*model, folder));
  return absl::OkStatus();
}

absl::Status Check(const std::string& base, Verdict* verdict) {
  const std::string& folder = verdict->folder;
  verdict->numbers = 0;
  const bool checkpoint = PathExists(JoinPath(folder, kStateName));
  verdict->manifest = checkpoint || PathExists(JoinPath(folder, kManifestName));
  if (verdict->manifest) {
    ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(folder));
    verdict->step = manifest.step;
    RETURN_IF_ERROR(CheckFiles(folder, manifest, /*hashes=*/true));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    const bool weights = absl::StartsWith(name, "model.") && absl::EndsWith(name, ".safetensors");
    if (weights || name == "adapter_model.safetensors" || name == kMomentsName)
      RETURN_IF_ERROR(CheckNumbers(JoinPath(folder, name), &verdict->numbers));
  }
  if (checkpoint) {
    RETURN_IF_ERROR(CheckCheckpointName(folder, verdict->step));
    ASSIGN_OR_RETURN(const TrainerState state, ReadTrainerState(folder));
    if (state.step() != verdict->step)
      return Error(Exit::kMismatch, QuotePath(folder), ": ", kStateName, " is of step ",
          state.step(), ", MANIFEST of step ", verdict->step);
  } else if (verdict->manifest) {
    RETURN_IF_ERROR(CheckSentenceVectors(folder));
  }
  return CheckModel(folder, base, &verdict->difference);
}

}  // namespace

absl::StatusOr<std::vector<Verdict>> VerifyRun(const std::string& given, const std::string& base) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path == "." || absl::EndsWith(path, "..") || absl::EndsWith(path, "/."))
    path = AbsolutePath(path);  // to know the name of a checkpoint
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  std::vector<std::string> folders;
  std::vector<Verdict> of_runs;
  for (const std::string& name : names) {
    if (IsCheckpointName(name)) folders.push_back(JoinPath(path, name));
    // A run of a seed or of a sweep.
    if (!PathExists(JoinPath(JoinPath(path, name), kSpecName))) continue;
    auto verdicts = VerifyRun(JoinPath(path, name), base);
    if (ExitOf(verdicts.status()) == Exit::kNoInput)
      continue;  // stopped before its first checkpoint
    RETURN_IF_ERROR(verdicts.status());
    std::move(verdicts->begin(), verdicts->end(), std::back_inserter(of_runs));
  }
  std::reverse(folders.begin(), folders.end());
  if (PathExists(JoinPath(path, "config.json")) || IsAdapter(path) ||
      PathExists(JoinPath(path, kManifestName)))
    folders.insert(folders.begin(), path);
  if (folders.empty())
    return Error(Exit::kNoInput, QuotePath(path), ": expected a model or a checkpoint");
  std::vector<Verdict> verdicts;
  for (const std::string& folder : folders) {
    Verdict verdict;
    verdict.folder = folder;
    verdict.status = CheckBetweenSaves(folder, [&] { return Check(base, &verdict); });
    if (PathExists(folder)) verdicts.push_back(std::move(verdict));
  }
  std::move(of_runs.begin(), of_runs.end(), std::back_inserter(verdicts));
  return verdicts;
}

}  // namespace cloze
