// What a spec must fulfil: ranges out of the (limits) of each field, and what fields demand of each
// other.
#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_join.h"
#include "core/base/number.h"
#include "core/base/utf8.h"
#include "proto/options.pb.h"
#include "proto/spec.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

constexpr size_t kMaxErrors = 50;

// Collects all errors, so that a user mends them in one go.
class Verifier {
 public:
  explicit Verifier(const LoadedSpec& loaded) : loaded_(loaded), spec_(loaded.spec) {}

  absl::Status Run(bool ranges_alone) {
    CheckFields(spec_, "");
    if (!ranges_alone) {
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
  template <typename T>
  void CheckRange(T value, const FieldDescriptor* field, const std::string& path);
  void CheckTask();
  void CheckModel();
  void CheckEncoder(const EncoderSpec& encoder);
  void CheckLabels(
      const pb::RepeatedPtrField<std::string>& labels, const std::string& task, int least = 2);
  void CheckClassification(const SequenceClassificationSpec& task);
  void CheckPairs(const SequenceClassificationSpec& task);
  void CheckTagging(const TokenTaggingSpec& task);
  // Weights of labels and smoothing; `never`: why this task cannot have them, or "".
  template <typename Task>
  void CheckWeights(const Task& task, const std::string& name, const std::string& never);
  void CheckData();
  void CheckRun();
  void CheckTargets();
  int64_t MaxTokens() const;
  std::string MaxTokensField() const;

  const LoadedSpec& loaded_;
  const TaskSpec& spec_;
  std::vector<std::string> errors_;
};

// Bounds are compared in the field's own type: 0.1 as a float is more than 0.1 as a double.
template <typename T>
void Verifier::CheckRange(T value, const FieldDescriptor* field, const std::string& path) {
  const Limits& limits = field->options().GetExtension(cloze::limits);
  const std::string unit = limits.has_unit() ? absl::StrCat(" (", limits.unit(), ")") : "";
  const bool finite = std::isfinite(static_cast<double>(value));
  const bool low = limits.has_min() && value < static_cast<T>(limits.min());
  const bool high = limits.has_max() && value > static_cast<T>(limits.max());
  if (finite && !low && !high) return;
  const std::string range =
      limits.has_min() && limits.has_max()
          ? absl::StrCat(Shortest(limits.min()), " to ", Shortest(limits.max()))
          : std::string("a finite number");
  Add(path, absl::StrCat(Shortest(value), finite ? " is out of range; " : " is not finite; ", range,
                unit, " is allowed"));
}

void Verifier::CheckFields(const pb::Message& message, const std::string& prefix) {
  const pb::Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  const auto check_string = [this](const std::string& value, const std::string& path) {
    if (value.find('\0') != std::string::npos) Add(path, "contains a NUL character");
  };
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        const std::string item = absl::StrCat(path, "[", i, "]");
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
          CheckRange(reflection->GetRepeatedFloat(message, field, i), field, item);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          check_string(reflection->GetRepeatedString(message, field, i), item);
        }
      }
      continue;
    }
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        CheckFields(reflection->GetMessage(message, field), path + ".");
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        CheckRange(reflection->GetInt32(message, field), field, path);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        CheckRange(reflection->GetInt64(message, field), field, path);
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        CheckRange(reflection->GetFloat(message, field), field, path);
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        check_string(reflection->GetString(message, field), path);
        break;
      default: break;
    }
  }
}

int64_t Verifier::MaxTokens() const {
  switch (spec_.task_case()) {
    case TaskSpec::kMaskedLm: return spec_.masked_lm().max_tokens();
    case TaskSpec::kSequenceClassification: return spec_.sequence_classification().max_tokens();
    case TaskSpec::kTokenTagging: return spec_.token_tagging().max_tokens();
    case TaskSpec::TASK_NOT_SET: break;
  }
  return 0;
}

std::string Verifier::MaxTokensField() const {
  const pb::OneofDescriptor* task = TaskSpec::descriptor()->FindOneofByName("task");
  return absl::StrCat(
      spec_.GetReflection()->GetOneofFieldDescriptor(spec_, task)->name(), ".max_tokens");
}

void Verifier::CheckLabels(
    const pb::RepeatedPtrField<std::string>& labels, const std::string& task, int least) {
  std::set<std::string> seen;
  for (int i = 0; i < labels.size(); ++i) {
    const std::string path = absl::StrCat(task, ".labels[", i, "]");
    if (labels[i].empty()) Add(path, "is empty");
    if (labels[i].size() > kMaxLabelBytes || !IsUtf8(labels[i]))
      Add(path, absl::StrCat("is not at most ", kMaxLabelBytes, " bytes of UTF-8"));
    if (!seen.insert(labels[i]).second)
      Add(path, absl::StrCat("label \"", Quote(labels[i]), "\" is given twice"));
  }
  if (labels.size() > kMaxLabels)
    Add(absl::StrCat(task, ".labels"), absl::StrCat("more than ", kMaxLabels, " labels"));
  if (labels.size() == 1 && least > 1) {
    Add(absl::StrCat(task, ".labels"),
        "one label is nothing to learn; give at least two, or none to learn them from the data");
  }
}

void Verifier::CheckClassification(const SequenceClassificationSpec& task) {
  const std::string name = "sequence_classification.";
  const bool single = task.kind() == SequenceClassificationSpec::SINGLE_LABEL;
  const bool number = task.kind() == SequenceClassificationSpec::REGRESSION;
  CheckLabels(task.labels(), "sequence_classification", single ? 2 : 1);
  if (number && task.labels_size() > 1)
    Add(name + "labels", "REGRESSION learns one number; one name at most is allowed");
  if (task.kind() == SequenceClassificationSpec::MULTI_LABEL && task.label_separator().empty())
    Add(name + "label_separator", "is empty; MULTI_LABEL needs one");
  CheckWeights(task, name, single ? "" : "is for SINGLE_LABEL only");
  CheckPairs(task);
}

void Verifier::CheckTagging(const TokenTaggingSpec& task) {
  CheckLabels(task.labels(), "token_tagging");
  CheckWeights(task, "token_tagging.",
      task.crf() ? "is not possible with crf, whose loss is that of whole sequences" : "");
}

template <typename Task>
void Verifier::CheckWeights(const Task& task, const std::string& name, const std::string& never) {
  if (!never.empty()) {
    if (task.class_weights_size() > 0) Add(name + "class_weights", never);
    if (task.balance_classes()) Add(name + "balance_classes", never);
    if (task.label_smoothing() > 0) Add(name + "label_smoothing", never);
  }
  if (task.class_weights_size() == 0) return;
  if (task.balance_classes()) Add(name + "balance_classes", "excludes class_weights; give one");
  if (task.class_weights_size() != task.labels_size())
    Add(name + "class_weights",
        absl::StrCat(task.class_weights_size(), " weights for ", task.labels_size(),
            " labels; one for each of `labels` expected, which have to be given"));
  const bool any = std::any_of(task.class_weights().begin(), task.class_weights().end(),
      [](float weight) { return weight > 0; });
  if (!any) Add(name + "class_weights", "all are 0; nothing would be learned");
}

void Verifier::CheckPairs(const SequenceClassificationSpec& task) {
  const bool train = !spec_.train().text_pair_field().empty(),
             validation = !spec_.validation().text_pair_field().empty();
  if (train && task.long_texts() == SequenceClassificationSpec::WINDOWS)
    Add("sequence_classification.long_texts",
        "WINDOWS is for single texts; HEAD, TAIL or HEAD_TAIL can cut pairs");
  if (train != validation && spec_.validation().files_size() > 0)
    Add(train ? "validation.text_pair_field" : "train.text_pair_field",
        absl::StrCat("is not given, but ", train ? "train" : "validation",
            " has one; both read pairs, or none"));
}

void Verifier::CheckTask() {
  switch (spec_.task_case()) {
    case TaskSpec::kMaskedLm: {
      const float sum = spec_.masked_lm().keep_share() + spec_.masked_lm().random_share();
      if (sum > 1)
        Add("masked_lm.random_share",
            absl::StrCat("keep_share + random_share is ", Shortest(sum), ", at most 1 is allowed"));
      if (const int from = spec_.masked_lm().warmup_from_tokens();
          from > MaxTokens() || (from > 0 && from < 8)) {
        Add("masked_lm.warmup_from_tokens",
            absl::StrCat(from, " is not between 8 and max_tokens = ", MaxTokens()));
      }
      break;
    }
    case TaskSpec::kSequenceClassification:
      CheckClassification(spec_.sequence_classification());
      break;
    case TaskSpec::kTokenTagging: CheckTagging(spec_.token_tagging()); break;
    case TaskSpec::TASK_NOT_SET:
      Add("task",
          "no task is given; name one of masked_lm {}, sequence_classification {}, token_tagging "
          "{}");
      return;
  }
  if (spec_.batch().has_micro_tokens() && spec_.batch().micro_tokens() < MaxTokens()) {
    Add("batch.micro_tokens",
        absl::StrCat(spec_.batch().micro_tokens(), " is less than ", MaxTokensField(), " = ",
            MaxTokens(), "; one sequence must fit into a pass"));
  }
}

// Width that a preset fills in; 0 for CUSTOM.
int PresetHidden(EncoderSpec::Preset preset) {
  switch (preset) {
    case EncoderSpec::CUSTOM: return 0;
    case EncoderSpec::TINY: return 128;
    case EncoderSpec::MINI: return 256;
    case EncoderSpec::SMALL:
    case EncoderSpec::MEDIUM: return 512;
    case EncoderSpec::BASE: return 768;
  }
  return 0;
}

void Verifier::CheckEncoder(const EncoderSpec& encoder) {
  if (encoder.preset() == EncoderSpec::CUSTOM) {
    for (const char* name : {"layers", "hidden", "heads", "intermediate"}) {
      const FieldDescriptor* field = EncoderSpec::descriptor()->FindFieldByName(name);
      if (encoder.GetReflection()->HasField(encoder, field)) continue;
      Add(absl::StrCat("model.encoder.", name), "must be given with preset CUSTOM");
    }
  }
  const int hidden = encoder.has_hidden() ? encoder.hidden() : PresetHidden(encoder.preset());
  if (encoder.heads() > 0 && hidden > 0 && hidden % encoder.heads() != 0) {
    Add("model.encoder.heads", absl::StrCat(encoder.heads(), " does not divide hidden = ", hidden));
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
          "is not allowed together with model.start_from, whose folder has the shape; give one");
    return;
  }
  if (!model.has_encoder()) {
    Add("model",
        "has neither start_from nor encoder; give the folder to start from, or encoder {} for a "
        "new one");
    return;
  }
  if (model.tokenizer().empty())
    Add("model.tokenizer",
        "a new encoder needs one: the folder that `cloze vocab` wrote, or a vocab.txt");
  CheckEncoder(model.encoder());
}

void Verifier::CheckData() {
  if (spec_.train().files().empty()) Add("train.files", "no file is given; name at least one");
  for (const auto& [name, data] :
      {std::pair("train", &spec_.train()), std::pair("validation", &spec_.validation())}) {
    for (int i = 0; i < data->files_size(); ++i) {
      if (data->files(i).empty())
        Add(absl::StrCat(name, ".files[", i, "]"), "is empty; a path expected");
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

void Verifier::CheckRun() {
  const ScheduleSpec& schedule = spec_.schedule();
  if (schedule.steps() > 0 && schedule.warmup_steps() > schedule.steps()) {
    Add("schedule.warmup_steps",
        absl::StrCat(schedule.warmup_steps(), " is more than schedule.steps = ", schedule.steps()));
  }
  if (spec_.trainable().has_lora() && spec_.model().start_from().empty()) {
    Add("trainable.lora",
        "is an addition to a model that exists; name its folder in model.start_from");
  }
  CheckTargets();
  if (spec_.validation().files().empty()) {
    const std::string hint = " needs held-out data; name validation.files";
    if (spec_.repeat() > 1)
      Add("repeat", absl::StrCat("choosing the best of ", spec_.repeat(), " runs", hint));
    if (spec_.evaluation().patience() > 0) Add("evaluation.patience", "ending a run early" + hint);
  }
  if (schedule.time_budget_minutes() > 0 && schedule.warmup_steps() > 0) {
    Add("schedule.warmup_steps",
        "does not go with time_budget_minutes, whose steps nobody knows beforehand; give "
        "warmup_share");
  }
  if (spec_.output().directory().empty())
    Add("output.directory", "is not given; name the folder that the run writes");
  if (!spec_.model().start_from().empty() &&
      spec_.output().directory() == spec_.model().start_from()) {
    Add("output.directory",
        "is the folder of model.start_from, which the run would overwrite; name another");
  }
}

}  // namespace

absl::Status VerifySpec(const LoadedSpec& loaded) {
  return Verifier(loaded).Run(/*ranges_alone=*/false);
}
absl::Status VerifyRanges(const LoadedSpec& loaded) {
  return Verifier(loaded).Run(/*ranges_alone=*/true);
}

}  // namespace cloze
