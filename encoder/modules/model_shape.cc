#include "encoder/modules/model_shape.h"

namespace cloze {
namespace {

constexpr HeadType kTypes[] = {
    {.kind = HeadKind::kNone, .class_suffix = "Model", .peft_task = "FEATURE_EXTRACTION"},
    {.kind = HeadKind::kMaskedLm, .class_suffix = "ForMaskedLM", .tied = true},
    {.kind = HeadKind::kSequenceClassification,
        .class_suffix = "ForSequenceClassification",
        .peft_task = "SEQ_CLS",
        .labelled = true,
        .per_text = true,
        .pooler = true,
        .output = "classifier"},
    {.kind = HeadKind::kTokenTagging,
        .class_suffix = "ForTokenClassification",
        .peft_task = "TOKEN_CLS",
        .labelled = true,
        .output = "classifier"},
    {.kind = HeadKind::kQuestionAnswering,
        .class_suffix = "ForQuestionAnswering",
        .peft_task = "QUESTION_ANS",
        .outputs = 2,
        .output = "qa_outputs"},
    {.kind = HeadKind::kReplacedTokens,
        .class_suffix = "ForPreTraining",
        .outputs = 1,
        .pooler = true},
    {.kind = HeadKind::kCausalLm,
        .class_suffix = "LMHeadModel",
        .peft_task = "CAUSAL_LM",
        .tied = true},
    {.kind = HeadKind::kSequenceToSequence,
        .class_suffix = "ForConditionalGeneration",
        .peft_task = "SEQ_2_SEQ_LM",
        .tied = true},
};

}  // namespace

absl::Span<const HeadType> HeadTypes() { return kTypes; }

const HeadType& TypeOf(HeadKind kind) { return kTypes[static_cast<int>(kind)]; }

int64_t ModelShape::logits() const {
  const HeadType& type = TypeOf(head);
  return type.tied ? vocab : type.labelled ? static_cast<int64_t>(labels.size()) : type.outputs;
}

float ModelShape::head_dropout() const {
  const bool other = sequence_dropout_only && !TypeOf(head).per_text;
  return classifier_dropout < 0 || other ? dropout : classifier_dropout;
}

}  // namespace cloze
