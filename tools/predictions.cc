#include "tools/predictions.h"

#include "tasks/data/readers.h"

namespace cloze {
namespace {

// Members of an answer that get "predicted_" before their name.
bool IsPredicted(const std::string& name, bool number) {
  return name == "label" || name == "labels" || name == "tags" || (number && name == "score");
}

}  // namespace

absl::StatusOr<PredictionRows> PredictionRows::Open(
    const Task& task, const DataSpec& data, const Decoder& decoder, AnswerWriter* writer) {
  RETURN_IF_ERROR(RequireFiles(data, "--predictions reads the data again"));
  ASSIGN_OR_RETURN(LabelledReader reader, task.OpenLabelled(data));
  return PredictionRows(std::move(reader), &decoder, writer);
}

void PredictionRows::Add(const TextLogits& text) {
  if (status_.ok()) status_ = Write(text);
}

absl::Status PredictionRows::Write(const TextLogits& text) {
  LabelledRecord next;
  ASSIGN_OR_RETURN(const bool more, reader_(&next));
  if (!more) return Error(Exit::kData, "--predictions: the data changed while they were evaluated");
  OrderedJson& row = next.answer;
  const bool number = row.contains("true_score");
  const OrderedJson answer = (*decoder_)(next.record, text);
  for (const auto& [name, value] : answer.items()) {
    if (name == "tokens" || (number && name == "label")) continue;
    row[IsPredicted(name, number) ? "predicted_" + name : name] = value;
  }
  return writer_->Write(next.record, next.columns, row);
}

}  // namespace cloze
