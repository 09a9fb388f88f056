// An architecture with a head: what the modules of a model compute.
#ifndef CLOZE_ENCODER_MODULES_MODEL_SHAPE_H_
#define CLOZE_ENCODER_MODULES_MODEL_SHAPE_H_

#include <optional>
#include <string>
#include <vector>

#include "encoder/modules/architecture.h"

namespace cloze {

enum class HeadKind : uint8_t {
  kNone,
  kMaskedLm,
  kSequenceClassification,
  kTokenTagging,
  kQuestionAnswering,
  kReplacedTokens,     // ELECTRA's discriminator
  kCausalLm,           // the next token, of decoders
  kSequenceToSequence  // the next token, of decoders with an encoder
};

struct HeadType {
  HeadKind kind;
  const char* class_suffix;    // of the class in transformers, after the family's name
  const char* peft_task = "";  // task_type of adapters; may be empty
  // At most one is set. `tied`: a logit per word of the vocabulary, with the word embeddings as
  // output matrix. `labelled`: a logit per label, after dropout. `outputs`: this many logits.
  bool tied = false, labelled = false;
  int outputs = 0;
  bool per_text = false;    // one row of logits for each text; otherwise one for each target
  bool pooler = false;      // the class in transformers has a dense layer before the output layer
  const char* output = "";  // module name of the output layer without pooler; empty if tied
};

// All types, in the order of HeadKind.
inline constexpr HeadType kHeadTypes[] = {
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

inline const HeadType& TypeOf(HeadKind kind) { return kHeadTypes[static_cast<int>(kind)]; }

// The bias of tied heads; kFixed: a row that is not trained.
enum class OutputBias : uint8_t { kNone, kTrained, kFixed };

// The input of a head with one row per text: the hidden state of the first token, or the mean or
// the maximum over all tokens, in the order of Pooling.Kind.
enum class Pool : uint8_t { kClass, kMean, kMax };

// How the heads of an architecture compute.
struct HeadTraits {
  bool transform = true;          // tied heads begin with norm(act(dense(x))), the transform
  bool transform_always = false;  // all heads begin with it
  std::optional<ActivationKind> transform_activation = {};  // null: the architecture's
  ActivationKind pooler_activation = ActivationKind::kTanh;
  bool dropout_before_pooler = false;
  bool sequence_dropout_only = false;  // only sequence classifiers use classifier_dropout
  OutputBias output_bias = OutputBias::kTrained;
  bool classifiers_pool_mean = false;  // also those of transformers, if config.json says so
};

struct ModelShape : Architecture, HeadTraits {
  HeadKind head = HeadKind::kNone;
  bool pooler = false;  // the head has a dense layer before its output layer
  bool crf = false;     // the head has a CRF over the labels
  bool untied = false;  // a `tied` head has an output matrix of its own, not the word embeddings
  Pool pooling = Pool::kClass;
  float classifier_dropout = -1;         // < 0: same as `dropout`
  std::vector<std::string> labels = {};  // by id; of a regression, the name of the number

  int64_t logits() const;      // of a row of the head; 0 without a head
  float head_dropout() const;  // before the output layer
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_MODEL_SHAPE_H_
