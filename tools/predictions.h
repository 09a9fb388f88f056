// The rows of an evaluation: each labelled example with its true and its predicted label.
#ifndef CLOZE_TOOLS_PREDICTIONS_H_
#define CLOZE_TOOLS_PREDICTIONS_H_

#include <functional>
#include <string>

#include "proto/task.pb.h"
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
  // `data` as it was evaluated by a task with this head. `decoder` and `writer` must outlive this.
  // kUsage for a task without labelled texts.
  static absl::StatusOr<PredictionRows> Open(const TaskSpec& spec, const ModelConfig& config,
      const Decoder& decoder, AnswerWriter* writer);

  // Writes the row of the next text. After an error the rows that follow are not written.
  void Add(const TextLogits& text);
  // The first error.
  const absl::Status& status() const { return status_; }

 private:
  // Reads the next example: sets its record and the names of its columns, and returns the members
  // of the row with the true label.
  using Reader = std::function<absl::StatusOr<OrderedJson>(Record*, std::vector<std::string>*)>;
  PredictionRows(Reader next, const Decoder* decoder, AnswerWriter* writer)
      : next_(std::move(next)), decoder_(decoder), writer_(writer) {}
  absl::Status Write(const TextLogits& text);

  Reader next_;
  const Decoder* decoder_;
  AnswerWriter* writer_;
  absl::Status status_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_PREDICTIONS_H_
