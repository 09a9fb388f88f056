// A temporary folder that its object deletes.
#ifndef CLOZE_TOOLS_TEMPORARY_FOLDER_H_
#define CLOZE_TOOLS_TEMPORARY_FOLDER_H_

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "core/base/file.h"

namespace cloze {

class TemporaryFolder {
 public:
  // Creates the folder in $TMPDIR or the system's folder. kCannotCreate on failure.
  static absl::StatusOr<TemporaryFolder> Create() {
    const char* base = std::getenv("TMPDIR");
    TemporaryFolder folder;
    folder.path_ = JoinPath(base != nullptr && *base != '\0' ? base : P_tmpdir, "cloze-XXXXXX");
    if (::mkdtemp(folder.path_.data()) == nullptr)
      return Error(
          Exit::kCannotCreate, QuotePath(folder.path_), ": cannot create a temporary folder");
    return folder;
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept { std::swap(path_, other.path_); }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::string path_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_TEMPORARY_FOLDER_H_
