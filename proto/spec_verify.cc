// Verifies specs: ranges from the (limits) of each field, and constraints between fields. Those of
// a task are in spec_verify_tasks.cc.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "proto/options.pb.h"
#include "proto/spec_errors.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

void CheckValue(const pb::Message& message, const FieldDescriptor* field, int index,
    const std::string& path, SpecErrors* errors) {
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
void CheckFields(const pb::Message& message, const std::string& prefix, SpecErrors* errors) {
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

void CheckEncoder(const EncoderSpec& encoder, SpecErrors* errors) {
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
  std::vector<const FieldDescriptor*> fields;
  encoder.GetReflection()->ListFields(encoder, &fields);
  for (const FieldDescriptor* field : fields) {
    const auto& without = field->options().GetExtension(by_architecture).without();
    errors->AddIf(absl::c_linear_search(without, encoder.architecture()),
        absl::StrCat("model.encoder.", field->name()), "is not for architecture ",
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

void CheckModel(const ModelSpec& model, SpecErrors* errors) {
  const bool existing = !model.start_from().empty();
  errors->AddIf(existing && model.has_encoder(), "model.encoder",
      "cannot be used with model.start_from, whose folder defines the shape: give only one of the "
      "two (the setting model.encoder= removes it)");
  errors->AddIf(!existing && !model.has_encoder(), "model",
      "has neither start_from nor encoder: expected a folder to start from, or encoder {} for a "
      "new model");
  if (existing || !model.has_encoder()) return;
  CheckEncoder(model.encoder(), errors);
}

// Checks what does not depend on other fields.
void CheckValues(const TaskSpec& spec, SpecErrors* errors) {
  CheckFields(spec, "", errors);
  for (const auto& [name, data] :
      {std::pair("train", &spec.train()), std::pair("validation", &spec.validation())}) {
    const std::string& delimiter = data->delimiter();
    errors->AddIf((delimiter.size() > 1 && delimiter != "\\t") ||
                      !absl::c_all_of(delimiter, absl::ascii_isascii) ||
                      absl::StrContains("\"\r\n", delimiter.empty() ? "," : delimiter),
        absl::StrCat(name, ".delimiter"), "\"", Quote(delimiter),
        "\": expected one ASCII character that is neither a quote nor a line end");
  }
}

void CheckTraining(const TaskSpec& spec, SpecErrors* errors) {
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

void CheckRun(const TaskSpec& spec, SpecErrors* errors) {
  errors->AddIf(
      spec.train().files().empty(), "train.files", "is empty: expected at least one file");
  errors->AddIf(spec.train().share() > 0 && spec.train().leave_out() > 0, "train.share",
      "cannot be used with leave_out or with a validation.share of the same files: expected none");
  for (const auto& [name, data] :
      {std::pair("train", &spec.train()), std::pair("validation", &spec.validation())}) {
    for (int i = 0; i < data->files_size(); ++i)
      errors->AddIf(data->files(i).empty(), absl::StrCat(name, ".files[", i, "]"),
          "is empty: expected a path");
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

absl::Status VerifySpec(const LoadedSpec& loaded) {
  SpecErrors errors(loaded);
  CheckValues(loaded.spec, &errors);
  CheckTask(loaded.spec, &errors);
  CheckModel(loaded.spec.model(), &errors);
  CheckRun(loaded.spec, &errors);
  CheckTraining(loaded.spec, &errors);
  return errors.ToStatus();
}

absl::Status VerifyValues(const LoadedSpec& loaded) {
  SpecErrors errors(loaded);
  CheckValues(loaded.spec, &errors);
  return errors.ToStatus();
}

}  // namespace cloze
