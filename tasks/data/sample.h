// The beginnings of large files, to tell from how the rest will be.
#ifndef CLOZE_TASKS_DATA_SAMPLE_H_
#define CLOZE_TASKS_DATA_SAMPLE_H_

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

struct DataSample {
  DataSpec data;                // of the sample's files; the spec's own when they are short
  int64_t bytes = 0, read = 0;  // of all files, and of those in the sample
  double scale() const { return read > 0 ? double(bytes) / read : 1; }
};

// Copies the beginnings of the files of `data`, of about `most` bytes together and cut at ends of
// records, to `folder`, which has to be there. Files whose first record is longer come whole.
// Errors as of reading and writing files.
absl::StatusOr<DataSample> SampleData(
    const DataSpec& data, const std::string& folder, int64_t most);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_SAMPLE_H_
