// `cloze predict`: answers of a classifier for each text, as JSON lines.
#include "tools/infer.h"

namespace cloze {
namespace {

absl::Status Predict(InferOptions options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options));
  ASSIGN_OR_RETURN(const auto predictor,
      Predictor::Create(*session, {.command = "predict", .source = SourceOf(options.input)}));
  options.input.pairs |= predictor->task().reads_pairs();
  return AnswerInput(*predictor, options.input);
}

}  // namespace

void AddPredict(Command& app) {
  app.AddCommand<InferOptions>(
      "predict",
      "Predict labels or a number for each text or pair of texts. Prints JSON lines: label, score "
      "and scores for one label; labels and scores for several; score for a number.",
      "  cloze predict --model runs/sst2 texts.txt\n"
      "  echo '{\"id\": 7, \"text\": \"A fine film.\"}' | cloze predict --model runs/sst2 "
      "--input-format jsonl",
      [](Command& command, InferOptions& options) { AddInferOptions(command, &options); }, Predict);
}

}  // namespace cloze
