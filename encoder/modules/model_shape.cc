#include "encoder/modules/model_shape.h"

namespace cloze {

int64_t ModelShape::logits() const {
  const HeadType& type = TypeOf(head);
  return type.tied ? vocab : type.labelled ? static_cast<int64_t>(labels.size()) : type.outputs;
}

float ModelShape::head_dropout() const {
  const bool other = sequence_dropout_only && !TypeOf(head).per_text;
  return classifier_dropout < 0 || other ? dropout : classifier_dropout;
}

}  // namespace cloze
