// The rows of an evaluation: each labelled example with its true and its predicted label.
#ifndef CLOZE_TOOLS_PREDICTIONS_H_
#define CLOZE_TOOLS_PREDICTIONS_H_

#include "tasks/task.h"
#include "tools/answers.h"

namespace cloze {

// Reads the evaluated data again, in the order of the evaluation, and writes a row for each text:
// the input's columns, then
//   one label   true_label, predicted_label, score, and the score of each label
//   several     true_labels, predicted_labels, and the score of each label
//   a number    true_score, predicted_score
//   tags        words, true_tags, predicted_tags
//   an answer   true_answers, answer, score and its place
class PredictionRows {
 public:
  // `data` as `task` evaluated it. `task`, `decoder` and `writer` must outlive this. kUsage for a
  // task without labelled texts.
  static absl::StatusOr<PredictionRows> Open(
      const Task& task, const DataSpec& data, const Decoder& decoder, AnswerWriter* writer);

  // Writes the row of the next text. After an error the rows that follow are not written.
  void Add(const TextLogits& text);
  // The first error.
  const absl::Status& status() const { return status_; }

 private:
  PredictionRows(LabelledReader reader, const Decoder* decoder, AnswerWriter* writer)
      : reader_(std::move(reader)), decoder_(decoder), writer_(writer) {}
  absl::Status Write(const TextLogits& text);

  LabelledReader reader_;
  const Decoder* decoder_;
  AnswerWriter* writer_;
  absl::Status status_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_PREDICTIONS_H_
