// `cloze fill-mask`: the likeliest words for each <mask>, as tables on a terminal, else JSON lines.
#include <unistd.h>

#include "tools/infer.h"

namespace cloze {
namespace {

struct FillMaskOptions {
  InferOptions infer;
  int top = 5;
  bool json = false;
};

absl::Status FillMask(FillMaskOptions options) {
  ASSIGN_OR_RETURN(const auto session, OpenSession(&options.infer));
  RETURN_IF_ERROR(session->TokenizerOr().status());
  ASSIGN_OR_RETURN(const auto predictor,
      NewPredictor(*session, options.infer, "fill-mask", {.top = options.top}));
  if (!options.json && ::isatty(1) == 1) options.infer.format = "table";
  const InputOptions& input = options.infer.input;
  if (!input.texts.empty() && !input.format.empty() && input.format != "text")
    return UsageError("--input-format is not for texts as arguments");
  return AnswerInput(*predictor, options.infer);
}

}  // namespace

void AddFillMask(Command& app) {
  const auto declare = [](Command& command, FillMaskOptions& options) {
    AddInferOptions(command, &options.infer, false);
    options.infer.input.blank_lines = true;
    command.Add("text", &options.infer.input.texts,
        "Texts with <mask>. Default: one per line of standard input.");
    AddInputFormat(command, &options.infer.input);
    AddOnError(command, &options.infer);
    command.Add(
        "--top", &options.top, "Number of tokens to print per mask.", {.min = 1, .max = 1000});
    command.Add("--json", &options.json, "Print JSON on a terminal too.");
  };
  app.AddCommand<FillMaskOptions>("fill-mask",
      "Print the most likely tokens for each <mask> in a text.",
      "  echo 'The capital of France is <mask>.' | cloze fill-mask --model runs/pretrain_mini\n"
      "  cloze fill-mask --model runs/pretrain_mini 'The <mask> barked.' 'A kind of <mask>.'",
      declare, FillMask);
}

}  // namespace cloze
