#include "tasks/model_fit.h"

namespace cloze {

absl::Status CheckFit(const LoadedSpec& loaded, const Task& task, const ModelConfig& config,
    const Tokenizer& tokenizer) {
  if (tokenizer.vocab_size() > config.vocab) {
    return AtField(loaded, TokenizerField(loaded.spec),
        Error(Exit::kMismatch, "the tokenizer has ", tokenizer.vocab_size(),
            " tokens: expected at most ", config.vocab, ", the vocabulary of the model"));
  }
  return task.CheckModel(loaded, config);
}

std::string TokenizerField(const TaskSpec& spec) {
  return spec.model().tokenizer().empty() && !spec.model().start_from().empty() ? "model.start_from"
                                                                                : "model.tokenizer";
}

absl::Status AtData(
    const LoadedSpec& loaded, const std::string& field, const absl::Status& status) {
  const Exit exit = ExitOf(status);
  return exit == Exit::kSpec || exit == Exit::kNoInput
             ? AtField(loaded, exit == Exit::kNoInput ? field + ".files" : field, status)
             : status;
}

absl::StatusOr<BuiltStore> BuildStore(const LoadedSpec& loaded, Task& task, const DataSpec& data,
    const ModelConfig& config, const Tokenizer& tokenizer, const BuildOptions& options) {
  RETURN_IF_ERROR(CheckFit(loaded, task, config, tokenizer));
  const bool held_out = &data == &loaded.spec.validation();
  auto built =
      task.Build(data, held_out ? DataUse::kEvaluation : DataUse::kTraining, tokenizer, options);
  if (!built.ok()) return AtData(loaded, held_out ? "validation" : "train", built.status());
  return built;
}

}  // namespace cloze
