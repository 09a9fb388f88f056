// Verifies the constraints of each task. A new task adds a function and a line in CheckOneTask.
#include <set>

#include "absl/algorithm/container.h"
#include "core/base/text.h"
#include "proto/spec.h"
#include "proto/spec_errors.h"

namespace cloze {
namespace {

template <typename Task>
void CheckLabelWeights(
    const Task& task, const std::string& name, absl::string_view refusal, SpecErrors* errors) {
  const auto& weights = task.label_weights();
  const std::string field = name + ".label_weights";
  if (weights.empty()) return;
  errors->AddIf(!refusal.empty(), field, refusal);
  errors->AddIf(!task.class_weights().empty() || task.balance_classes(), field,
      "excludes class_weights and balance_classes: expected one of them");
  std::set<std::string> seen;
  for (int i = 0; i < weights.size(); ++i) {
    const auto parsed = ParseLabelWeight(weights[i]);
    const std::string path = absl::StrCat(field, "[", i, "]");
    errors->AddIf(!parsed, path, "\"", Quote(weights[i]),
        "\": expected LABEL=WEIGHT with a weight from 0 to 1e+06, such as billing=4");
    errors->AddIf(parsed && !seen.insert(parsed->first).second, path, "a second weight of \"",
        Quote(parsed ? parsed->first : ""), "\"");
  }
}

void CheckLabelMap(const SequenceClassificationSpec& task, SpecErrors* errors) {
  std::set<std::string> seen;
  for (int i = 0; i < task.label_map_size(); ++i) {
    const std::string path = absl::StrCat("sequence_classification.label_map[", i, "]");
    const auto parsed = ParseLabelMap(task.label_map(i));
    errors->AddIf(!parsed, path, "\"", Quote(task.label_map(i)),
        "\": expected LABEL=LABEL, such as billing=Billing");
    errors->AddIf(parsed && !seen.insert(parsed->first).second, path, "\"",
        Quote(parsed ? parsed->first : ""), "\" is given twice");
  }
}

// Checks labels, class weights and label smoothing of the task `name`, which has at least `minimum`
// labels. `refusal`: why it cannot have weights and smoothing, or "".
template <typename Task>
void CheckLabels(const Task& task, const std::string& name, int minimum, absl::string_view refusal,
    SpecErrors* errors) {
  const auto& labels = task.labels();
  std::set<std::string> seen;
  for (int i = 0; i < labels.size(); ++i) {
    const std::string path = absl::StrCat(name, ".labels[", i, "]");
    errors->AddIf(labels[i].empty(), path, "is empty");
    errors->AddIf(labels[i].size() > kMaxLabelBytes || !IsUtf8(labels[i]), path,
        "expected at most ", kMaxLabelBytes, " bytes of UTF-8");
    errors->AddIf(
        !seen.insert(labels[i]).second, path, "label \"", Quote(labels[i]), "\" is given twice");
  }
  errors->AddIf(
      labels.size() > kMaxLabels, name + ".labels", "expected at most ", kMaxLabels, " labels");
  errors->AddIf(labels.size() == 1 && minimum > 1, name + ".labels",
      "only one label: expected at least two, or none to collect them from the data");
  CheckLabelWeights(task, name, refusal, errors);
  const auto& weights = task.class_weights();
  if (!refusal.empty()) {
    errors->AddIf(!weights.empty(), name + ".class_weights", refusal);
    errors->AddIf(task.balance_classes(), name + ".balance_classes", refusal);
    errors->AddIf(task.label_smoothing() > 0, name + ".label_smoothing", refusal);
  }
  if (weights.empty()) return;
  errors->AddIf(task.balance_classes(), name + ".balance_classes",
      "excludes class_weights: expected one of them");
  errors->AddIf(weights.size() != labels.size(), name + ".class_weights", weights.size(),
      " weights for ", labels.size(),
      " labels: expected one weight per label, in the order of `labels`, which must be set");
  errors->AddIf(*absl::c_max_element(weights) <= 0, name + ".class_weights",
      "all are 0: expected at least one positive weight");
}

void CheckMaskedLm(const TaskSpec& spec, SpecErrors* errors) {
  const MaskedLmSpec& task = spec.masked_lm();
  const float sum = task.keep_share() + task.random_share();
  errors->AddIf(sum > 1, "masked_lm.random_share", "keep_share + random_share is ", Shortest(sum),
      ": expected at most 1");
  const int from = task.warmup_from_tokens();
  errors->AddIf(from > task.max_tokens() || (from > 0 && from < 8), "masked_lm.warmup_from_tokens",
      from, " is out of range: expected 0, or 8 to max_tokens = ", task.max_tokens());
}

void CheckReplacedTokens(const TaskSpec& spec, SpecErrors* errors) {
  if (!spec.masked_lm().has_replaced_tokens()) return;
  const std::string name = "masked_lm.replaced_tokens";
  const auto architecture = spec.model().encoder().architecture();
  errors->AddIf(spec.model().has_encoder() && architecture != EncoderSpec::ELECTRA &&
                    architecture != EncoderSpec::MODERN,
      "model.encoder.architecture", "expected ELECTRA or MODERN with ", name);
  errors->AddIf(!TrainsAll(spec.trainable()), "trainable", "cannot be used with ", name,
      ", which trains both models whole");
  errors->AddIf(!spec.evaluation().pairs().empty(), "evaluation.pairs", "cannot be used with ",
      name, ": expected a masked language model");
  errors->AddIf(spec.masked_lm().causal_share() > 0, "masked_lm.causal_share",
      "cannot be used with ", name, ", whose discriminator reads whole sequences: expected 0");
}

void CheckClassification(const TaskSpec& spec, SpecErrors* errors) {
  using Spec = SequenceClassificationSpec;
  const Spec& task = spec.sequence_classification();
  const std::string name = "sequence_classification";
  const bool single = task.kind() == Spec::SINGLE_LABEL;
  CheckLabels(task, name, single ? 2 : 1, single ? "" : "is only for SINGLE_LABEL", errors);
  CheckLabelMap(task, errors);
  const bool cleans = task.trim_labels() || !task.label_map().empty();
  errors->AddIf(task.kind() == Spec::REGRESSION && cleans,
      name + (task.trim_labels() ? ".trim_labels" : ".label_map"),
      "is not for REGRESSION, which learns numbers");
  errors->AddIf(task.kind() == Spec::REGRESSION && task.labels_size() > 1, name + ".labels",
      "expected at most one name for REGRESSION, which learns one number");
  errors->AddIf(task.kind() == Spec::MULTI_LABEL && task.label_separator().empty(),
      name + ".label_separator", "is empty: expected a separator for MULTI_LABEL");
  const bool several = task.kind() == Spec::MULTI_LABEL, best = task.thresholds() == Spec::BEST,
             validates = !spec.validation().files().empty();
  errors->AddIf(!single && !several && task.calibrate(), name + ".calibrate",
      "is not for REGRESSION, which has no probabilities");
  errors->AddIf(!several && best, name + ".thresholds", "BEST is only for MULTI_LABEL");
  errors->AddIf(
      task.calibrate() && !validates, name + ".calibrate", "the temperature", kNeedsValidation);
  errors->AddIf(best && !validates, name + ".thresholds", "BEST", kNeedsValidation);
  const bool train = !spec.train().text_pair_field().empty(),
             validation = !spec.validation().text_pair_field().empty();
  errors->AddIf(train && task.long_texts() == Spec::WINDOWS, name + ".long_texts",
      "WINDOWS is only for single texts: expected HEAD, TAIL or HEAD_TAIL for pairs");
  errors->AddIf(train != validation && spec.validation().files_size() > 0,
      train ? "validation.text_pair_field" : "train.text_pair_field", "is not set, but ",
      train ? "train" : "validation", ".text_pair_field is: expected pairs in both or in none");
}

void CheckTagging(const TaskSpec& spec, SpecErrors* errors) {
  const TokenTaggingSpec& task = spec.token_tagging();
  CheckLabels(task, "token_tagging", 2,
      task.crf() ? "cannot be used with crf, whose loss is that of whole sequences" : "", errors);
}

void CheckSequenceToSequence(const TaskSpec& spec, SpecErrors* errors) {
  const std::string name = "sequence_to_sequence.max_target_tokens";
  const SequenceToSequenceSpec& task = spec.sequence_to_sequence();
  const int64_t tokens = task.max_target_tokens(), both = task.max_tokens() + tokens,
                positions = spec.model().encoder().max_positions();
  errors->AddIf(spec.model().has_encoder() && tokens > positions, name, tokens,
      " is more than model.encoder.max_positions = ", positions);
  errors->AddIf(spec.batch().has_micro_tokens() && spec.batch().micro_tokens() < both,
      "batch.micro_tokens", spec.batch().micro_tokens(),
      " is less than max_tokens + max_target_tokens = ", both, ": expected room for one pair");
  for (const auto& [part, data] :
      {std::pair("train", &spec.train()), std::pair("validation", &spec.validation())})
    errors->AddIf(data->files_size() > 0 && data->text_pair_field().empty(),
        absl::StrCat(part, ".text_pair_field"), "is not set: expected the column of the targets");
}

void CheckSentenceEmbedding(const TaskSpec& spec, SpecErrors* errors) {
  using Spec = SentenceEmbeddingSpec;
  const Spec& task = spec.sentence_embedding();
  const std::string name = "sentence_embedding", loss = Spec::Loss_Name(task.loss());
  const bool in_batch = task.loss() == Spec::IN_BATCH_NEGATIVES,
             simcse = task.loss() == Spec::SIMCSE, triplet = task.loss() == Spec::TRIPLET,
             scored = task.loss() == Spec::COSENT || task.loss() == Spec::COSINE;
  const bool pairs = !spec.train().text_pair_field().empty(),
             negatives = !spec.train().negative_field().empty();
  errors->AddIf((scored || triplet) && !pairs, "train.text_pair_field",
      "is not set: expected the column of the second texts for ", loss);
  errors->AddIf(simcse && pairs, "train.text_pair_field",
      "is set, but SIMCSE learns from single texts: expected none, or IN_BATCH_NEGATIVES");
  errors->AddIf(triplet && !negatives, "train.negative_field",
      "is not set: expected the column of texts that are unlike for TRIPLET");
  errors->AddIf(negatives && !pairs, "train.negative_field",
      "is set, but train.text_pair_field is not: expected both");
  errors->AddIf(negatives && (simcse || scored), "train.negative_field", "is not read by ", loss);
  errors->AddIf(spec.batch().examples() == 1 && task.loss() != Spec::COSINE && !triplet,
      "batch.examples", "is 1: ", loss, " compares the examples of a batch: expected more");
  errors->AddIf(task.symmetric() && !in_batch && !simcse, name + ".symmetric",
      "is only for IN_BATCH_NEGATIVES");
  errors->AddIf(spec.trainable().head_only(), "trainable.head_only", "cannot be used with ", name,
      ", which has no head");
  const int64_t tokens =
      int64_t{task.max_tokens()} * (2 + (in_batch || triplet ? task.negatives() : 0));
  errors->AddIf(tokens > 65535, name + ".negatives", "2 + negatives texts of max_tokens have ",
      tokens, " tokens: expected at most 65535");
  errors->AddIf(spec.batch().has_micro_tokens() && spec.batch().micro_tokens() < tokens,
      "batch.micro_tokens", spec.batch().micro_tokens(), " is less than ", tokens,
      ", the tokens of one example with ", name, ".negatives = ", task.negatives(),
      ": expected room for it");
}

void CheckOneTask(const TaskSpec& spec, SpecErrors* errors) {
  switch (spec.task_case()) {
    case TaskSpec::kMaskedLm: CheckMaskedLm(spec, errors); return CheckReplacedTokens(spec, errors);
    case TaskSpec::kSequenceClassification: return CheckClassification(spec, errors);
    case TaskSpec::kTokenTagging: return CheckTagging(spec, errors);
    case TaskSpec::kSequenceToSequence: return CheckSequenceToSequence(spec, errors);
    case TaskSpec::kSentenceEmbedding: return CheckSentenceEmbedding(spec, errors);
    default: return;
  }
}

}  // namespace

std::optional<std::pair<std::string, float>> ParseLabelWeight(const std::string& text) {
  const size_t equals = text.rfind('=');
  float weight = 0;
  if (equals == std::string::npos || equals == 0 ||
      !ParseDecimal(text.substr(equals + 1), &weight) || !(weight >= 0 && weight <= 1e6))
    return std::nullopt;
  return std::pair(text.substr(0, equals), weight);
}

std::optional<std::pair<std::string, std::string>> ParseLabelMap(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size() ||
      text.find('=', equals + 1) != std::string::npos)
    return std::nullopt;
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

void CheckTask(const TaskSpec& spec, SpecErrors* errors) {
  const auto* const oneof = TaskSpec::descriptor()->FindOneofByName("task");
  const auto* const chosen = spec.GetReflection()->GetOneofFieldDescriptor(spec, oneof);
  if (chosen == nullptr) {
    std::vector<std::string> tasks;
    for (int i = 0; i < oneof->field_count(); ++i) tasks.push_back(oneof->field(i)->name() + " {}");
    return errors->AddIf(true, "task", "is not set: expected one of ", absl::StrJoin(tasks, ", "));
  }
  CheckOneTask(spec, errors);
  errors->AddIf(!spec.has_sentence_embedding() && !spec.train().negative_field().empty(),
      "train.negative_field", "is only for sentence_embedding");
  errors->AddIf(
      spec.has_question_answering() && LearnsVocabulary(spec) && spec.model().has_encoder(),
      "model.tokenizer",
      "is not set: expected the folder that `cloze vocab` wrote, or a vocab.txt "
      "(question_answering learns none)");
  errors->AddIf(!spec.model().decoder_from().empty() &&
                    (!spec.has_sequence_to_sequence() || spec.model().start_from().empty()),
      "model.decoder_from",
      "is only for sequence_to_sequence with model.start_from, the folder of the encoder");
  const google::protobuf::Message& task = spec.GetReflection()->GetMessage(spec, chosen);
  const int64_t tokens =
      task.GetReflection()->GetInt32(task, task.GetDescriptor()->FindFieldByName("max_tokens"));
  const std::string field = chosen->name() + ".max_tokens";
  const int64_t micro = spec.batch().micro_tokens(),
                positions = spec.model().encoder().max_positions();
  errors->AddIf(spec.batch().has_micro_tokens() && micro < tokens, "batch.micro_tokens", micro,
      " is less than ", field, " = ", tokens, ": expected room for one sequence");
  errors->AddIf(
      spec.model().start_from().empty() && spec.model().has_encoder() && tokens > positions, field,
      tokens, " is more than model.encoder.max_positions = ", positions);
}

}  // namespace cloze
