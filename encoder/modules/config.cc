#include "encoder/modules/config.h"

#include "absl/algorithm/container.h"
#include "core/ops/matmul.h"

#include "absl/strings/str_replace.h"

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

std::string Family::Fill(const char* name, int layer, int inner) const {
  return half + absl::StrReplaceAll(
                    name, {{"@", prefix}, {"#", absl::StrCat(layer)}, {"&", absl::StrCat(inner)}});
}

std::string Family::Name(Role role, int layer, int inner) const {
  for (const absl::Span<const RoleName> part : names) {
    for (const RoleName& entry : part) {
      if (entry.role == role) return Fill(entry.name, layer, inner);
    }
  }
  return "";
}

int64_t ModelConfig::logits() const {
  const HeadType& type = TypeOf(head);
  return type.tied ? vocab : type.labelled ? static_cast<int64_t>(labels.size()) : type.outputs;
}

float ModelConfig::head_dropout() const {
  const bool other = family->sequence_dropout_only && !TypeOf(head).per_text;
  return classifier_dropout < 0 || other ? dropout : classifier_dropout;
}

void ModelConfig::SetPad(int32_t id) {
  pad_id = id;
  if (!family->positions_after_pad) return;
  max_positions += id + 1 - position_offset;
  position_offset = id + 1;
}

bool ModelConfig::shares(Role role) const {
  return training.shares_embeddings && role >= Role::kWordEmbeddings &&
         role <= Role::kEmbeddingsNorm;
}

ParamKey ModelConfig::Key(Role role, int layer) const {
  if (is_source) {
    ModelConfig whole = *this;
    whole.is_source = false;
    ParamKey key = whole.Key(role, layer);
    key.layer -= layers + 1;
    key.shared |= role == Role::kWordEmbeddings && family->plain == nullptr;
    return key;
  }
  if (*training.part != '\0') {
    ModelConfig whole = *this;
    whole.training.part = "";
    ParamKey key = whole.Key(role, layer);
    if (shares(role)) {
      key.shared = true;
    } else {
      key.name = training.part + key.name;
    }
    return key;
  }
  const bool head = role == Role::kHeadOutput;
  const bool own = head && !family->transform_always;
  if (own) return {TypeOf(this->head).output, role, layer};
  if (groups == 0 || layer < 0 || layer >= layers)
    return {family->Name(head ? Role::kPooledOutput : role, layer), role, layer};
  const int size = layers / groups, group = layer / size, block = layer % inner;
  return {.name = family->Name(role, group, block),
      .role = role,
      .layer = (group + 1) * size - inner + block,
      .shared = layer % size >= inner};
}

bool IsInt8Layer(const Param& param, const ModelConfig& config) {
  constexpr Role kRoles[] = {Role::kQuery, Role::kKey, Role::kValue, Role::kQueryKeyValue,
      Role::kAttentionOutput, Role::kGate, Role::kIntermediate, Role::kOutput};
  return param.part == Part::kWeight && !param.vector && param.adapter < 0 &&
         param.cols <= kInt8MaxDepth && absl::c_linear_search(kRoles, param.role) &&
         absl::c_none_of(config.unquantized,
             [&](const std::string& module) { return param.name == module + ".weight"; });
}

}  // namespace cloze
