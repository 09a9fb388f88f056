// Finds the objects of JSON lines and of JSON arrays.
#ifndef CLOZE_TASKS_DATA_JSON_OBJECTS_H_
#define CLOZE_TASKS_DATA_JSON_OBJECTS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "core/base/file.h"

namespace cloze {

// Reads a file that holds an object per line, or one array of objects.
class JsonObjects {
 public:
  // Reads a line into its argument; false at the end of the file.
  using NextLine = absl::FunctionRef<absl::StatusOr<bool>(std::string*)>;

  // Reads the text of the next object; in a file without an array, the next line that is not blank.
  // Returns false at the end. `lines` must be what next_line reads. kData if the array is not
  // closed or has other elements; ParseJsonLine finds what is wrong inside objects.
  absl::StatusOr<bool> Next(const LineReader& lines, NextLine next_line, std::string* text);
  // True if the file is an array, whose next line may hold the rest of an object.
  bool in_array() const { return in_array_; }
  // Number of the line where the last object began, from 1.
  int64_t line() const { return line_; }

 private:
  absl::StatusOr<bool> NextElement(const LineReader& lines, NextLine next_line, std::string* text);

  int64_t line_ = 0;
  bool had_text_ = false, in_array_ = false;
  // In an array: the line being read, the position in it, and the characters allowed next.
  std::string rest_;
  size_t at_ = 0;
  const char* next_ = "{]";
};

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_JSON_OBJECTS_H_
