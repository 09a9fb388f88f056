// Checkpoints: write aside, fsync, rename, fsync; never touch what we did not write.
#include "tasks/run/checkpoint.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/create.h"
#include "tasks/run/manifest.h"

namespace cloze {
namespace {

using Write = absl::FunctionRef<absl::Status(const std::string& folder)>;

// Differs from call to call and from process to process; whoever creates the name still fails if it
// exists.
std::string UniqueSuffix() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return absl::StrFormat(
      "%d-%08x", ::getpid(), static_cast<uint32_t>(now * 0x9E3779B97F4A7C15 >> 32));
}

std::string BaseOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A directory itself, not a link to one.
bool IsRealDirectory(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// The step of "step-00001234", or -1.
int64_t StepOf(absl::string_view name) {
  int64_t step = -1;
  const bool digits =
      name.substr(0, 5) == "step-" && name.size() >= 13 && absl::SimpleAtoi(name.substr(5), &step);
  return digits && CheckpointName(step) == std::string(name) ? step : -1;
}

// The process that made "step-00001234.tmp-<pid>-<hex>", or "spec.textproto.tmp-<pid>"; else -1.
int64_t OwnerOf(const std::string& name) {
  const size_t dot = name.find(".tmp-");
  if (dot == std::string::npos) return -1;
  const std::vector<std::string> parts = absl::StrSplit(name.substr(dot + 5), '-');
  int32_t pid = -1;
  if (name.substr(0, dot) == kSpecName)
    return parts.size() == 1 && absl::SimpleAtoi(parts[0], &pid) ? pid : -1;
  if (StepOf(name.substr(0, dot)) < 0) return -1;
  const bool ours = parts.size() == 2 && parts[1].size() == 8 &&
                    parts[1].find_first_not_of("0123456789abcdef") == std::string::npos;
  return ours && absl::SimpleAtoi(parts[0], &pid) && pid > 0 ? pid : -1;
}

// Steps that have a folder, newest first.
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

// The manifest, when the folder is the checkpoint of its name.
absl::StatusOr<Manifest> ManifestOf(const std::string& path) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(path));
  RETURN_IF_ERROR(CheckCheckpointName(path, manifest.step));
  return manifest;
}

// Deletes a temporary folder of ours and the plain files in it.
void RemoveTemporary(const std::string& path) {
  if (!IsRealDirectory(path)) return;
  const auto names = ListDirectory(path);
  if (!names.ok()) return;
  for (const std::string& name : *names) ::unlink(JoinPath(path, name).c_str());
  ::rmdir(path.c_str());
}

absl::Status CheckSpace(const std::string& run_dir, int64_t bytes) {
  struct statvfs info;
  if (bytes <= 0 || ::statvfs(run_dir.c_str(), &info) != 0) return absl::OkStatus();
  const double free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize),
               need = 1.1 * static_cast<double>(bytes);
  if (free >= need) return absl::OkStatus();
  return Error(Exit::kIo, absl::StrFormat("%s: %.0f MB free, a checkpoint needs %.0f MB",
                              QuotePath(run_dir), free / 1e6, need / 1e6));
}

// Makes `folder`, lets `write` fill it, adds its MANIFEST and makes all durable. After an error it
// is gone.
absl::StatusOr<Manifest> Fill(const std::string& folder, int64_t step, Write write) {
  if (::mkdir(folder.c_str(), 0777) != 0)
    return Errno(Exit::kIo, "cannot make the directory", folder);
  const auto fill = [&]() -> absl::StatusOr<Manifest> {
    RETURN_IF_ERROR(write(folder));
    ASSIGN_OR_RETURN(Manifest manifest, MakeManifest(folder, step));
    RETURN_IF_ERROR(WriteNewFile(JoinPath(folder, kManifestName), FormatManifest(manifest)));
    RETURN_IF_ERROR(SyncDirectory(folder));
    return manifest;
  };
  absl::StatusOr<Manifest> manifest = fill();
  if (manifest.ok()) return manifest;
  RemoveTemporary(folder);
  return manifest.status();
}

// Is there a file in the folder that we did not write?
bool HoldsForeign(const std::string& path, const Manifest& manifest) {
  const auto names = ListDirectory(path);
  return !names.ok() || names->size() != manifest.files.size() + 1;
}

// Deletes a checkpoint: first it loses its name, then its own files, then itself when nothing
// foreign is in it.
void Remove(const std::string& path, const Manifest& manifest) {
  const std::string doomed =
      HoldsForeign(path, manifest)
          ? absl::StrCat(DirectoryOf(path), "/left-", BaseOf(path), "-", UniqueSuffix())
          : absl::StrCat(path, ".tmp-", UniqueSuffix());
  if (!RenameNew(path, doomed).ok()) return;
  for (const ManifestEntry& file : manifest.files) ::unlink(JoinPath(doomed, file.name).c_str());
  ::unlink(JoinPath(doomed, kManifestName).c_str());
  ::rmdir(doomed.c_str());
}

// Keeps the newest `keep` sound checkpoints and all that are newer than the last of them.
void Rotate(const std::string& run_dir, int64_t newest, int keep) {
  const auto steps = ListSteps(run_dir);
  if (!steps.ok() || !VerifyCheckpoint(PathOf(run_dir, newest)).ok()) return;
  int sound = 0;
  for (const int64_t step : *steps) {
    const std::string path = PathOf(run_dir, step);
    const auto manifest = ManifestOf(path);
    if (!manifest.ok() || !IsRealDirectory(path)) continue;
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
    const std::string& run_dir, int64_t step, Write write, int keep, int64_t expected_bytes) {
  CLOZE_CHECK(step >= 0 && keep >= 1);
  const std::string path = PathOf(run_dir, step);
  if (PathExists(path)) {
    if (VerifyCheckpoint(path).ok()) return SyncDirectory(run_dir);
    RETURN_IF_ERROR(RenameNew(path,
        JoinPath(run_dir, absl::StrCat("broken-", CheckpointName(step), "-", UniqueSuffix()))));
  }
  RETURN_IF_ERROR(CheckSpace(run_dir, expected_bytes));
  const std::string temporary = absl::StrCat(path, ".tmp-", UniqueSuffix());
  RETURN_IF_ERROR(Fill(temporary, step, write).status());
  if (const absl::Status status = RenameNew(temporary, path); !status.ok()) {
    RemoveTemporary(temporary);
    return status;
  }
  RETURN_IF_ERROR(SyncDirectory(run_dir));
  Rotate(run_dir, step, keep);
  return absl::OkStatus();
}

absl::Status SaveModel(
    const std::string& run_dir, int64_t step, Write write, int64_t expected_bytes) {
  RETURN_IF_ERROR(CheckSpace(run_dir, expected_bytes));
  const std::string temporary = absl::StrCat(PathOf(run_dir, step), ".tmp-", UniqueSuffix());
  ASSIGN_OR_RETURN(Manifest manifest, Fill(temporary, step, write));
  const std::string old = JoinPath(run_dir, kManifestName);
  absl::Status status;
  if (::unlink(old.c_str()) != 0 && errno != ENOENT)
    status = Errno(Exit::kIo, "cannot remove", old);
  manifest.files.push_back({kManifestName, 0, ""});  // the last one
  for (const ManifestEntry& file : manifest.files) {
    if (!status.ok()) break;
    if (file.name == kManifestName) status = SyncDirectory(run_dir);
    const std::string path = JoinPath(run_dir, file.name);
    if (status.ok() && ::rename(JoinPath(temporary, file.name).c_str(), path.c_str()) != 0)
      status = Errno(Exit::kIo, "cannot replace", path);
  }
  RemoveTemporary(temporary);
  return status.ok() ? SyncDirectory(run_dir) : status;
}

absl::Status CheckCheckpointName(const std::string& path, int64_t step) {
  if (StepOf(BaseOf(path)) == step) return absl::OkStatus();
  return Error(
      Exit::kMismatch, absl::StrCat(QuotePath(path), ": its MANIFEST is that of step ", step));
}

absl::Status VerifyModel(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(run_dir));
  return CheckFiles(run_dir, manifest, /*hashes=*/true);
}

absl::Status VerifyCheckpoint(const std::string& path) {
  ASSIGN_OR_RETURN(const Manifest manifest, ManifestOf(path));
  return CheckFiles(path, manifest, /*hashes=*/true);
}

absl::StatusOr<std::optional<FoundCheckpoint>> FindCheckpoint(
    const std::string& run_dir, std::vector<std::string>* notes) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps(run_dir));
  std::vector<std::string> lines;
  for (const int64_t step : steps) {
    const std::string path = PathOf(run_dir, step);
    const absl::Status status = VerifyCheckpoint(path);
    if (status.ok()) {
      for (const std::string& line : lines) notes->push_back(absl::StrCat("skipped ", line));
      return FoundCheckpoint{step, path};
    }
    lines.push_back(absl::StrCat(CheckpointName(step), ": ", std::string(status.message())));
  }
  if (lines.empty()) return std::nullopt;
  return Error(
      Exit::kMismatch, absl::StrCat(QuotePath(run_dir),
                           ": no checkpoint is sound; move them away to start from zero\n  ",
                           absl::StrJoin(lines, "\n  ")));
}

void RemoveLeftovers(const std::string& run_dir) {
  const auto names = ListDirectory(run_dir);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const int64_t pid = OwnerOf(name);
    const bool dead =
        pid == ::getpid() || (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH);
    if (!dead) continue;
    RemoveTemporary(JoinPath(run_dir, name));
    if (StepOf(name.substr(0, name.find('.'))) < 0) ::unlink(JoinPath(run_dir, name).c_str());
  }
}

}  // namespace cloze
