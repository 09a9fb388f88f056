// Verifies specs: ranges from the (limits) of each field, and constraints between fields.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "proto/options.pb.h"
#include "proto/spec.h"

namespace cloze {
namespace {

constexpr char kNeedsValidation[] =
    " needs validation data: expected validation.files or validation.share";

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

constexpr size_t kMaxErrors = 50;

// Collects the errors of a spec.
class Errors {
 public:
  explicit Errors(const LoadedSpec& loaded) : loaded_(loaded) {}

  // Adds an error at `field`, whose text is the concatenation of `message`, if `wrong`.
  template <typename... Parts>
  void AddIf(bool wrong, const std::string& field, const Parts&... message) {
    if (!wrong) return;
    const absl::Status error = SpecError(loaded_, field, absl::StrCat(message...));
    errors_.push_back(std::string(error.message()));
  }

  absl::Status ToStatus() {
    if (errors_.empty()) return absl::OkStatus();
    if (errors_.size() > kMaxErrors) errors_.resize(kMaxErrors), errors_.push_back("and more");
    return Error(Exit::kSpec, absl::StrJoin(errors_, "\n"));
  }

 private:
  const LoadedSpec& loaded_;
  std::vector<std::string> errors_;
};

void CheckValue(const pb::Message& message, const FieldDescriptor* field, int index,
    const std::string& path, Errors* errors) {
  const pb::Reflection* reflection = message.GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const std::string value = index < 0 ? reflection->GetString(message, field)
                                        : reflection->GetRepeatedString(message, field, index);
    errors->AddIf(value.find('\0') != std::string::npos, path, "contains a NUL character");
  }
  const Limits& limits = field->options().GetExtension(cloze::limits);
  if (!limits.has_min() || !limits.has_max()) return;
  // Compare the decimal text with the limits, because 0.1f is more than 0.1.
  std::string text;
  pb::TextFormat::PrintFieldValueToString(message, field, index, &text);
  double value = 0;
  CLOZE_CHECK(absl::SimpleAtod(text, &value));
  errors->AddIf(!(value >= limits.min() && value <= limits.max()), path, text,
      std::isfinite(value) ? " is out of range" : " is not finite", ": expected ",
      Shortest(limits.min()), " to ", Shortest(limits.max()), limits.has_unit() ? " " : "",
      limits.unit());
}

// Checks the range of every field that is set.
void CheckFields(const pb::Message& message, const std::string& prefix, Errors* errors) {
  const pb::Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i)
        CheckValue(message, field, i, absl::StrCat(path, "[", i, "]"), errors);
    } else if (field->message_type() != nullptr) {
      CheckFields(reflection->GetMessage(message, field), path + ".", errors);
    } else {
      CheckValue(message, field, -1, path, errors);
    }
  }
}

template <typename Task>
void CheckLabelWeights(
    const Task& task, const std::string& name, absl::string_view refusal, Errors* errors) {
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

// Checks labels, class weights and label smoothing of the task `name`, which has at least `minimum`
// labels. `refusal`: why it cannot have weights and smoothing, or "".
template <typename Task>
void CheckLabels(const Task& task, const std::string& name, int minimum, absl::string_view refusal,
    Errors* errors) {
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

void CheckMaskedLm(const MaskedLmSpec& task, Errors* errors) {
  const float sum = task.keep_share() + task.random_share();
  errors->AddIf(sum > 1, "masked_lm.random_share", "keep_share + random_share is ", Shortest(sum),
      ": expected at most 1");
  const int from = task.warmup_from_tokens();
  errors->AddIf(from > task.max_tokens() || (from > 0 && from < 8), "masked_lm.warmup_from_tokens",
      from, " is out of range: expected 0, or 8 to max_tokens = ", task.max_tokens());
}

void CheckReplacedTokens(const TaskSpec& spec, Errors* errors) {
  const std::string name = "masked_lm.replaced_tokens";
  const auto architecture = spec.model().encoder().architecture();
  errors->AddIf(spec.model().has_encoder() && architecture != EncoderSpec::ELECTRA &&
                    architecture != EncoderSpec::MODERN,
      "model.encoder.architecture", "expected ELECTRA or MODERN with ", name);
  errors->AddIf(spec.trainable().part_case() != TrainableSpec::PART_NOT_SET, "trainable",
      "cannot be used with ", name, ", which trains both models whole");
  errors->AddIf(!spec.evaluation().pairs().empty(), "evaluation.pairs", "cannot be used with ",
      name, ": expected a masked language model");
  errors->AddIf(spec.masked_lm().causal_share() > 0, "masked_lm.causal_share",
      "cannot be used with ", name, ", whose discriminator reads whole sequences: expected 0");
}

void CheckClassification(
    const TaskSpec& spec, const SequenceClassificationSpec& task, Errors* errors) {
  using Spec = SequenceClassificationSpec;
  const std::string name = "sequence_classification";
  const bool single = task.kind() == Spec::SINGLE_LABEL;
  CheckLabels(task, name, single ? 2 : 1, single ? "" : "is only for SINGLE_LABEL", errors);
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

void CheckSequenceToSequence(const TaskSpec& spec, Errors* errors) {
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

void CheckEncoder(const EncoderSpec& encoder, Errors* errors) {
  const EncoderSpec filled = FillSizes(encoder);
  for (const char* name : {"layers", "hidden", "heads", "intermediate"}) {
    const FieldDescriptor* field = EncoderSpec::descriptor()->FindFieldByName(name);
    const bool missing = !filled.GetReflection()->HasField(filled, field),
               custom = encoder.preset() == EncoderSpec::CUSTOM;
    const std::string path = absl::StrCat("model.encoder.", name);
    errors->AddIf(missing && custom, path, "is not set: expected a value with preset CUSTOM");
    errors->AddIf(missing && !custom, path, "is not set, and hidden = ", filled.hidden(),
        " is not a multiple of 64: expected a divisor of hidden");
  }
  errors->AddIf(filled.heads() > 0 && filled.hidden() % filled.heads() != 0, "model.encoder.heads",
      filled.heads(), " does not divide hidden = ", filled.hidden());
  const bool modern = encoder.architecture() == EncoderSpec::MODERN;
  for (const char* name : FieldsNotOf(encoder.architecture())) {
    const FieldDescriptor* field = EncoderSpec::descriptor()->FindFieldByName(name);
    errors->AddIf(encoder.GetReflection()->HasField(encoder, field),
        absl::StrCat("model.encoder.", name), "is not for architecture ",
        EncoderSpec::Architecture_Name(encoder.architecture()), ": expected none");
  }
  // Specs that older versions wrote have the defaults of these for every architecture.
  const EncoderSpec& usual = EncoderSpec::default_instance();
  for (const auto& [name, set] : {std::pair("window", encoder.window() != usual.window()),
           std::pair("global_every", encoder.global_every() != usual.global_every())}) {
    errors->AddIf(!modern && set, absl::StrCat("model.encoder.", name),
        "is only for architecture MODERN: expected none");
  }
  const int64_t size = filled.hidden() / std::max(filled.heads(), 1);
  errors->AddIf(modern && size % 2 != 0, "model.encoder.heads", filled.heads(), ": heads of ", size,
      " dimensions: expected an even number for rotary positions");
}

void CheckModel(const ModelSpec& model, Errors* errors) {
  const bool existing = !model.start_from().empty();
  errors->AddIf(existing && model.has_encoder(), "model.encoder",
      "cannot be used with model.start_from, whose folder defines the shape: expected one");
  errors->AddIf(!existing && !model.has_encoder(), "model",
      "has neither start_from nor encoder: expected a folder to start from, or encoder {} for a "
      "new model");
  if (existing || !model.has_encoder()) return;
  errors->AddIf(model.tokenizer().empty(), "model.tokenizer",
      "is not set: expected the folder that `cloze vocab` wrote, or a vocab.txt");
  CheckEncoder(model.encoder(), errors);
}

void CheckTask(const TaskSpec& spec, Errors* errors) {
  const pb::OneofDescriptor* oneof = TaskSpec::descriptor()->FindOneofByName("task");
  const FieldDescriptor* chosen = spec.GetReflection()->GetOneofFieldDescriptor(spec, oneof);
  if (chosen == nullptr) {
    std::vector<std::string> tasks;
    for (int i = 0; i < oneof->field_count(); ++i) tasks.push_back(oneof->field(i)->name() + " {}");
    return errors->AddIf(true, "task", "is not set: expected one of ", absl::StrJoin(tasks, ", "));
  }
  if (spec.has_masked_lm()) CheckMaskedLm(spec.masked_lm(), errors);
  if (spec.masked_lm().has_replaced_tokens()) CheckReplacedTokens(spec, errors);
  if (spec.has_sequence_classification())
    CheckClassification(spec, spec.sequence_classification(), errors);
  if (const TokenTaggingSpec& tags = spec.token_tagging(); spec.has_token_tagging()) {
    CheckLabels(tags, "token_tagging", 2,
        tags.crf() ? "cannot be used with crf, whose loss is that of whole sequences" : "", errors);
  }
  if (spec.has_sequence_to_sequence()) CheckSequenceToSequence(spec, errors);
  errors->AddIf(!spec.model().decoder_from().empty() &&
                    (!spec.has_sequence_to_sequence() || spec.model().start_from().empty()),
      "model.decoder_from",
      "is only for sequence_to_sequence with model.start_from, the folder of the encoder");
  const pb::Message& task = spec.GetReflection()->GetMessage(spec, chosen);
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

void CheckTraining(const TaskSpec& spec, Errors* errors) {
  const ScheduleSpec& schedule = spec.schedule();
  errors->AddIf(schedule.steps() > 0 && schedule.warmup_steps() > schedule.steps(),
      "schedule.warmup_steps", schedule.warmup_steps(),
      " is more than schedule.steps = ", schedule.steps());
  errors->AddIf(schedule.time_budget_minutes() > 0 && schedule.warmup_steps() > 0,
      "schedule.warmup_steps",
      "cannot be used with time_budget_minutes, where the number of steps is unknown: expected "
      "warmup_share");
  const bool apart = spec.distributed().local_steps() > 1;
  errors->AddIf(apart && schedule.time_budget_minutes() > 0, "schedule.time_budget_minutes",
      "cannot be used with distributed.local_steps: expected schedule.steps or epochs");
  errors->AddIf(apart && spec.optimizer().ema_decay() > 0, "optimizer.ema_decay",
      "cannot be used with distributed.local_steps, which averages the ranks: expected 0");
  errors->AddIf(spec.trainable().has_lora() && spec.optimizer().muon_rate() > 0,
      "optimizer.muon_rate", "does not apply to the matrices of trainable.lora: expected 0");
  errors->AddIf(spec.trainable().has_lora() && spec.model().start_from().empty(), "trainable.lora",
      "needs an existing model: expected its folder in model.start_from");
  const auto& targets = spec.trainable().lora().targets();
  std::set<int> seen;
  for (int i = 0; i < targets.size(); ++i)
    errors->AddIf(!seen.insert(targets[i]).second, absl::StrCat("trainable.lora.targets[", i, "]"),
        LoraSpec::Target_Name(static_cast<LoraSpec::Target>(targets[i])), " is given twice");
}

void CheckRun(const TaskSpec& spec, Errors* errors) {
  errors->AddIf(
      spec.train().files().empty(), "train.files", "is empty: expected at least one file");
  errors->AddIf(spec.train().share() > 0 && spec.train().leave_out() > 0, "train.share",
      "cannot be used with leave_out or with a validation.share of the same files: expected none");
  for (const auto& [name, data] :
      {std::pair("train", &spec.train()), std::pair("validation", &spec.validation())}) {
    for (int i = 0; i < data->files_size(); ++i)
      errors->AddIf(data->files(i).empty(), absl::StrCat(name, ".files[", i, "]"),
          "is empty: expected a path");
    const std::string& delimiter = data->delimiter();
    errors->AddIf((delimiter.size() > 1 && delimiter != "\\t") ||
                      absl::StrContains("\"\r\n", delimiter.empty() ? "," : delimiter),
        absl::StrCat(name, ".delimiter"), "\"", Quote(delimiter),
        "\": expected one ASCII character that is neither a quote nor a line end");
  }
  const bool validates = !spec.validation().files().empty();
  errors->AddIf(
      !validates && spec.repeat() > 1, "repeat", "the choice of the best run", kNeedsValidation);
  errors->AddIf(!validates && spec.evaluation().patience() > 0, "evaluation.patience",
      "early stopping", kNeedsValidation);
  const bool pairs = !spec.evaluation().pairs().empty();
  errors->AddIf(!validates && pairs, "evaluation.pairs", "an evaluation", kNeedsValidation);
  errors->AddIf(pairs && !spec.has_masked_lm(), "evaluation.pairs",
      "can only be scored with masked_lm: expected none");
  const std::string& directory = spec.output().directory();
  errors->AddIf(directory.empty(), "output.directory", "is not set: expected the folder to write");
  errors->AddIf(!directory.empty() && directory == spec.model().start_from(), "output.directory",
      "is the folder of model.start_from, which the run would overwrite: expected another one");
}

}  // namespace

std::optional<std::pair<std::string, float>> ParseLabelWeight(const std::string& text) {
  const size_t equals = text.rfind('=');
  float weight = 0;
  if (equals == std::string::npos || equals == 0 ||
      !absl::SimpleAtof(text.substr(equals + 1), &weight) || !(weight >= 0 && weight <= 1e6))
    return std::nullopt;
  return std::pair(text.substr(0, equals), weight);
}

absl::Status VerifySpec(const LoadedSpec& loaded) {
  Errors errors(loaded);
  CheckFields(loaded.spec, "", &errors);
  CheckTask(loaded.spec, &errors);
  CheckModel(loaded.spec.model(), &errors);
  CheckRun(loaded.spec, &errors);
  CheckTraining(loaded.spec, &errors);
  return errors.ToStatus();
}

absl::Status VerifyRanges(const LoadedSpec& loaded) {
  Errors errors(loaded);
  CheckFields(loaded.spec, "", &errors);
  return errors.ToStatus();
}

}  // namespace cloze
