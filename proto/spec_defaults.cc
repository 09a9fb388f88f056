// Values of fields that a spec does not set, and those that it sets without effect.

#include <google/protobuf/text_format.h>

#include <iterator>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "proto/options.pb.h"
#include "proto/spec.h"
#include "proto/spec_text.h"

namespace cloze {
namespace {

namespace pb = ::google::protobuf;
using pb::FieldDescriptor;

void FillDefaults(pb::Message* message) {
  const pb::Reflection* reflection = message->GetReflection();
  const pb::Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_repeated()) continue;
    const bool present = reflection->HasField(*message, field);
    if (field->containing_oneof() != nullptr && !present) continue;
    if (field->message_type() != nullptr) {
      FillDefaults(reflection->MutableMessage(message, field));
    } else if (!present && DefaultIsValid(field)) {
      CLOZE_CHECK(
          pb::TextFormat::ParseFieldValueFromString(ValueText(*message, field), field, message));
    }
  }
}

// Clears the fields of *effective that `given` does not set and whose defaults are not those of the
// architecture.
void ClearOtherDefaults(
    const pb::Message& given, EncoderSpec::Architecture architecture, pb::Message* effective) {
  const pb::Descriptor* type = given.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const ByArchitecture& rule = field->options().GetExtension(by_architecture);
    const bool other = absl::c_linear_search(rule.without(), architecture) ||
                       absl::c_linear_search(rule.other_default(), architecture);
    if (other && !given.GetReflection()->HasField(given, field))
      effective->GetReflection()->ClearField(effective, field);
  }
}

void AddFields(const pb::Message& message, const std::string& prefix, bool changed,
    std::vector<std::pair<std::string, std::string>>* fields) {
  const pb::Reflection* reflection = message.GetReflection();
  const std::unique_ptr<pb::Message> defaults(message.New());
  std::vector<const FieldDescriptor*> present;
  reflection->ListFields(message, &present);
  for (const FieldDescriptor* field : present) {
    const std::string path = absl::StrCat(prefix, field->name());
    std::vector<std::string> values;
    for (int i = 0; field->is_repeated() && i < reflection->FieldSize(message, field); ++i)
      pb::TextFormat::PrintFieldValueToString(message, field, i, &values.emplace_back());
    if (!field->is_repeated() && field->message_type() != nullptr) {
      AddFields(reflection->GetMessage(message, field), path + ".", changed, fields);
      continue;
    }
    if (!field->is_repeated()) values.push_back(ValueText(message, field));
    if (!changed || field->is_repeated() || values[0] != ValueText(*defaults, field))
      fields->emplace_back(path, absl::StrJoin(values, ", "));
  }
}

}  // namespace

bool DefaultIsValid(const FieldDescriptor* field) {
  const Limits& limits = field->options().GetExtension(cloze::limits);
  return field->has_default_value() || !limits.has_min() || limits.min() <= 0;
}

std::string ValueText(const pb::Message& message, const FieldDescriptor* field) {
  std::string text;
  pb::TextFormat::PrintFieldValueToString(message, field, -1, &text);
  return text;
}

EncoderSpec FillSizes(EncoderSpec encoder) {
  static constexpr struct {
    int layers, hidden;
  } kSizes[] = {{0, 0}, {2, 128}, {4, 256}, {4, 512}, {8, 512}, {12, 768}};  // by Preset
  static_assert(std::size(kSizes) == EncoderSpec::Preset_ARRAYSIZE);
  if (encoder.preset() == EncoderSpec::CUSTOM) return encoder;
  const auto& sizes = kSizes[encoder.preset()];
  if (!encoder.has_layers()) encoder.set_layers(sizes.layers);
  if (!encoder.has_hidden()) encoder.set_hidden(sizes.hidden);
  if (!encoder.has_heads() && encoder.hidden() % 64 == 0) encoder.set_heads(encoder.hidden() / 64);
  if (!encoder.has_intermediate()) {
    const int64_t four = int64_t{4} * encoder.hidden();
    const bool gated = encoder.architecture() == EncoderSpec::MODERN;
    encoder.set_intermediate(gated ? (four * 2 / 3 + 63) / 64 * 64 : four);
  }
  return encoder;
}

TaskSpec EffectiveSpec(const TaskSpec& spec) {
  TaskSpec effective = spec;
  FillDefaults(&effective);
  if (!spec.batch().has_micro_tokens()) effective.mutable_batch()->clear_micro_tokens();
  const OpenSettings open = OpenSettingsOf(spec);
  if (open.batch)
    effective.mutable_batch()->clear_tokens(), effective.mutable_batch()->clear_examples();
  if (open.length)
    effective.mutable_schedule()->clear_steps(), effective.mutable_schedule()->clear_epochs();
  if (open.rate) effective.mutable_optimizer()->clear_learning_rate();
  if (spec.has_masked_lm() && !spec.masked_lm().has_replaced_tokens())
    effective.mutable_masked_lm()->clear_replaced_tokens();
  if (spec.has_sequence_classification() && !spec.sequence_classification().has_pooling())
    effective.mutable_sequence_classification()->clear_pooling();
  if (spec.has_sentence_embedding()) {
    if (!spec.train().has_documents()) effective.mutable_train()->clear_documents();
    if (effective.has_validation() && !spec.validation().has_documents())
      effective.mutable_validation()->clear_documents();
  }
  if (!spec.model().start_from().empty()) {
    if (!spec.model().has_encoder()) effective.mutable_model()->clear_encoder();
    if (!spec.model().has_dropout()) effective.mutable_model()->clear_dropout();
    if (!spec.model().has_attention_dropout()) effective.mutable_model()->clear_attention_dropout();
  } else {
    const auto architecture = spec.model().encoder().architecture();
    ClearOtherDefaults(spec.model(), architecture, effective.mutable_model());
    ClearOtherDefaults(
        spec.model().encoder(), architecture, effective.mutable_model()->mutable_encoder());
  }
  return effective;
}

std::vector<std::pair<std::string, std::string>> FieldsOf(const TaskSpec& spec, bool changed) {
  std::vector<std::pair<std::string, std::string>> fields;
  AddFields(EffectiveSpec(spec), "", changed, &fields);
  return fields;
}

std::vector<std::string> FieldsWithoutEffect(const TaskSpec& spec) {
  const MaskedLmSpec& masked = spec.masked_lm();
  const bool spans = masked.unit() == MaskedLmSpec::SPAN,
             several =
                 spec.sequence_classification().kind() == SequenceClassificationSpec::MULTI_LABEL;
  const struct {
    const char* field;
    bool used;
    const char* why;
  } rules[] = {{"masked_lm.mean_span", spans, "masked_lm.unit is not SPAN"},
      {"masked_lm.longest_span", spans, "masked_lm.unit is not SPAN"},
      {"masked_lm.causal_until", masked.causal_share() > 0, "masked_lm.causal_share is 0"},
      {"masked_lm.warmup_share", masked.warmup_from_tokens() > 0,
          "masked_lm.warmup_from_tokens is 0"},
      {"sequence_classification.threshold", several, "it is for MULTI_LABEL"},
      {"sequence_classification.label_separator", several, "it is for MULTI_LABEL"},
      {"batch.warmup_share", spec.batch().warmup_from() < 1, "batch.warmup_from is 1"},
      {"schedule.decay_share", spec.schedule().shape() == ScheduleSpec::TRAPEZOID,
          "schedule.shape is not TRAPEZOID"},
      {"evaluation.metric", spec.validation().files_size() > 0, "there is no validation data"}};
  const auto changed = FieldsOf(spec, /*changed=*/true);
  std::vector<std::string> warnings;
  for (const auto& [field, used, why] : rules) {
    const auto same = [name = field](const auto& entry) { return entry.first == name; };
    if (!used && absl::c_any_of(changed, same))
      warnings.push_back(absl::StrCat("warning: ", field, " has no effect: ", why));
  }
  return warnings;
}

std::string PrintEffective(const TaskSpec& spec) {
  pb::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  CLOZE_CHECK(printer.PrintToString(EffectiveSpec(spec), &text));
  return absl::StrCat(kSpecHeader, "# proto-message: cloze.TaskSpec\n\n", text);
}

}  // namespace cloze
