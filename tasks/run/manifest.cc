#include "tasks/run/manifest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/hash.h"

namespace cloze {
namespace {

constexpr char kFirstLine[] = "cloze checkpoint 1";
constexpr int64_t kMaxManifest = 1 << 20, kBlock = 1 << 20;
constexpr size_t kMaxFiles = 1000;

struct Input {
  Fd fd;
  int64_t length = 0;
};

absl::StatusOr<Input> OpenFile(const std::string& path) {
  Input input;
  ASSIGN_OR_RETURN(input.fd, OpenForRead(path));
  struct stat info;
  if (::fstat(input.fd.get(), &info) != 0) return Errno(Exit::kIo, "cannot stat", path);
  input.length = info.st_size;
  return input;
}

absl::StatusOr<std::string> HashFile(const Input& input, const std::string& path) {
  Hasher hasher;
  std::vector<char> block(std::min(input.length, kBlock));
  for (int64_t at = 0; at < input.length; at += kBlock) {
    const int64_t n = std::min(kBlock, input.length - at);
    RETURN_IF_ERROR(ReadAt(input.fd, path, at, block.data(), n));
    hasher.Add(block.data(), n);
  }
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
         std::all_of(name.begin(), name.end(),
             [](unsigned char c) { return c > 0x20 && c < 0x7F && c != '/'; });
}

}  // namespace

absl::StatusOr<Manifest> MakeManifest(const std::string& folder, int64_t step) {
  Manifest manifest;
  manifest.step = step;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    if (!IsPlainName(name))
      return Error(
          Exit::kInternal, QuotePath(path), ": not a valid name for a file of a checkpoint");
    ASSIGN_OR_RETURN(const Input input, OpenFile(path));
    ASSIGN_OR_RETURN(std::string hash, HashFile(input, path));
    if (::fsync(input.fd.get()) != 0) return Errno(Exit::kIo, "cannot fsync", path);
    manifest.files.push_back({name, input.length, std::move(hash)});
  }
  return manifest;
}

std::string FormatManifest(const Manifest& manifest) {
  std::string text = absl::StrCat(kFirstLine, "\nstep ", manifest.step, "\n");
  for (const ManifestEntry& file : manifest.files)
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
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  if (lines.size() < 4 || lines.size() > kMaxFiles) return bad("damaged");
  if (lines[0] != kFirstLine) {
    const bool newer = lines[0].rfind("cloze checkpoint ", 0) == 0;
    return bad(
        newer ? absl::StrCat(Quote(lines[0]), " of another version: expected \"", kFirstLine, "\"")
              : "damaged");
  }
  Manifest manifest;
  if (lines[1].rfind("step ", 0) != 0 || !absl::SimpleAtoi(lines[1].substr(5), &manifest.step))
    return bad("damaged in line 2");
  for (size_t i = 2; i + 2 < lines.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(lines[i], ' ');
    ManifestEntry file;
    const bool sound = parts.size() == 3 && parts[0].size() == 32 &&
                       absl::SimpleAtoi(parts[1], &file.length) && file.length >= 0 &&
                       IsPlainName(parts[2]);
    if (!sound) return bad(absl::StrCat("damaged in line ", i + 1));
    file.hash = parts[0];
    file.name = parts[2];
    manifest.files.push_back(std::move(file));
  }
  if (FormatManifest(manifest) != *text) return bad("damaged: its checksum differs");
  return manifest;
}

absl::Status CheckFiles(const std::string& folder, const Manifest& manifest, bool hashes) {
  for (const ManifestEntry& file : manifest.files) {
    const std::string path = JoinPath(folder, file.name);
    const auto input = OpenFile(path);
    if (!input.ok()) return Unreadable(input.status(), path);
    if (input->length != file.length) {
      return Error(Exit::kMismatch, QuotePath(path), ": ", input->length, " bytes, ", file.length,
          " were written");
    }
    if (!hashes) continue;
    ASSIGN_OR_RETURN(const std::string hash, HashFile(*input, path));
    if (hash != file.hash)
      return Error(
          Exit::kMismatch, QuotePath(path), ": damaged: its hash differs from what was written");
  }
  return absl::OkStatus();
}

}  // namespace cloze
