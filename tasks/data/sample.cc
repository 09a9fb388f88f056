#include "tasks/data/sample.h"

#include <algorithm>

#include "core/base/file.h"
#include "tasks/data/readers.h"

namespace cloze {
namespace {

// How much of `text` are whole records: up to a line's end that is in no quotes (CSV), or a blank
// line (CoNLL); 0: none.
size_t WholeRecords(const std::string& text, DataSpec::Format format) {
  if (format == DataSpec::TEXT) return text.size();
  if (format == DataSpec::CONLLU || format == DataSpec::CONLL) {
    const size_t blank = std::max(text.rfind("\n\n") + 2, text.rfind("\n\r\n") + 3);
    return blank <= 2 ? 0 : blank;  // npos + 2 is 1, npos + 3 is 2
  }
  size_t end = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (format == DataSpec::CSV && text[i] == '"') quoted = !quoted;
    if (text[i] == '\n' && !quoted) end = i + 1;
  }
  return end;
}

// The beginning of a file of `size` bytes; longer than `most` only when its first record is.
absl::StatusOr<std::string> Beginning(
    const std::string& path, int64_t size, int64_t most, DataSpec::Format format) {
  ASSIGN_OR_RETURN(const Fd fd, OpenForRead(path));
  for (int64_t n = std::min(size, most);; n = std::min(size, 4 * n)) {
    std::string text(n, '\0');
    RETURN_IF_ERROR(ReadAt(fd, path, 0, text.data(), n));
    if (n == size || n > 2 * kRowBytes) return text;  // no reader takes longer records
    if (const size_t whole = WholeRecords(text, format); whole > 0) return text.substr(0, whole);
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
