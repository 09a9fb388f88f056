// Selects the trainable parameters of a model.
#ifndef CLOZE_ENCODER_TRAINABLE_H_
#define CLOZE_ENCODER_TRAINABLE_H_

#include <cstdint>
#include <string>

#include "core/tensor/param_store.h"
#include "encoder/modules/config.h"
#include "proto/task.pb.h"

namespace cloze {

// True if `spec` makes the parameter trainable.
bool IsTrainable(const Param& param, const ModelConfig& config, const TrainableSpec& spec);

// Returns kSpec if the model lacks parts that `spec` names.
absl::Status CheckTrainable(const TrainableSpec& spec, const ModelConfig& config);

// Numbers of values of a model.
struct ParamCount {
  int64_t all = 0, trained = 0;
};
ParamCount CountParams(const ParamStore& store);

}  // namespace cloze

#endif  // CLOZE_ENCODER_TRAINABLE_H_
