// Guesses about data files: their parts, format and form, columns, and which of them a task uses.
#ifndef CLOZE_TASKS_JOBS_DATA_GUESS_H_
#define CLOZE_TASKS_JOBS_DATA_GUESS_H_

#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "proto/task.pb.h"
#include "tasks/jobs/column.h"
#include "tasks/jobs/new_spec.h"

namespace cloze {

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

  DataGuess() = default;
  DataGuess(const DataGuess&) = delete;
  DataGuess& operator=(const DataGuess&) = delete;
};

// Fills *guess. Errors of GuessSpec.
absl::Status GuessData(const NewSpecOptions& options, DataGuess* guess);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_DATA_GUESS_H_
