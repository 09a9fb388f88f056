#include "encoder/modules/head_type.h"

namespace cloze {
namespace {

constexpr HeadType kTypes[] = {
    {HeadKind::kNone, "Model", "FEATURE_EXTRACTION", false, false, "", 0, false},
    {HeadKind::kMaskedLm, "ForMaskedLM", "", true, false, "", 0, false},
    {HeadKind::kSequenceClassification, "ForSequenceClassification", "SEQ_CLS", false, true,
        "classifier", 0, true},
    {HeadKind::kTokenTagging, "ForTokenClassification", "TOKEN_CLS", false, false, "classifier", 0,
        true},
    {HeadKind::kQuestionAnswering, "ForQuestionAnswering", "QUESTION_ANS", false, false,
        "qa_outputs", 2, false},
};

}  // namespace

absl::Span<const HeadType> HeadTypes() { return kTypes; }

const HeadType& TypeOf(HeadKind kind) { return kTypes[static_cast<int>(kind)]; }

}  // namespace cloze
