// A model that is written to folders and read again in milliseconds.
#ifndef CLOZE_TESTS_ENCODER_SMALL_CONFIG_H_
#define CLOZE_TESTS_ENCODER_SMALL_CONFIG_H_

#include <string>

#include "encoder/families/families.h"

namespace cloze {

inline ModelConfig SmallConfig(HeadKind head, const std::string& family = "bert") {
  ModelConfig config(*FindFamily(family));
  config.vocab = 40, config.hidden = 8, config.layers = 2, config.heads = 2,
  config.intermediate = 16, config.positions.count = 12;
  config.positions.offset = config.positions.after_pad ? 1 : 0;
  if (family == "modernbert") config.attention.window = 4, config.attention.local = {false, true};
  if (config.embeddings.size > 0) config.embeddings.size = 4;
  config.head = head;
  config.pooler = head == HeadKind::kSequenceClassification;
  if (head == HeadKind::kSequenceClassification || head == HeadKind::kTokenTagging)
    config.labels = {"a", "b", "c"};
  return config;
}

}  // namespace cloze

#endif  // CLOZE_TESTS_ENCODER_SMALL_CONFIG_H_
