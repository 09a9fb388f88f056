#include "tasks/data/sample.h"

#include <algorithm>

#include "core/base/file.h"
#include "tasks/data/rows.h"

namespace cloze {
namespace {

// Reads the beginning of a file of `size` bytes; more than `most` only when its first record is
// longer.
absl::StatusOr<std::string> Beginning(
    const std::string& path, int64_t size, int64_t most, DataSpec::Format format) {
  ASSIGN_OR_RETURN(const Fd fd, OpenForRead(path));
  for (int64_t n = std::min(size, most);; n = std::min(size, 4 * n)) {
    std::string text(n, '\0');
    RETURN_IF_ERROR(ReadAt(fd, path, 0, text.data(), n));
    if (n == size || n > 2 * kRowBytes) return text;  // no reader takes longer records
    if (const size_t whole = FormatEntry(format).whole(text); whole > 0)
      return text.substr(0, whole);
  }
}

}  // namespace

absl::StatusOr<DataSample> SampleData(
    const DataSpec& data, const std::string& folder, int64_t most) {
  DataSample sample;
  sample.data = data;
  for (const std::string& path : data.files()) {
    ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
    sample.bytes += size;
  }
  if (sample.bytes <= 2 * most) {
    sample.read = sample.bytes;
    return sample;
  }
  sample.data.clear_files();
  for (int i = 0; i < data.files_size() && sample.read < most; ++i) {
    const std::string& path = data.files(i);
    ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
    ASSIGN_OR_RETURN(const DataSpec::Format format, FormatOf(data, path));
    ASSIGN_OR_RETURN(const std::string text, Beginning(path, size, most - sample.read, format));
    const std::string copy =
        JoinPath(folder, absl::StrCat(i, "-", path.substr(path.rfind('/') + 1)));
    RETURN_IF_ERROR(WriteNewFile(copy, text));
    sample.data.add_files(copy);
    sample.read += text.size();
  }
  return sample;
}

}  // namespace cloze
