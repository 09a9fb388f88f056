#include "core/manifest/manifest.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/hash.h"

namespace cloze {
namespace {

constexpr char kFirstLine[] = "cloze checkpoint 1";
constexpr char kReplaced[] = "cloze checkpoint 1\nreplaced\n";
// Files of a run that no model is loaded from.
constexpr absl::string_view kNotLoaded[] = {
    "metrics.json", "optimizer.safetensors", "samples.safetensors", "trainer.textproto"};
constexpr int64_t kMaxManifest = 1 << 20;
constexpr size_t kMaxFiles = 1000;

absl::StatusOr<int64_t> LengthOf(const Fd& fd, const std::string& path) {
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Errno(Exit::kIo, "cannot stat", path);
  return info.st_size;
}

absl::StatusOr<std::string> HashFile(const Fd& fd, const std::string& path, int64_t length) {
  Hasher hasher;
  RETURN_IF_ERROR(ForBlocks(fd, path, length, [&](const char* data, int64_t size) {
    hasher.Add(data, size);
    return absl::OkStatus();
  }));
  return hasher.Hex();
}

// Returns `error`, met when opening or reading `path`: kMismatch if the file is missing or of
// another kind, else kIo (no permission, too many open files).
absl::Status Unreadable(const absl::Status& error, const std::string& path) {
  struct stat info;
  const bool there = ::lstat(path.c_str(), &info) == 0 ? S_ISREG(info.st_mode) : errno != ENOENT;
  const bool system = ExitOf(error) == Exit::kIo || (there && ExitOf(error) == Exit::kNoInput);
  return Error(system ? Exit::kIo : Exit::kMismatch, error.message());
}

bool IsPlainName(absl::string_view name) {
  return !name.empty() && name[0] != '.' && name != kManifestName &&
         absl::c_all_of(name, [](char c) { return absl::ascii_isgraph(c) && c != '/'; });
}

}  // namespace

std::string FormatManifest(const Manifest& manifest) {
  std::string text = absl::StrCat(kFirstLine, "\nstep ", manifest.step, "\n");
  for (const Manifest::File& file : manifest.files)
    absl::StrAppend(&text, file.hash, " ", file.length, " ", file.name, "\n");
  Hasher hasher;
  hasher.Add(text.data(), text.size());
  return absl::StrCat(text, "manifest ", hasher.Hex(), "\n");
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  const std::string path = JoinPath(folder, kManifestName);
  const auto bad = [&](absl::string_view what) {
    return Error(Exit::kMismatch, QuotePath(path), ": ", what);
  };
  const auto text = ReadFile(path, kMaxManifest);
  if (!text.ok()) return Unreadable(text.status(), path);
  if (*text == kReplaced) return bad("its files are being replaced, or that was interrupted");
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  if (lines.size() < 4 || lines.size() > kMaxFiles + 4) return bad("damaged");
  if (lines[0] != kFirstLine) {
    if (!absl::StartsWith(lines[0], "cloze checkpoint ")) return bad("damaged");
    return bad(absl::StrCat(Quote(lines[0]), " of another version: expected \"", kFirstLine, "\""));
  }
  Manifest manifest;
  if (!absl::StartsWith(lines[1], "step ") || !absl::SimpleAtoi(lines[1].substr(5), &manifest.step))
    return bad("damaged in line 2");
  for (size_t i = 2; i + 2 < lines.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(lines[i], ' ');
    int64_t length = -1;
    const bool sound = parts.size() == 3 && parts[0].size() == 32 &&
                       absl::SimpleAtoi(parts[1], &length) && length >= 0 && IsPlainName(parts[2]);
    if (!sound) return bad(absl::StrCat("damaged in line ", i + 1));
    manifest.files.push_back({parts[2], length, parts[0]});
  }
  if (FormatManifest(manifest) != *text) return bad("damaged: its checksum differs");
  return manifest;
}

absl::Status CheckFiles(const std::string& folder, const Manifest& manifest, bool hashes) {
  for (const Manifest::File& file : manifest.files) {
    const std::string path = JoinPath(folder, file.name);
    const auto fd = OpenForRead(path);
    if (!fd.ok()) return Unreadable(fd.status(), path);
    ASSIGN_OR_RETURN(const int64_t length, LengthOf(*fd, path));
    if (length != file.length) {
      return Error(Exit::kMismatch, QuotePath(path), ": ", length, " bytes, but ", file.length,
          " were written");
    }
    if (!hashes || file.hash.empty()) continue;
    ASSIGN_OR_RETURN(const std::string hash, HashFile(*fd, path, length));
    if (hash != file.hash)
      return Error(
          Exit::kMismatch, QuotePath(path), ": damaged: its hash differs from what was written");
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> AddManifest(const std::string& folder, int64_t step) {
  Manifest manifest;
  manifest.step = step;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  if (names.size() > kMaxFiles) {
    return Error(Exit::kLimit, QuotePath(folder), ": ", names.size(), " files: expected at most ",
        kMaxFiles);
  }
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    if (!IsPlainName(name))
      return Error(Exit::kInternal, QuotePath(path),
          ": not a valid name for a file of a model or checkpoint");
    ASSIGN_OR_RETURN(const Fd fd, OpenForRead(path));
    ASSIGN_OR_RETURN(const int64_t length, LengthOf(fd, path));
    ASSIGN_OR_RETURN(const std::string hash, HashFile(fd, path, length));
    if (::fsync(fd.get()) != 0) return Errno(Exit::kIo, "cannot fsync", path);
    manifest.files.push_back({name, length, hash});
  }
  RETURN_IF_ERROR(WriteNewFile(JoinPath(folder, kManifestName), FormatManifest(manifest)));
  return manifest;
}

absl::Status MarkReplaced(const std::string& folder) {
  return WriteFileAtomically(JoinPath(folder, kManifestName), kReplaced);
}

absl::Status CheckBetweenSaves(const std::string& folder, absl::FunctionRef<absl::Status()> check) {
  const auto read = [&] {
    return ReadFile(JoinPath(folder, kManifestName), kMaxManifest).value_or("");
  };
  absl::Status status;
  std::string before = read();
  for (int tries = 50; tries > 0; --tries) {
    status = check();
    const std::string after = read();
    if (status.ok() || (after == before && after != kReplaced)) break;
    before = after;
    ::usleep(20000);
  }
  return status;
}

absl::Status CheckFolder(const std::string& folder) {
  const std::string path = JoinPath(folder, kManifestName);
  absl::Status status = CheckBetweenSaves(folder, [&]() -> absl::Status {
    if (!PathExists(path)) return absl::OkStatus();
    ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(folder));
    std::erase_if(manifest.files,
        [](const Manifest::File& file) { return absl::c_linear_search(kNotLoaded, file.name); });
    for (Manifest::File& file : manifest.files) {
      if (file.length > kMaxHashedWeights && absl::EndsWith(file.name, ".safetensors"))
        file.hash.clear();
    }
    return CheckFiles(folder, manifest, /*hashes=*/true);
  });
  if (ExitOf(status) != Exit::kMismatch) return status;
  const auto now = ReadFile(path, kMaxManifest);
  return Error(Exit::kMismatch, status.message(),
      now.ok() && *now == kReplaced ? "; resume the run, or use its newest checkpoint"
                                    : absl::StrCat("; restore the file, or delete ",
                                          QuotePath(path), " to accept the folder as it is"));
}

}  // namespace cloze
