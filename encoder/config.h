// The description of a new model, from the user's spec.
#ifndef CLOZE_ENCODER_CONFIG_H_
#define CLOZE_ENCODER_CONFIG_H_

#include "encoder/families/families.h"
#include "proto/task.pb.h"

namespace cloze {

// Returns the description of a new encoder, without vocab, head and labels; pad_id is 0. Where
// `hidden` is set and the preset's heads or intermediate are not, they follow from it (heads of 64,
// 4 x hidden). kSpec when `hidden` is not divisible by `heads` or a size of a CUSTOM preset is
// missing.
absl::StatusOr<ModelConfig> ConfigFromSpec(const EncoderSpec& spec);

}  // namespace cloze

#endif  // CLOZE_ENCODER_CONFIG_H_
