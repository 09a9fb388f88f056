// The kinds of heads, one row each.
#ifndef CLOZE_ENCODER_MODULES_HEAD_TYPE_H_
#define CLOZE_ENCODER_MODULES_HEAD_TYPE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace cloze {

enum class HeadKind : uint8_t {
  kNone,
  kMaskedLm,
  kSequenceClassification,
  kTokenTagging,
  kQuestionAnswering
};

struct HeadType {
  HeadKind kind;
  const char* class_suffix;  // of the class in transformers, after the family's name
  const char* peft_task;     // task_type of adapters; may be empty
  bool tied;           // logits over the vocabulary, with the word embeddings as output matrix
  bool pooler;         // the class in transformers has a dense layer before the output layer
  const char* output;  // module name of the output layer without pooler; empty if tied
  int outputs;         // logits per row; 0: one per label or word
  bool dropout;        // before the output layer
};

// All rows, in the order of HeadKind.
absl::Span<const HeadType> HeadTypes();
const HeadType& TypeOf(HeadKind kind);

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_HEAD_TYPE_H_
