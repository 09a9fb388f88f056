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
      "Labels or a number for each text, or pair of texts. One label: label, score, scores; "
      "several: labels, scores; a number: score.");
  auto options = std::make_shared<InferOptions>();
  AddInferOptions(command, options.get());
  command->callback([=] { *run = [=] { return Predict(*options); }; });
}

}  // namespace cloze
