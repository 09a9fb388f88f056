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

void AddPredict(CLI::App& app, Run* run) {
  CLI::App* command = app.add_subcommand("predict",
      "Predict labels or a number for each text or pair of texts. Prints JSON lines: label, score "
      "and scores for one label; labels and scores for several; score for a number.");
  command->footer(
      "Examples:\n"
      "  cloze predict --model runs/sst2 texts.txt\n"
      "  echo '{\"id\": 7, \"text\": \"A fine film.\"}' | cloze predict --model runs/sst2 "
      "--input-format jsonl");
  auto options = std::make_shared<InferOptions>();
  AddInferOptions(command, options.get());
  command->callback([=] { *run = [=] { return Predict(*options); }; });
}

}  // namespace cloze
