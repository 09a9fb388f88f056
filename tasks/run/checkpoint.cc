// Saving, finding and checking checkpoints.
#include "tasks/run/checkpoint.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"

namespace cloze {
namespace {

// Returns the step of "step-00001234", or -1.
int64_t StepOf(absl::string_view name) {
  int64_t step = -1;
  const bool digits =
      name.substr(0, 5) == "step-" && name.size() >= 13 && absl::SimpleAtoi(name.substr(5), &step);
  return digits && CheckpointName(step) == std::string(name) ? step : -1;
}

// Returns the steps that have a folder, newest first.
absl::StatusOr<std::vector<int64_t>> ListSteps(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(run_dir));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    if (StepOf(name) >= 0) steps.push_back(StepOf(name));
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

std::string PathOf(const std::string& run_dir, int64_t step) {
  return JoinPath(run_dir, CheckpointName(step));
}

// Reads the manifest; kMismatch if its step is not the one in the name of the folder.
absl::StatusOr<Manifest> ManifestOf(const std::string& path) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(path));
  RETURN_IF_ERROR(CheckCheckpointName(path, manifest.step));
  return manifest;
}

absl::Status CheckSpace(const std::string& run_dir, int64_t bytes) {
  struct statvfs info;
  if (bytes <= 0 || ::statvfs(run_dir.c_str(), &info) != 0) return absl::OkStatus();
  const double free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize),
               need = 1.1 * static_cast<double>(bytes);
  if (free >= need) return absl::OkStatus();
  return Error(Exit::kIo, absl::StrFormat("%s: %.1f MB free: expected %.1f MB", QuotePath(run_dir),
                              std::floor(free / 1e5) / 10, std::ceil(need / 1e5) / 10));
}

// Lets `write` fill a new folder beside `path` and adds its MANIFEST. Every file is on disk then.
absl::StatusOr<AtomicFolder> Fill(
    const std::string& path, int64_t step, WriteFiles write, Manifest* manifest) {
  auto folder = AtomicFolder::Create(path);
  if (!folder.ok()) return Error(Exit::kIo, folder.status().message());
  RETURN_IF_ERROR(write(folder->path()));
  ASSIGN_OR_RETURN(*manifest, AddManifest(folder->path(), step));
  return folder;
}

// Returns an unused name, in the same folder, to rename `path` to: "left-step-00000001-<time>".
std::string AsideName(const std::string& path, const char* prefix) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return JoinPath(DirectoryOf(path), absl::StrFormat("%s-%s-%x", prefix, BaseName(path), now));
}

// Renames a checkpoint, then deletes the files in its manifest, then the folder if it is empty.
void Remove(const std::string& path, const Manifest& manifest) {
  const auto names = ListDirectory(path);
  const bool foreign = !names.ok() || names->size() != manifest.files.size() + 1;
  const std::string doomed = foreign ? AsideName(path, "left") : TemporaryName(path);
  if (!RenameNew(path, doomed).ok()) return;
  for (const Manifest::File& file : manifest.files) ::unlink(JoinPath(doomed, file.name).c_str());
  ::unlink(JoinPath(doomed, kManifestName).c_str());
  ::rmdir(doomed.c_str());
}

// Removes the sound checkpoints that are older than the newest `keep` of them. Checks `newest`
// first. Later ones stay: a run that saves `newest` has found them to be damaged.
void Rotate(const std::string& run_dir, int64_t newest, int keep) {
  const auto steps = ListSteps(run_dir);
  if (!steps.ok() || !VerifyCheckpoint(PathOf(run_dir, newest)).ok()) return;
  int sound = 0;
  for (const int64_t step : *steps) {
    if (step > newest) continue;
    const std::string path = PathOf(run_dir, step);
    const auto manifest = ManifestOf(path);
    struct stat info;
    const bool link = ::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode);
    if (!manifest.ok() || link) continue;
    if (sound >= keep) {
      Remove(path, *manifest);
    } else if (CheckFiles(path, *manifest, /*hashes=*/false).ok()) {
      ++sound;
    }
  }
}

}  // namespace

std::string CheckpointName(int64_t step) { return absl::StrFormat("step-%08d", step); }
bool IsCheckpointName(absl::string_view name) { return StepOf(name) >= 0; }

absl::Status SaveCheckpoint(
    const std::string& run_dir, int64_t step, WriteFiles write, int keep, int64_t expected_bytes) {
  CLOZE_CHECK(step >= 0 && keep >= 1);
  const std::string path = PathOf(run_dir, step);
  if (PathExists(path)) {
    if (VerifyCheckpoint(path).ok()) return SyncDirectory(run_dir);
    RETURN_IF_ERROR(RenameNew(path, AsideName(path, "broken")));
  }
  RETURN_IF_ERROR(CheckSpace(run_dir, expected_bytes));
  Manifest manifest;
  ASSIGN_OR_RETURN(AtomicFolder folder, Fill(path, step, write, &manifest));
  RETURN_IF_ERROR(folder.Commit());
  Rotate(run_dir, step, keep);
  return absl::OkStatus();
}

absl::Status SaveModel(
    const std::string& run_dir, int64_t step, WriteFiles write, int64_t expected_bytes) {
  RETURN_IF_ERROR(CheckSpace(run_dir, expected_bytes));
  Manifest manifest;
  ASSIGN_OR_RETURN(const AtomicFolder folder, Fill(PathOf(run_dir, step), step, write, &manifest));
  RETURN_IF_ERROR(SyncDirectory(folder.path()));
  const absl::StatusOr<Manifest> old = ReadManifest(run_dir);
  if (const absl::Status marked = MarkReplaced(run_dir); !marked.ok())
    return Error(Exit::kIo, marked.message());
  const auto move = [&](const std::string& name) {
    const std::string path = JoinPath(run_dir, name);
    return ::rename(JoinPath(folder.path(), name).c_str(), path.c_str()) == 0
               ? absl::OkStatus()
               : Errno(Exit::kIo, "cannot replace", path);
  };
  for (const Manifest::File& file : manifest.files) RETURN_IF_ERROR(move(file.name));
  // An adapter that the old model had would be taken for a part of the new one.
  for (const Manifest::File& file : old.ok() ? old->files : std::vector<Manifest::File>()) {
    const auto same = [&](const Manifest::File& f) { return f.name == file.name; };
    if (absl::c_none_of(manifest.files, same)) ::unlink(JoinPath(run_dir, file.name).c_str());
  }
  RETURN_IF_ERROR(SyncDirectory(run_dir));  // the manifest may only be there with all its files
  RETURN_IF_ERROR(move(kManifestName));
  return SyncDirectory(run_dir);
}

absl::Status CheckCheckpointName(const std::string& path, int64_t step) {
  if (StepOf(BaseName(path)) == step) return absl::OkStatus();
  return Error(Exit::kMismatch, QuotePath(path), ": its MANIFEST is of step ", step);
}

absl::Status VerifyModel(const std::string& run_dir, int64_t step) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(run_dir));
  if (manifest.step != step)
    return Error(Exit::kMismatch, QuotePath(run_dir), ": its model is of step ", manifest.step,
        ": expected step ", step);
  return CheckFiles(run_dir, manifest, /*hashes=*/true);
}

absl::Status VerifyCheckpoint(const std::string& path) {
  ASSIGN_OR_RETURN(const Manifest manifest, ManifestOf(path));
  return CheckFiles(path, manifest, /*hashes=*/true);
}

absl::StatusOr<std::string> FindCheckpoint(
    const std::string& run_dir, std::vector<std::string>* notes) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps(run_dir));
  std::vector<std::string> lines;
  Exit exit = Exit::kMismatch;
  for (const int64_t step : steps) {
    const std::string path = PathOf(run_dir, step);
    const absl::Status status = VerifyCheckpoint(path);
    if (status.ok()) {
      for (const std::string& line : lines) notes->push_back(absl::StrCat("skipped ", line));
      return path;
    }
    if (ExitOf(status) == Exit::kIo) exit = Exit::kIo;
    lines.push_back(absl::StrCat(CheckpointName(step), ": ", status.message()));
  }
  if (lines.empty()) return "";
  return Error(exit, QuotePath(run_dir),
      ": no checkpoint is sound (move them away to start from zero)\n  ",
      absl::StrJoin(lines, "\n  "));
}

void RemoveLeftovers(const std::string& run_dir) {
  RemoveLeftovers(run_dir, [](absl::string_view name) {
    return name == kSpecName || name == kManifestName || name == "vocab" || StepOf(name) >= 0;
  });
}

}  // namespace cloze
