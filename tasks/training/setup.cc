#include "tasks/training/setup.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/base/number.h"
#include "core/ops/ops.h"
#include "core/text/files/tokenizer_files.h"
#include "encoder/folder/model_folder.h"

namespace cloze {
namespace {

// The folder's labels when the data have no others: a classifier that is trained on keeps its ids.
std::vector<std::string> MergeLabels(
    const ModelConfig& folder, HeadKind head, std::vector<std::string> learned) {
  const auto known = [&](const std::string& label) {
    return std::find(folder.labels.begin(), folder.labels.end(), label) != folder.labels.end();
  };
  return folder.head == head && std::all_of(learned.begin(), learned.end(), known) ? folder.labels
                                                                                   : learned;
}

absl::StatusOr<std::vector<std::string>> LabelsOf(
    const TaskSpec& spec, const ModelConfig& folder, const std::atomic<bool>* stop) {
  const auto given = [](const auto& labels) {
    return std::vector<std::string>(labels.begin(), labels.end());
  };
  switch (spec.task_case()) {
    case TaskSpec::kSequenceClassification: {
      if (spec.sequence_classification().labels_size() > 0)
        return given(spec.sequence_classification().labels());
      if (spec.sequence_classification().kind() == SequenceClassificationSpec::REGRESSION)
        return std::vector<std::string>{"LABEL_0"};
      ASSIGN_OR_RETURN(
          auto learned, LearnClassLabels(spec.train(), spec.sequence_classification(), stop));
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

// The field that says where the tokenizer is.
std::string TokenizerField(const TaskSpec& spec) {
  return spec.model().tokenizer().empty() ? "model.start_from" : "model.tokenizer";
}

// A field of the spec's task: "masked_lm.max_tokens".
std::string TaskField(const TaskSpec& spec, absl::string_view field) {
  const auto* task = TaskSpec::descriptor()->FindOneofByName("task");
  return absl::StrCat(
      spec.GetReflection()->GetOneofFieldDescriptor(spec, task)->name(), ".", field);
}

// Errors that are about the spec (where files are, how they are read) get its place; those about a
// file's content have their own.
absl::Status AtData(
    const LoadedSpec& loaded, const std::string& field, const absl::Status& status) {
  const Exit exit = ExitOf(status);
  return exit == Exit::kSpec || exit == Exit::kNoInput ? AtField(loaded, field, status) : status;
}

absl::StatusOr<ModelConfig> EncoderConfig(const LoadedSpec& loaded, const Tokenizer& tokenizer) {
  const ModelSpec& model = loaded.spec.model();
  if (model.start_from().empty()) {
    ASSIGN_OR_RETURN(ModelConfig config, ConfigFromSpec(model.encoder()));
    config.vocab = tokenizer.vocab_size();
    config.pad_id = std::max(tokenizer.special().pad, 0);
    if (config.norm == EncoderSpec::PRE) {  // as RoBERTa counts positions
      config.max_positions += config.pad_id + 1 - config.position_offset;
      config.position_offset = config.pad_id + 1;
    }
    config.dropout = model.dropout();
    config.attention_dropout = model.attention_dropout();
    return config;
  }
  auto config_or = LoadConfig(model.start_from());
  if (!config_or.ok()) return AtField(loaded, "model.start_from", config_or.status());
  ModelConfig config = *std::move(config_or);
  if (model.has_dropout()) config.dropout = model.dropout(), config.classifier_dropout = -1;
  if (model.has_attention_dropout()) config.attention_dropout = model.attention_dropout();
  return config;
}

Problem ProblemOf(SequenceClassificationSpec::Kind kind) {
  switch (kind) {
    case SequenceClassificationSpec::SINGLE_LABEL: return Problem::kSingleLabel;
    case SequenceClassificationSpec::MULTI_LABEL: return Problem::kMultiLabel;
    case SequenceClassificationSpec::REGRESSION: return Problem::kRegression;
  }
  CLOZE_CHECK(false);
}

// examples / (labels * examples of the label), as scikit-learn's "balanced"; 1 for a label without
// examples.
absl::StatusOr<std::vector<float>> BalancedWeights(const ExampleStore& store, size_t labels) {
  std::vector<int64_t> counts(labels);
  int64_t total = 0;
  Example example;
  for (int64_t i = 0; i < store.size(); ++i) {
    RETURN_IF_ERROR(store.Read(i, &example));
    for (const int32_t label : example.labels) ++counts[label], ++total;
  }
  std::vector<float> weights;
  for (const int64_t count : counts)
    weights.push_back(count > 0 ? static_cast<float>(double(total) / (double(labels) * count)) : 1);
  return weights;
}

// The weights of the labels in the loss, with a line that says them when they come from the data.
absl::StatusOr<std::vector<float>> ClassWeights(const TaskSpec& spec, const ModelConfig& config,
    const ExampleStore& train, std::vector<std::string>* notes) {
  const auto& given = spec.has_token_tagging() ? spec.token_tagging().class_weights()
                                               : spec.sequence_classification().class_weights();
  const bool balance = spec.has_token_tagging() ? spec.token_tagging().balance_classes()
                                                : spec.sequence_classification().balance_classes();
  if (!balance) return std::vector<float>(given.begin(), given.end());
  ASSIGN_OR_RETURN(std::vector<float> weights, BalancedWeights(train, config.labels.size()));
  std::string line = "class weights:";
  for (size_t i = 0; i < std::min<size_t>(weights.size(), 20); ++i)
    absl::StrAppend(&line, i > 0 ? ", " : " ", Quote(config.labels[i]), " ", weights[i]);
  notes->push_back(line + (weights.size() > 20 ? ", ..." : ""));
  return weights;
}

// Do the tokens and positions of the data have rows in the model's tables?
absl::Status CheckFit(
    const LoadedSpec& loaded, const ModelConfig& config, const Tokenizer& tokenizer) {
  const TaskSpec& spec = loaded.spec;
  if (tokenizer.vocab_size() > config.vocab) {
    return AtField(loaded, TokenizerField(spec),
        Error(Exit::kMismatch, absl::StrCat("the tokenizer has ", tokenizer.vocab_size(),
                                   " tokens, the model knows ", config.vocab)));
  }
  if (MaxTokens(spec) <= config.max_tokens()) return absl::OkStatus();
  return SpecError(loaded, TaskField(spec, "max_tokens"),
      absl::StrCat(MaxTokens(spec), ", but the model has ", config.max_tokens(), " positions"));
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
  const bool fast = MultipliesBf16();
  if (compute == RuntimeSpec::BF16 && !fast) {
    return Error(
        Exit::kLimit, "compute bf16: this CPU has no AVX512_BF16 instructions; use f32 or auto");
  }
  if (compute == RuntimeSpec::AUTO)
    return fast && use == Use::kTraining ? DType::kBf16 : DType::kF32;
  return compute == RuntimeSpec::BF16 ? DType::kBf16 : DType::kF32;
}

absl::StatusOr<BuiltStore> BuildStore(const LoadedSpec& loaded, const DataSpec& data,
    const ModelConfig& config, const Tokenizer& tokenizer, const BuildOptions& options) {
  const TaskSpec& spec = loaded.spec;
  RETURN_IF_ERROR(CheckFit(loaded, config, tokenizer));
  absl::StatusOr<BuiltStore> built = Error(Exit::kSpec, "the spec names no task");
  switch (spec.task_case()) {
    case TaskSpec::kMaskedLm:
      built = BuildMaskedLm(data, spec.masked_lm(), tokenizer, options);
      break;
    case TaskSpec::kSequenceClassification:
      built = BuildClassification(
          data, spec.sequence_classification(), config.labels, tokenizer, options);
      break;
    case TaskSpec::kTokenTagging:  // judged as `cloze tag` reads
      built = BuildTagging(data, spec.token_tagging(), config.labels, tokenizer, options,
          &data == &spec.validation() ? Overlap::kHalf : Overlap::kNone);
      break;
    case TaskSpec::TASK_NOT_SET: break;
  }
  if (!built.ok())
    return AtData(loaded, &data == &spec.validation() ? "validation" : "train", built.status());
  return built;
}

absl::StatusOr<Setup> Prepare(const LoadedSpec& loaded, const BuildOptions& options) {
  Setup setup;
  const TaskSpec& spec = loaded.spec;
  const ModelSpec& model = spec.model();
  auto tokenizer = LoadTokenizer(
      model.tokenizer().empty() ? model.start_from() : model.tokenizer(), model.lowercase());
  if (!tokenizer.ok()) return AtField(loaded, TokenizerField(spec), tokenizer.status());
  setup.tokenizer = *std::move(tokenizer);
  if (!model.tokenizer().empty() && !model.start_from().empty()) {
    const auto own = LoadTokenizer(model.start_from(), model.lowercase());
    if (own.ok() && !(*own)->SameIds(*setup.tokenizer))
      return AtField(loaded, TokenizerField(spec),
          Error(Exit::kMismatch, "has other tokens than the model in model.start_from"));
  }
  ASSIGN_OR_RETURN(ModelConfig config, EncoderConfig(loaded, *setup.tokenizer));
  auto labels = LabelsOf(spec, config, options.stop);
  if (!labels.ok()) return AtData(loaded, "train", labels.status());
  config.labels = *std::move(labels);
  config.head = HeadOf(spec);
  config.pooler =
      config.head == HeadKind::kSequenceClassification && spec.sequence_classification().pooler();
  config.crf = spec.token_tagging().crf();
  config.viterbi = spec.token_tagging().viterbi();
  config.window = spec.has_token_tagging() ? spec.token_tagging().max_tokens() : 0;
  config.problem = Problem::kSingleLabel;
  config.reading = {};
  if (const SequenceClassificationSpec& task = spec.sequence_classification();
      spec.has_sequence_classification()) {
    config.problem = ProblemOf(task.kind());
    config.reading = {.max_tokens = task.max_tokens(),
        .long_texts = task.long_texts(),
        .pairs = !spec.train().text_pair_field().empty(),
        .threshold = task.threshold()};
  }
  setup.config = config;
  if (spec.has_masked_lm()) {
    auto masker = Masker::Create(spec.masked_lm(), *setup.tokenizer, spec.seed());
    if (!masker.ok()) return AtField(loaded, TokenizerField(spec), masker.status());
    setup.masker = *std::move(masker);
  }
  ASSIGN_OR_RETURN(
      setup.train, BuildStore(loaded, spec.train(), config, *setup.tokenizer, options));
  ASSIGN_OR_RETURN(
      setup.class_weights, ClassWeights(spec, config, setup.train->store, &setup.notes));
  setup.label_smoothing = spec.has_token_tagging()
                              ? spec.token_tagging().label_smoothing()
                              : spec.sequence_classification().label_smoothing();
  const auto note = [&](absl::string_view name, const BuiltStore& built) {
    for (std::string& line : DescribeStore(name, built)) setup.notes.push_back(std::move(line));
  };
  note("train", *setup.train);
  if (spec.validation().files_size() > 0) {
    ASSIGN_OR_RETURN(
        setup.validation, BuildStore(loaded, spec.validation(), config, *setup.tokenizer, options));
    note("validation", *setup.validation);
  }
  return setup;
}

std::vector<std::string> DescribeStore(absl::string_view name, const BuiltStore& built) {
  const DataStats& s = built.store.stats();
  std::vector<std::string> lines = {absl::StrCat(name, ": ", Counted(s.examples, "example"), ", ",
      Counted(s.tokens, "token"), built.reused ? " (cached)" : "")};
  if (!built.note.empty()) lines.push_back(absl::StrCat(name, ": ", built.note));
  if (s.truncated > 0 && s.cut_tokens > 0) {
    lines.push_back(
        absl::StrCat(name, ": cut off because too long: ", Counted(s.cut_tokens, "token"), " of ",
            Counted(s.truncated, "text"), "; raise max_tokens to keep them"));
  }
  if (s.truncated > 0 && s.cut_tokens == 0)
    lines.push_back(
        absl::StrCat(name, ": read in several windows: ", Counted(s.truncated, "text")));
  if (s.empty_words > 0)
    lines.push_back(
        absl::StrCat(name, ": without pieces, taken as <unk>: ", Counted(s.empty_words, "word")));
  if (s.invalid_bytes > 0)
    lines.push_back(absl::StrCat(name, ": not UTF-8, dropped: ", Counted(s.invalid_bytes, "byte")));
  if (s.text_tokens > 0 && s.unknown_tokens * 20 > s.text_tokens) {
    lines.push_back(absl::StrCat(name, ": ", 100 * s.unknown_tokens / s.text_tokens,
        " % of the tokens are <unk>; does the vocabulary fit the text?"));
  }
  return lines;
}

}  // namespace cloze
