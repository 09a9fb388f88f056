// A record of an input: what a model answers.
#ifndef CLOZE_TASKS_DATA_RECORD_H_
#define CLOZE_TASKS_DATA_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "proto/task.pb.h"

namespace cloze {

// A text, a pair of texts, words, or token ids.
struct Record {
  enum class Kind { kText, kPair, kWords, kIds };
  Kind kind = Kind::kText;
  std::string text, text_pair;
  std::vector<std::string> words;
  std::vector<int32_t> ids;
  int64_t second = -1;  // index of the first of `ids` that is of type 1; -1: none
  std::string adapter;  // name of an adapter; "" when none is named
  std::string id;       // the user's id as JSON text, passed on to the answer; may be ""
  int64_t line = 0;     // line of the input, from 1; 0: not from a file
  // The cells of the table's row, or the JSON line as one cell; empty unless the output repeats
  // them.
  std::vector<std::string> cells;
  // Not OK: the input has a wrong line here, and only `line` and `id` are set.
  absl::Status wrong;
};

// Settings for reading records.
struct RecordOptions {
  bool ids = false;          // in place of texts: token ids between spaces, or objects with "ids"
  bool pairs = false;        // each line of text is two texts with a tab between them
  bool blank_lines = false;  // a blank line of text or ids is an empty record; else it is skipped
  bool keep = false;         // fill Record::cells
  int32_t vocab_size = 0;    // ids must be smaller; 0: any id that is not negative
  // Names of columns or JSON members, as the user gave them; the ones given must be there. Default:
  // those of the DataSpec, if they are there, else the usual ones.
  std::string text_field = {}, text_pair_field = {}, id_field = {};
};

// Parses a line of text or of ids into *record. kData, without the place.
absl::Status ParseTextRecord(
    std::string line, const RecordOptions& options, const DataSpec& data, Record* record);
// Parses a JSON object into *record. The kind of the record is the first of text, words and ids
// that the object has. Skips unknown members. kData, without the place.
absl::Status ParseJsonRecord(
    std::string json, const RecordOptions& options, const DataSpec& data, Record* record);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_RECORD_H_
