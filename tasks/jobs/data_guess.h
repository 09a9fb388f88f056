// Guesses about data files: their parts, format and form, columns, and which of them a task uses.
#ifndef CLOZE_TASKS_JOBS_DATA_GUESS_H_
#define CLOZE_TASKS_JOBS_DATA_GUESS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/json.h"
#include "core/base/status.h"
#include "proto/task.pb.h"
#include "tasks/jobs/new_spec.h"

namespace cloze {

// The content of a column of a table, or of a member of JSON lines.
class Column {
 public:
  explicit Column(std::string name) : name_(std::move(name)) {}

  void Add(const std::string& cell);
  // Adds a JSON value: lists of strings or integers are kept apart; objects, other lists and null
  // count as empty.
  void Add(const OrderedJson& value);

  // The name, or the number from 1 in a table without a header.
  const std::string& name() const { return name_; }
  int64_t empty() const { return empty_; }
  // Counts of the values, in bytes as they are; only the first kMaxValues different ones.
  const std::map<std::string, int64_t>& values() const { return values_; }
  // Words of each cell.
  const std::vector<int64_t>& words() const { return words_; }
  double MeanBytes() const { return filled_ > 0 ? double(bytes_) / filled_ : 0; }

  bool IsNumber() const { return filled_ > 0 && numbers_ == filled_; }
  bool HasDecimalCommas() const { return IsNumber() && commas_ > 0; }
  // True for numbers that are a quantity rather than classes: fractions, or many values.
  bool IsQuantity() const;
  // True for dates and times.
  bool IsDate() const { return filled_ > 0 && numbers_ < filled_ && dates_ == filled_; }
  // True for numbers or words that are different in each row.
  bool IsId() const { return !IsText() && !fractions_ && Distinct() == rows_ && rows_ > 9; }
  bool IsText() const;
  // True for values that repeat, as classes do.
  bool IsCategory() const;
  // True if all values are JSON lists of strings or integers; false without any.
  bool IsList() const { return lists_ > 0 && lists_ == filled_; }
  // Returns the separator of labels in a cell, "," for lists; "" if cells hold one label.
  std::string Separator() const;
  // Returns the counts of the parts of the values between separators.
  std::map<std::string, int64_t> Parts(absl::string_view separator) const;
  // Returns "Queue (8 values)", for comments.
  std::string Describe() const;

 private:
  int64_t Distinct() const { return many_ ? rows_ : std::ssize(values_); }

  std::string name_;
  int64_t rows_ = 0, empty_ = 0, filled_ = 0, numbers_ = 0, commas_ = 0, dates_ = 0, lists_ = 0,
          bytes_ = 0;
  bool fractions_ = false, many_ = false;  // many_: values_ is not complete
  std::vector<int64_t> words_;
  std::map<std::string, int64_t> values_;
};

// True for lists of integers only.
bool HasListsOfIntegers(const Column& column);
// True if all values are lists as Python prints them: ['a', 'b'].
bool HasPrintedLists(const Column& column);
// True for numbers whose `separator`, ',' or '.', may separate thousands wherever it occurs.
bool MayHaveThousands(const Column& column, char separator);

// The task that a model can learn from the data.
enum class GuessedTask { kLanguageModel, kOneLabel, kSeveralLabels, kNumber, kTags, kAnswers };

struct DataGuess {
  // The settings of `train` that differ from the defaults, without columns.
  DataSpec data;
  std::vector<std::string> validation, left_out;  // files by their names
  std::vector<Column> columns;                    // of tables and JSON lines
  int64_t rows = 0;                               // texts or sentences
  std::vector<int64_t> words;                     // of each text or pair
  GuessedTask task = GuessedTask::kLanguageModel;
  const Column *text = nullptr, *pair = nullptr, *label = nullptr;  // in `columns`
  std::string words_field, tags_field;                              // of JSON lines with tags
  std::string separator;                                            // of several labels
  std::map<std::string, int64_t> labels;  // counts, of kOneLabel and kSeveralLabels
  int64_t unlabelled = 0;                 // rows without a label

  // Returns the field of a spec that names the column: its name, or its number without a header; ""
  // for null.
  std::string FieldOf(const Column* column) const;

  DataGuess() = default;
  DataGuess(const DataGuess&) = delete;
  DataGuess& operator=(const DataGuess&) = delete;
};

// Sets files, their form, and the task if it follows from them alone. Errors of GuessSpec.
absl::Status GuessForm(const NewSpecOptions& options, DataGuess* guess);
// Fills *guess. Errors of GuessSpec.
absl::Status GuessData(const NewSpecOptions& options, DataGuess* guess);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_DATA_GUESS_H_
