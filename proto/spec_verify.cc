// Verifies specs: ranges from the (limits) of each field, and constraints between fields.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_join.h"
#include "core/base/limits.h"
#include "core/base/number.h"
#include "core/base/utf8.h"
#include "proto/options.pb.h"
#include "proto/spec.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

constexpr size_t kMaxErrors = 50;

// Collects all errors of a spec.
class Verifier {
 public:
  explicit Verifier(const LoadedSpec& loaded) : loaded_(loaded), spec_(loaded.spec) {}

  absl::Status Run(bool ranges_only) {
    CheckFields(spec_, "");
    if (!ranges_only) {
      CheckTask();
      CheckModel();
      CheckData();
      CheckRun();
    }
    if (errors_.empty()) return absl::OkStatus();
    if (errors_.size() > kMaxErrors) errors_.resize(kMaxErrors), errors_.push_back("and more");
    return Error(Exit::kSpec, absl::StrJoin(errors_, "\n"));
  }

 private:
  void Add(const std::string& field, absl::string_view message) {
    errors_.push_back(std::string(SpecError(loaded_, field, message).message()));
  }

  void CheckFields(const pb::Message& message, const std::string& prefix);
  void CheckValue(
      const pb::Message& message, const FieldDescriptor* field, int index, const std::string& path);
  void CheckTask();
  void CheckModel();
  void CheckEncoder(const EncoderSpec& encoder);
  void CheckMaskedLm(const MaskedLmSpec& task);
  void CheckClassification(const SequenceClassificationSpec& task);
  void CheckTagging(const TokenTaggingSpec& task);
  void CheckLabels(
      const pb::RepeatedPtrField<std::string>& labels, const std::string& task, int minimum = 2);
  // Checks class weights and label smoothing. `refusal`: why this task cannot have them, or "".
  template <typename Task>
  void CheckWeights(const Task& task, const std::string& name, const std::string& refusal);
  void CheckPairs(const SequenceClassificationSpec& task);
  void CheckData();
  void CheckRun();
  void CheckSchedule();
  void CheckTargets();
  int64_t MaxTokens() const;
  std::string MaxTokensField() const { return TaskField()->name() + ".max_tokens"; }
  // Returns the field of the task, or null if there is none.
  const FieldDescriptor* TaskField() const {
    return spec_.GetReflection()->GetOneofFieldDescriptor(spec_, TaskOneof());
  }
  static const pb::OneofDescriptor* TaskOneof() {
    return TaskSpec::descriptor()->FindOneofByName("task");
  }

  const LoadedSpec& loaded_;
  const TaskSpec& spec_;
  std::vector<std::string> errors_;
};

// Returns a number of any type as double; `index` is -1 for singular fields.
double NumberOf(const pb::Message& message, const FieldDescriptor* field, int index) {
  const pb::Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return reflection->GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64: return reflection->GetInt64(message, field);
    default:
      return index < 0 ? reflection->GetFloat(message, field)
                       : reflection->GetRepeatedFloat(message, field, index);
  }
}

void Verifier::CheckValue(
    const pb::Message& message, const FieldDescriptor* field, int index, const std::string& path) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    const pb::Reflection* reflection = message.GetReflection();
    const std::string value = index < 0 ? reflection->GetString(message, field)
                                        : reflection->GetRepeatedString(message, field, index);
    if (value.find('\0') != std::string::npos) Add(path, "contains a NUL character");
  }
  const Limits& limits = field->options().GetExtension(cloze::limits);
  if (!limits.has_min() || !limits.has_max()) return;
  // Bounds of a float are rounded to float: 0.1f is more than 0.1.
  const bool single = field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
  const auto bound = [&](double limit) { return single ? static_cast<float>(limit) : limit; };
  const double value = NumberOf(message, field, index);
  if (value >= bound(limits.min()) && value <= bound(limits.max())) return;
  std::string text;
  pb::TextFormat::PrintFieldValueToString(message, field, index, &text);
  Add(path, absl::StrCat(text, std::isfinite(value) ? " is out of range" : " is not finite",
                ": expected ", Shortest(limits.min()), " to ", Shortest(limits.max()),
                limits.has_unit() ? " " : "", limits.unit()));
}

void Verifier::CheckFields(const pb::Message& message, const std::string& prefix) {
  const pb::Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i)
        CheckValue(message, field, i, absl::StrCat(path, "[", i, "]"));
    } else if (field->message_type() != nullptr) {
      CheckFields(reflection->GetMessage(message, field), path + ".");
    } else {
      CheckValue(message, field, -1, path);
    }
  }
}

int64_t Verifier::MaxTokens() const {
  if (TaskField() == nullptr) return 0;
  const pb::Message& task = spec_.GetReflection()->GetMessage(spec_, TaskField());
  return task.GetReflection()->GetInt32(task, task.GetDescriptor()->FindFieldByName("max_tokens"));
}

void Verifier::CheckLabels(
    const pb::RepeatedPtrField<std::string>& labels, const std::string& task, int minimum) {
  std::set<std::string> seen;
  for (int i = 0; i < labels.size(); ++i) {
    const std::string path = absl::StrCat(task, ".labels[", i, "]");
    if (labels[i].empty()) Add(path, "is empty");
    if (labels[i].size() > kMaxLabelBytes || !IsUtf8(labels[i]))
      Add(path, absl::StrCat("expected at most ", kMaxLabelBytes, " bytes of UTF-8"));
    if (!seen.insert(labels[i]).second)
      Add(path, absl::StrCat("label \"", Quote(labels[i]), "\" is given twice"));
  }
  if (labels.size() > kMaxLabels)
    Add(task + ".labels", absl::StrCat("expected at most ", kMaxLabels, " labels"));
  if (labels.size() == 1 && minimum > 1) {
    Add(task + ".labels",
        "only one label: expected at least two, or none to collect them from the data");
  }
}

void Verifier::CheckClassification(const SequenceClassificationSpec& task) {
  const std::string name = "sequence_classification.";
  const bool single = task.kind() == SequenceClassificationSpec::SINGLE_LABEL;
  const bool number = task.kind() == SequenceClassificationSpec::REGRESSION;
  CheckLabels(task.labels(), "sequence_classification", single ? 2 : 1);
  if (number && task.labels_size() > 1)
    Add(name + "labels", "expected at most one name for REGRESSION, which learns one number");
  if (task.kind() == SequenceClassificationSpec::MULTI_LABEL && task.label_separator().empty())
    Add(name + "label_separator", "is empty: expected a separator for MULTI_LABEL");
  CheckWeights(task, name, single ? "" : "is only for SINGLE_LABEL");
  CheckPairs(task);
}

void Verifier::CheckTagging(const TokenTaggingSpec& task) {
  CheckLabels(task.labels(), "token_tagging");
  CheckWeights(task, "token_tagging.",
      task.crf() ? "cannot be used with crf, whose loss is that of whole sequences" : "");
}

template <typename Task>
void Verifier::CheckWeights(const Task& task, const std::string& name, const std::string& refusal) {
  if (!refusal.empty()) {
    if (task.class_weights_size() > 0) Add(name + "class_weights", refusal);
    if (task.balance_classes()) Add(name + "balance_classes", refusal);
    if (task.label_smoothing() > 0) Add(name + "label_smoothing", refusal);
  }
  if (task.class_weights_size() == 0) return;
  if (task.balance_classes())
    Add(name + "balance_classes", "excludes class_weights: expected one of them");
  if (task.class_weights_size() != task.labels_size())
    Add(name + "class_weights",
        absl::StrCat(task.class_weights_size(), " weights for ", task.labels_size(),
            " labels: expected one weight per label, in the order of `labels`, which must be set"));
  const bool any = std::any_of(task.class_weights().begin(), task.class_weights().end(),
      [](float weight) { return weight > 0; });
  if (!any) Add(name + "class_weights", "all are 0: expected at least one positive weight");
}

void Verifier::CheckPairs(const SequenceClassificationSpec& task) {
  const bool train = !spec_.train().text_pair_field().empty(),
             validation = !spec_.validation().text_pair_field().empty();
  if (train && task.long_texts() == SequenceClassificationSpec::WINDOWS)
    Add("sequence_classification.long_texts",
        "WINDOWS is only for single texts: expected HEAD, TAIL or HEAD_TAIL for pairs");
  if (train != validation && spec_.validation().files_size() > 0)
    Add(train ? "validation.text_pair_field" : "train.text_pair_field",
        absl::StrCat("is not set, but ", train ? "train" : "validation",
            ".text_pair_field is: expected pairs in both or in none"));
}

void Verifier::CheckMaskedLm(const MaskedLmSpec& task) {
  if (const float sum = task.keep_share() + task.random_share(); sum > 1) {
    Add("masked_lm.random_share",
        absl::StrCat("keep_share + random_share is ", Shortest(sum), ": expected at most 1"));
  }
  if (const int from = task.warmup_from_tokens();
      from > task.max_tokens() || (from > 0 && from < 8)) {
    Add("masked_lm.warmup_from_tokens",
        absl::StrCat(
            from, " is out of range: expected 0, or 8 to max_tokens = ", task.max_tokens()));
  }
}

void Verifier::CheckTask() {
  if (TaskField() == nullptr) {
    std::vector<std::string> tasks;
    for (int i = 0; i < TaskOneof()->field_count(); ++i)
      tasks.push_back(TaskOneof()->field(i)->name() + " {}");
    return Add("task", absl::StrCat("is not set: expected one of ", absl::StrJoin(tasks, ", ")));
  }
  if (spec_.has_masked_lm()) CheckMaskedLm(spec_.masked_lm());
  if (spec_.has_sequence_classification()) CheckClassification(spec_.sequence_classification());
  if (spec_.has_token_tagging()) CheckTagging(spec_.token_tagging());
  if (spec_.batch().has_micro_tokens() && spec_.batch().micro_tokens() < MaxTokens()) {
    Add("batch.micro_tokens",
        absl::StrCat(spec_.batch().micro_tokens(), " is less than ", MaxTokensField(), " = ",
            MaxTokens(), ": expected room for one sequence"));
  }
}

void Verifier::CheckEncoder(const EncoderSpec& encoder) {
  const EncoderSpec filled = FillSizes(encoder);
  for (const char* name : {"layers", "hidden", "heads", "intermediate"}) {
    const FieldDescriptor* field = EncoderSpec::descriptor()->FindFieldByName(name);
    if (filled.GetReflection()->HasField(filled, field)) continue;
    Add(absl::StrCat("model.encoder.", name),
        encoder.preset() == EncoderSpec::CUSTOM
            ? "is not set: expected a value with preset CUSTOM"
            : absl::StrCat("is not set, and hidden = ", filled.hidden(),
                  " is not a multiple of 64: expected a divisor of hidden"));
  }
  if (filled.heads() > 0 && filled.hidden() % filled.heads() != 0) {
    Add("model.encoder.heads",
        absl::StrCat(filled.heads(), " does not divide hidden = ", filled.hidden()));
  }
  if (MaxTokens() > encoder.max_positions()) {
    Add(MaxTokensField(), absl::StrCat(MaxTokens(), " is more than model.encoder.max_positions = ",
                              encoder.max_positions()));
  }
}

void Verifier::CheckModel() {
  const ModelSpec& model = spec_.model();
  if (!model.start_from().empty()) {
    if (model.has_encoder())
      Add("model.encoder",
          "cannot be used with model.start_from, whose folder defines the shape: expected one");
    return;
  }
  if (!model.has_encoder()) {
    Add("model",
        "has neither start_from nor encoder: expected a folder to start from, or encoder {} for a "
        "new model");
    return;
  }
  if (model.tokenizer().empty())
    Add("model.tokenizer",
        "is not set: expected the folder that `cloze vocab` wrote, or a vocab.txt");
  CheckEncoder(model.encoder());
}

void Verifier::CheckData() {
  if (spec_.train().files().empty()) Add("train.files", "is empty: expected at least one file");
  for (const auto& [name, data] :
      {std::pair("train", &spec_.train()), std::pair("validation", &spec_.validation())}) {
    for (int i = 0; i < data->files_size(); ++i) {
      if (data->files(i).empty())
        Add(absl::StrCat(name, ".files[", i, "]"), "is empty: expected a path");
    }
  }
}

void Verifier::CheckTargets() {
  std::set<int> seen;
  const auto& targets = spec_.trainable().lora().targets();
  for (int i = 0; i < targets.size(); ++i) {
    if (!seen.insert(targets[i]).second) {
      Add(absl::StrCat("trainable.lora.targets[", i, "]"),
          absl::StrCat(
              LoraSpec::Target_Name(static_cast<LoraSpec::Target>(targets[i])), " is given twice"));
    }
  }
}

void Verifier::CheckSchedule() {
  const ScheduleSpec& schedule = spec_.schedule();
  if (schedule.steps() > 0 && schedule.warmup_steps() > schedule.steps()) {
    Add("schedule.warmup_steps",
        absl::StrCat(schedule.warmup_steps(), " is more than schedule.steps = ", schedule.steps()));
  }
  if (schedule.time_budget_minutes() > 0 && schedule.warmup_steps() > 0) {
    Add("schedule.warmup_steps",
        "cannot be used with time_budget_minutes, where the number of steps is unknown: expected "
        "warmup_share");
  }
}

void Verifier::CheckRun() {
  CheckSchedule();
  CheckTargets();
  if (spec_.trainable().has_lora() && spec_.model().start_from().empty())
    Add("trainable.lora", "needs an existing model: expected its folder in model.start_from");
  if (spec_.validation().files().empty()) {
    const std::string needs = " needs validation data: expected validation.files";
    if (spec_.repeat() > 1) Add("repeat", "the choice of the best run" + needs);
    if (spec_.evaluation().patience() > 0) Add("evaluation.patience", "early stopping" + needs);
  }
  if (spec_.output().directory().empty()) {
    Add("output.directory", "is not set: expected the folder to write");
  } else if (spec_.output().directory() == spec_.model().start_from()) {
    Add("output.directory",
        "is the folder of model.start_from, which the run would overwrite: expected another one");
  }
}

}  // namespace

absl::Status VerifySpec(const LoadedSpec& loaded) {
  return Verifier(loaded).Run(/*ranges_only=*/false);
}
absl::Status VerifyRanges(const LoadedSpec& loaded) {
  return Verifier(loaded).Run(/*ranges_only=*/true);
}

}  // namespace cloze
