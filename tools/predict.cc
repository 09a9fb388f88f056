// `cloze predict`: labels, numbers or answers to questions, as JSON lines or new columns of a
// table.
#include "tools/infer.h"

namespace cloze {
namespace {

absl::Status Predict(InferOptions options) {
  RETURN_IF_ERROR(SetHtml(&options));
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options));
  ASSIGN_OR_RETURN(const auto predictor, NewPredictor(*session, options, "predict"));
  InputOptions& input = options.input;
  input.pairs |= predictor->task().reads_pairs();
  ASSIGN_OR_RETURN(const std::string format, InputFormat(input));
  const bool table = format == "csv" || format == "tsv";
  if (table && input.pairs && input.text_pair_field.empty() && input.data.text_pair_field().empty())
    return UsageError(
        "--text-pair-field: expected the column of the second text: this model takes pairs "
        "(--input-format text reads lines of two texts with a tab between)");
  return AnswerInput(*predictor, options);
}

}  // namespace

void AddPredict(Command& app) {
  app.AddCommand<InferOptions>(
      "predict",
      "Predict labels, a number or the answer to a question for each text or pair of texts. Prints "
      "JSON lines: label, score and scores for one label; labels and scores for several; for a "
      "number, score is the number and label its name (LABEL_0 unless the spec names it); answer "
      "and score for a question (the first text) about the second. Tables are read by the columns "
      "that the run was trained on.",
      "  cloze predict --model runs/sst2 texts.txt\n"
      "  cloze predict --model runs/sst2 --format csv new.csv > predictions.csv\n"
      "  cloze predict --model runs/sst2 --explain new.csv --out why.html\n"
      "  echo '{\"id\": 7, \"text\": \"A fine film.\"}' | cloze predict --model runs/sst2 "
      "--input-format jsonl",
      [](Command& command, InferOptions& options) {
        AddInferOptions(command, &options);
        AddOutputOptions(command, &options, {"csv", "tsv", "jsonl", "html"});
        AddOnError(command, &options);
        AddExplain(command, &options);
      },
      Predict);
}

}  // namespace cloze
