// A file of scalars for TensorBoard.
#ifndef CLOZE_TASKS_CONSOLE_EVENT_FILE_H_
#define CLOZE_TASKS_CONSOLE_EVENT_FILE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/file.h"

namespace cloze {

// In the run directory. TensorBoard finds files with "tfevents" in their name.
inline constexpr char kEventsName[] = "events.out.tfevents.cloze";

// Returns the bytes of a record (TFRecord): length, its checksum, `data`, its checksum. The
// checksums are masked CRC32C.
std::string EventRecord(absl::string_view data);

class EventFile {
 public:
  // Opens or creates the file of a run that continues after `step`. Cuts off records of later steps
  // and an incomplete record at the end. kCannotCreate if `path` is a link or not a regular file.
  static absl::StatusOr<EventFile> Open(const std::string& path, int64_t step);

  // Appends the scalars of a step, as a whole or not at all. kIo on failure.
  absl::Status Add(int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  EventFile(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  absl::Status Append(absl::string_view record);

  Fd file_;
  std::string path_;
  int64_t size_ = 0;  // of the whole records
};

}  // namespace cloze

#endif  // CLOZE_TASKS_CONSOLE_EVENT_FILE_H_
