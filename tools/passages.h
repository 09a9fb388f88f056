// The texts behind the vectors of an index, and what search prints of them.
#ifndef CLOZE_TOOLS_PASSAGES_H_
#define CLOZE_TOOLS_PASSAGES_H_

#include <string>
#include <vector>

#include "tasks/inference/vector_index.h"
#include "tools/infer.h"

namespace cloze {

struct Passages {
  std::vector<std::string> ids;    // as JSON text, "null" for none; empty if there are none
  std::vector<std::string> texts;  // empty if no file of texts is given
};

// Reads all texts of an input.
absl::StatusOr<Passages> ReadPassages(const InputOptions& input);

// Returns the ids of `index` and the texts of `path`, which may be empty; its options are those of
// `input`. kMismatch, in terms of `option`, if the file has not one text for each vector, or
// another id for one.
absl::StatusOr<Passages> PassagesOf(const VectorIndex& index, InputOptions input,
    const std::string& path, const std::string& option);

// Adds to *object what is known of a row: PREFIXrow, PREFIXid, PREFIXtext.
void AddPassage(
    const Passages& passages, int64_t row, const std::string& prefix, OrderedJson* object);

// Writes JSON objects as lines.
class ObjectWriter {
 public:
  // `csv`: as rows after a header, the names of the members of the first object. `writer` must
  // outlive this.
  ObjectWriter(bool csv, LineWriter* writer) : csv_(csv), writer_(*writer) {}
  absl::Status Write(const OrderedJson& object);

 private:
  const bool csv_;
  LineWriter& writer_;
  bool header_ = false;  // true after the header is written
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_PASSAGES_H_
