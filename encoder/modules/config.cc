#include "encoder/modules/config.h"

#include "absl/strings/str_replace.h"

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

std::string Family::Name(Role role, int layer) const {
  for (const absl::Span<const RoleName> part : names) {
    for (const RoleName& entry : part) {
      if (entry.role == role)
        return absl::StrReplaceAll(entry.name, {{"@", prefix}, {"#", absl::StrCat(layer)}});
    }
  }
  return "";
}

float ModelConfig::head_dropout() const {
  const bool other = family->sequence_dropout_only && head != HeadKind::kSequenceClassification;
  return classifier_dropout < 0 || other ? dropout : classifier_dropout;
}

void ModelConfig::SetPad(int32_t id) {
  pad_id = id;
  if (!family->positions_after_pad) return;
  max_positions += id + 1 - position_offset;
  position_offset = id + 1;
}

ParamKey ModelConfig::Key(Role role, int layer) const {
  const bool head = role == Role::kHeadOutput;
  const bool own = head && !family->transform_always;
  return {own ? TypeOf(this->head).output : family->Name(head ? Role::kPooledOutput : role, layer),
      role, layer};
}

}  // namespace cloze
