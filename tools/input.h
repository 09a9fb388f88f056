// Input texts from a file or a pipe. The first line is returned at once, later ones in batches.
#ifndef CLOZE_TOOLS_INPUT_H_
#define CLOZE_TOOLS_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"
#include "tasks/record.h"

namespace cloze {

struct InputOptions {
  std::string path = "-";  // "-": standard input
  // Of the lines; blank ones are skipped.
  //   text: the line is the text; with `pairs`, text TAB second text
  //   jsonl: an object with "text" (or "text_a"), maybe "text_pair" (or "text_b"); else "words" (or
  //     "tokens"), else "ids"; maybe "id", "adapter"
  //   ids: token ids between blanks, or an object with "ids"
  std::string format = "text";
  bool pairs = false;      // text: each line is a pair
  int64_t records = 256;   // most records of a batch
  int32_t vocab_size = 0;  // ids must be smaller; 0: any id that is not negative
};

// Parses an object into *record, except `line`. Its kind is the first that is given of text, words
// and ids. Unknown members are skipped. kData without the place.
absl::Status ParseInputJson(const std::string& json, Record* record);

class InputReader {
 public:
  static constexpr int64_t kMaxLineBytes = 16 << 20;

  static absl::StatusOr<InputReader> Open(const InputOptions& options);

  // Reads into *records the next record, waiting for it if necessary, and as many more, up to
  // options.records, as are available without waiting. None at the end. kData, "file:line: ...",
  // for a malformed line; the records before it are returned first.
  absl::Status Next(std::vector<Record>* records);

 private:
  InputReader(LineReader reader, InputOptions options)
      : reader_(std::move(reader)), options_(std::move(options)) {}
  // Returns false at the end, or without `wait` when none is available yet.
  absl::StatusOr<bool> NextRecord(bool wait, Record* record);

  LineReader reader_;
  InputOptions options_;
  absl::Status late_;  // an error after good records
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_INPUT_H_
