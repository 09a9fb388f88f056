#include "tasks/task.h"

#include "core/base/file.h"

namespace cloze {

absl::StatusOr<LabelledReader> TaskData::OpenLabelled(const DataSpec&) const {
  return Error(Exit::kUsage,
      "predictions: a language model or encoder-decoder has none: expected a model that answers "
      "for each text (`cloze generate` writes targets)");
}

absl::Status Task::CheckModel(const LoadedSpec& loaded, const ModelConfig& config) const {
  if (config.encoder != nullptr)
    return SpecError(
        loaded, name_, "the model is an encoder-decoder: expected sequence_to_sequence");
  if (config.attention.causal)
    return SpecError(loaded, name_, "the model is a decoder: expected causal_lm");
  return CheckLength(loaded, "max_tokens", max_tokens(), config);
}

absl::Status Task::CheckLength(const LoadedSpec& loaded, absl::string_view field, int32_t tokens,
    const ModelConfig& config) const {
  if (tokens <= config.max_tokens()) return absl::OkStatus();
  return SpecError(loaded, absl::StrCat(name_, ".", field), tokens, ", but the model has ",
      config.max_tokens(), " positions");
}

absl::Status Task::Bind(const ModelConfig&, const Tokenizer* tokenizer, uint64_t) {
  tokenizer_ = tokenizer;
  return absl::OkStatus();
}

// One factory for each task, defined in the task's file.
std::unique_ptr<Task> MakeMaskedLm(const MaskedLmSpec& spec);
std::unique_ptr<Task> MakeSequenceClassification(const SequenceClassificationSpec& spec);
std::unique_ptr<Task> MakeTokenTagging(const TokenTaggingSpec& spec);
std::unique_ptr<Task> MakeQuestionAnswering(const QuestionAnsweringSpec& spec);
std::unique_ptr<Task> MakeCausalLm(const CausalLmSpec& spec);
std::unique_ptr<Task> MakeSequenceToSequence(const SequenceToSequenceSpec& spec);
std::unique_ptr<Task> MakeSentenceEmbedding(const SentenceEmbeddingSpec& spec);

std::unique_ptr<Task> MakeTask(const TaskSpec& spec) {
  switch (spec.task_case()) {
    case TaskSpec::kMaskedLm: return MakeMaskedLm(spec.masked_lm());
    case TaskSpec::kSequenceClassification:
      return MakeSequenceClassification(spec.sequence_classification());
    case TaskSpec::kTokenTagging: return MakeTokenTagging(spec.token_tagging());
    case TaskSpec::kQuestionAnswering: return MakeQuestionAnswering(spec.question_answering());
    case TaskSpec::kCausalLm: return MakeCausalLm(spec.causal_lm());
    case TaskSpec::kSequenceToSequence: return MakeSequenceToSequence(spec.sequence_to_sequence());
    case TaskSpec::kSentenceEmbedding: return MakeSentenceEmbedding(spec.sentence_embedding());
    case TaskSpec::TASK_NOT_SET: break;
  }
  CLOZE_CHECK(false);
}

std::unique_ptr<Task> MakeTask(HeadKind head) {
  const auto* tasks = TaskSpec::descriptor()->FindOneofByName("task");
  for (int i = 0; i < tasks->field_count(); ++i) {
    TaskSpec spec;
    spec.GetReflection()->MutableMessage(&spec, tasks->field(i));
    std::unique_ptr<Task> task = MakeTask(spec);
    if (task->head() == head) return task;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Task>> RestoreTask(
    const std::string& folder, const ModelConfig& config, int64_t longest) {
  std::unique_ptr<Task> task = MakeTask(config.head);
  if (task == nullptr) return task;
  JsonFields fields(config.task_fields, JoinPath(folder, "config.json"));
  task->Restore(config, fields, longest);
  if (!fields.status().ok()) return fields.status();
  RETURN_IF_ERROR(task->ReadFiles(folder));
  return task;
}

}  // namespace cloze
