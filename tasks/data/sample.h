// Samples of large files.
#ifndef CLOZE_TASKS_DATA_SAMPLE_H_
#define CLOZE_TASKS_DATA_SAMPLE_H_

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

struct DataSample {
  DataSpec data;                // with the sample's files; the spec's own when they are short
  int64_t bytes = 0, read = 0;  // of all files, and of those in the sample
  double scale() const { return read > 0 ? double(bytes) / read : 1; }
};

// Copies the beginnings of the files of `data`, about `most` bytes in total and cut at the ends of
// records, to the existing `folder`. Copies more of a file whose first record is longer.
absl::StatusOr<DataSample> SampleData(
    const DataSpec& data, const std::string& folder, int64_t most);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_SAMPLE_H_
