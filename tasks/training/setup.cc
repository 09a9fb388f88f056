#include "tasks/training/setup.h"

#include <algorithm>

#include "core/ops/ops.h"
#include "encoder/model_folder.h"

namespace cloze {
namespace {

// The folder's labels when the data have no others: a classifier that is trained on keeps its ids.
std::vector<std::string> MergeLabels(const ModelConfig& folder, HeadKind head, std::vector<std::string> learned) {
  const auto known = [&](const std::string& label) {
    return std::find(folder.labels.begin(), folder.labels.end(), label) != folder.labels.end();
  };
  return folder.head == head && std::all_of(learned.begin(), learned.end(), known) ? folder.labels : learned;
}

absl::StatusOr<std::vector<std::string>> LabelsOf(const TaskSpec& spec, const ModelConfig& folder, const std::atomic<bool>* stop) {
  const auto given = [](const auto& labels) { return std::vector<std::string>(labels.begin(), labels.end()); };
  switch (spec.task_case()) {
    case TaskSpec::kSequenceClassification: {
      if (spec.sequence_classification().labels_size() > 0) return given(spec.sequence_classification().labels());
      ASSIGN_OR_RETURN(auto learned, LearnClassLabels(spec.train(), stop));
      return MergeLabels(folder, HeadKind::kSequenceClassification, std::move(learned));
    }
    case TaskSpec::kTokenTagging: {
      if (spec.token_tagging().labels_size() > 0) return given(spec.token_tagging().labels());
      ASSIGN_OR_RETURN(auto learned, LearnTags(spec.train(), stop));
      return MergeLabels(folder, HeadKind::kTokenTagging, std::move(learned));
    }
    case TaskSpec::kMaskedLm:
    case TaskSpec::TASK_NOT_SET: break;
  }
  return std::vector<std::string>();
}

absl::StatusOr<ModelConfig> EncoderConfig(const TaskSpec& spec, const Tokenizer& tokenizer) {
  const ModelSpec& model = spec.model();
  if (model.start_from().empty()) {
    ASSIGN_OR_RETURN(ModelConfig config, ConfigFromSpec(model.encoder()));
    config.vocab = tokenizer.vocab_size();
    config.pad_id = std::max(tokenizer.special().pad, 0);
    if (config.norm == EncoderSpec::PRE) {  // as RoBERTa counts positions
      config.position_offset = config.pad_id + 1;
      config.max_positions += config.position_offset;
    }
    config.dropout = model.dropout();
    config.attention_dropout = model.attention_dropout();
    return config;
  }
  ASSIGN_OR_RETURN(ModelConfig config, LoadConfig(model.start_from()));
  if (tokenizer.vocab_size() > config.vocab) {
    return Error(Exit::kMismatch, absl::StrCat("the tokenizer has ", tokenizer.vocab_size(), " tokens, the model in ",
                                               Quote(model.start_from()), " knows ", config.vocab));
  }
  if (model.has_dropout()) config.dropout = model.dropout(), config.classifier_dropout = -1;
  if (model.has_attention_dropout()) config.attention_dropout = model.attention_dropout();
  return config;
}

}  // namespace

HeadKind HeadOf(const TaskSpec& spec) {
  switch (spec.task_case()) {
    case TaskSpec::kMaskedLm: return HeadKind::kMaskedLm;
    case TaskSpec::kSequenceClassification: return HeadKind::kSequenceClassification;
    case TaskSpec::kTokenTagging: return HeadKind::kTokenTagging;
    case TaskSpec::TASK_NOT_SET: break;
  }
  return HeadKind::kNone;
}

int64_t MaxTokens(const TaskSpec& spec) {
  switch (spec.task_case()) {
    case TaskSpec::kMaskedLm: return spec.masked_lm().max_tokens();
    case TaskSpec::kSequenceClassification: return spec.sequence_classification().max_tokens();
    case TaskSpec::kTokenTagging: return spec.token_tagging().max_tokens();
    case TaskSpec::TASK_NOT_SET: break;
  }
  return 0;
}

absl::StatusOr<DType> ComputeOf(RuntimeSpec::Compute compute, Use use) {
  const bool fast = absl::string_view(IsaName()) == "avx512bf16";
  if (compute == RuntimeSpec::BF16 && !fast) {
    return Error(Exit::kLimit, "compute bf16: this CPU has no AVX512_BF16 instructions; use f32 or auto");
  }
  if (compute == RuntimeSpec::AUTO) return fast && use == Use::kTraining ? DType::kBf16 : DType::kF32;
  return compute == RuntimeSpec::BF16 ? DType::kBf16 : DType::kF32;
}

absl::StatusOr<BuiltStore> BuildStore(const TaskSpec& spec, const DataSpec& data, const ModelConfig& config, const Tokenizer& tokenizer,
                                      const BuildOptions& options) {
  switch (spec.task_case()) {
    case TaskSpec::kMaskedLm: return BuildMaskedLm(data, spec.masked_lm(), tokenizer, options);
    case TaskSpec::kSequenceClassification:
      return BuildClassification(data, spec.sequence_classification(), config.labels, tokenizer, options);
    case TaskSpec::kTokenTagging: return BuildTagging(data, spec.token_tagging(), config.labels, tokenizer, options);
    case TaskSpec::TASK_NOT_SET: break;
  }
  return Error(Exit::kSpec, "the spec names no task");
}

absl::StatusOr<Setup> Prepare(const TaskSpec& spec, const BuildOptions& options) {
  Setup setup;
  const ModelSpec& model = spec.model();
  ASSIGN_OR_RETURN(setup.tokenizer, Tokenizer::Load(model.tokenizer().empty() ? model.start_from() : model.tokenizer(), model.lowercase()));
  ASSIGN_OR_RETURN(ModelConfig config, EncoderConfig(spec, *setup.tokenizer));
  if (const int64_t most = config.max_positions - config.position_offset; MaxTokens(spec) > most) {
    return Error(Exit::kSpec, absl::StrCat("max_tokens is ", MaxTokens(spec), ", but the model has only ", most, " positions"));
  }
  ASSIGN_OR_RETURN(config.labels, LabelsOf(spec, config, options.stop));
  config.head = HeadOf(spec);
  config.pooler = config.head == HeadKind::kSequenceClassification && spec.sequence_classification().pooler();
  setup.config = config;
  if (spec.has_masked_lm()) {
    ASSIGN_OR_RETURN(setup.masker, Masker::Create(spec.masked_lm(), *setup.tokenizer, spec.seed()));
  }
  ASSIGN_OR_RETURN(setup.train, BuildStore(spec, spec.train(), config, *setup.tokenizer, options));
  const auto note = [&](absl::string_view name, const BuiltStore& built) {
    for (std::string& line : DescribeStore(name, built)) setup.notes.push_back(std::move(line));
  };
  note("train", *setup.train);
  if (spec.validation().files_size() > 0) {
    ASSIGN_OR_RETURN(setup.validation, BuildStore(spec, spec.validation(), config, *setup.tokenizer, options));
    note("validation", *setup.validation);
  }
  return setup;
}

std::vector<std::string> DescribeStore(absl::string_view name, const BuiltStore& built) {
  const DataStats& s = built.store.stats();
  std::vector<std::string> lines = {
      absl::StrCat(name, ": ", s.examples, " examples, ", s.tokens, " tokens", built.reused ? " (cached)" : "")};
  if (!built.note.empty()) lines.push_back(absl::StrCat(name, ": ", built.note));
  if (s.truncated > 0)
    lines.push_back(absl::StrCat(name, ": ", s.truncated, " texts were too long, ", s.cut_tokens,
                                 " tokens were cut off; raise max_tokens to keep them"));
  if (s.empty_words > 0) lines.push_back(absl::StrCat(name, ": ", s.empty_words, " words have no pieces and count as <unk>"));
  if (s.invalid_bytes > 0) lines.push_back(absl::StrCat(name, ": ", s.invalid_bytes, " bytes are not UTF-8 and were dropped"));
  if (s.text_tokens > 0 && s.unknown_tokens * 20 > s.text_tokens) {
    lines.push_back(
        absl::StrCat(name, ": ", 100 * s.unknown_tokens / s.text_tokens, " % of the tokens are <unk>; does the vocabulary fit the text?"));
  }
  return lines;
}

}  // namespace cloze
