// Settings that a spec changes without effect.
#include "proto/spec.h"

namespace cloze {

std::vector<std::string> FieldsWithoutEffect(const TaskSpec& spec) {
  const TaskSpec& usual = TaskSpec::default_instance();
  std::vector<std::string> warnings;
  const auto add = [&](bool changed, bool used, const char* field, const char* why) {
    if (changed && !used)
      warnings.push_back(absl::StrCat("warning: ", field, " has no effect: ", why));
  };
  const MaskedLmSpec &masked = spec.masked_lm(), &masked_usual = usual.masked_lm();
  const bool spans = masked.unit() == MaskedLmSpec::SPAN;
  add(masked.mean_span() != masked_usual.mean_span(), spans, "masked_lm.mean_span",
      "masked_lm.unit is not SPAN");
  add(masked.longest_span() != masked_usual.longest_span(), spans, "masked_lm.longest_span",
      "masked_lm.unit is not SPAN");
  add(masked.causal_until() != masked_usual.causal_until(), masked.causal_share() > 0,
      "masked_lm.causal_until", "masked_lm.causal_share is 0");
  add(masked.warmup_share() != masked_usual.warmup_share(), masked.warmup_from_tokens() > 0,
      "masked_lm.warmup_share", "masked_lm.warmup_from_tokens is 0");
  using Classification = SequenceClassificationSpec;
  const Classification &classes = spec.sequence_classification(),
                       &classes_usual = usual.sequence_classification();
  const bool several = classes.kind() == Classification::MULTI_LABEL;
  add(classes.threshold() != classes_usual.threshold(), several,
      "sequence_classification.threshold", "it is for MULTI_LABEL");
  add(classes.label_separator() != classes_usual.label_separator(), several,
      "sequence_classification.label_separator", "it is for MULTI_LABEL");
  add(spec.batch().warmup_share() != usual.batch().warmup_share(), spec.batch().warmup_from() < 1,
      "batch.warmup_share", "batch.warmup_from is 1");
  add(spec.schedule().decay_share() != usual.schedule().decay_share(),
      spec.schedule().shape() == ScheduleSpec::TRAPEZOID, "schedule.decay_share",
      "schedule.shape is not TRAPEZOID");
  add(!spec.evaluation().metric().empty(), spec.validation().files_size() > 0, "evaluation.metric",
      "there is no validation data");
  return warnings;
}

}  // namespace cloze
