#include "tools/predictions.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "tasks/data/readers.h"
#include "tasks/squad.h"

namespace cloze {
namespace {

absl::Status Changed() {
  return Error(Exit::kData, "--predictions: the data changed while they were evaluated");
}

// Members of an answer that get "predicted_" before their name.
bool IsPredicted(const std::string& name, bool number) {
  return name == "label" || name == "labels" || name == "tags" || (number && name == "score");
}

// Returns `labels` in the order of the model's, as predicted ones are; then those it does not have.
std::vector<std::string> InOrder(
    std::vector<std::string> labels, const std::vector<std::string>& order) {
  absl::c_stable_sort(labels, [&](const std::string& a, const std::string& b) {
    return absl::c_find(order, a) < absl::c_find(order, b);
  });
  return labels;
}

}  // namespace

absl::StatusOr<PredictionRows> PredictionRows::Open(
    const TaskSpec& spec, const ModelConfig& config, const Decoder& decoder, AnswerWriter* writer) {
  const DataSpec& data = spec.validation();
  RETURN_IF_ERROR(RequireFiles(data, "--predictions reads the data again"));
  Reader next;
  if (config.head == HeadKind::kSequenceClassification) {
    const bool several = config.problem_type == "multi_label_classification";
    const std::string separator = spec.sequence_classification().label_separator();
    ASSIGN_OR_RETURN(TextReader opened,
        TextReader::Open(data, several ? Labels::kSeveral : Labels::kRequired, true));
    const auto reader = std::make_shared<TextReader>(std::move(opened));
    next = [=](Record* record, std::vector<std::string>* columns) -> absl::StatusOr<OrderedJson> {
      TextExample row;
      ASSIGN_OR_RETURN(const bool more, reader->Next(&row));
      if (!more) return Changed();
      *columns = reader->columns();
      record->text = row.text;
      record->cells = row.cells;
      if (several)
        return OrderedJson{{"true_labels", InOrder(LabelsOf(row, separator), config.labels)}};
      double number = 0;
      if (config.labels.size() == 1 && absl::SimpleAtod(row.label, &number))
        return OrderedJson{{"true_score", number}};
      return OrderedJson{{"true_label", row.label}};
    };
  } else if (config.head == HeadKind::kTokenTagging) {
    ASSIGN_OR_RETURN(TaggedReader opened, TaggedReader::Open(data, Labels::kRequired));
    const auto reader = std::make_shared<TaggedReader>(std::move(opened));
    next = [=](Record* record, std::vector<std::string>*) -> absl::StatusOr<OrderedJson> {
      TaggedSentence sentence;
      ASSIGN_OR_RETURN(const bool more, reader->Next(&sentence));
      if (!more) return Changed();
      record->kind = Record::Kind::kWords;
      record->words = sentence.words;
      return OrderedJson{{"words", sentence.words}, {"true_tags", sentence.tags}};
    };
  } else if (config.head == HeadKind::kQuestionAnswering) {
    ASSIGN_OR_RETURN(std::vector<Question> questions, ReadQuestions(data));
    next = [questions = std::move(questions), i = size_t{0}](
               Record* record, std::vector<std::string>*) mutable -> absl::StatusOr<OrderedJson> {
      if (i == questions.size()) return Changed();
      const Question& question = questions[i++];
      record->kind = Record::Kind::kPair;
      record->text = question.question;
      record->text_pair = question.context;
      OrderedJson answers = OrderedJson::array();
      for (const Question::Answer& answer : question.answers) answers.push_back(answer.text);
      return OrderedJson{{"true_answers", std::move(answers)}};
    };
  } else {
    return Error(Exit::kUsage,
        "--predictions: a language model or encoder-decoder has none: expected a model that "
        "answers for each text (`cloze generate` writes targets)");
  }
  return PredictionRows(std::move(next), &decoder, writer);
}

void PredictionRows::Add(const TextLogits& text) {
  if (status_.ok()) status_ = Write(text);
}

absl::Status PredictionRows::Write(const TextLogits& text) {
  Record record;
  std::vector<std::string> columns;
  ASSIGN_OR_RETURN(OrderedJson row, next_(&record, &columns));
  const bool number = row.contains("true_score");
  const OrderedJson answer = (*decoder_)(record, text);
  for (const auto& [name, value] : answer.items()) {
    if (name == "tokens" || (number && name == "label")) continue;
    row[IsPredicted(name, number) ? "predicted_" + name : name] = value;
  }
  return writer_->Write(record, columns, row);
}

}  // namespace cloze
