#include "tasks/inference/encode_records.h"

#include <utility>

#include "core/base/status.h"

namespace cloze {

EncodedRecords EncodeRecords(const Session& session, absl::Span<const Record> records,
    const std::string& source, bool keep_going,
    absl::FunctionRef<absl::Status(size_t, int)> encode) {
  EncodedRecords encoded;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    const absl::StatusOr<int> adapter = session.AdapterNamed(record.adapter);
    absl::Status status = record.wrong;
    if (status.ok()) {
      status = adapter.ok() ? encode(i, *adapter) : adapter.status();
      if (!status.ok() && record.line > 0) status = Annotate(status, source, ":", record.line);
    }
    if (!status.ok() && !(keep_going && ExitOf(status) == Exit::kData)) {
      encoded.end = std::move(status);
      break;
    }
    encoded.adapters.push_back(status.ok() ? *adapter : kDefaultAdapter);
    encoded.failures.push_back(std::move(status));
  }
  return encoded;
}

}  // namespace cloze
