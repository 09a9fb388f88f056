// Which parameters of a model learn.
#ifndef CLOZE_ENCODER_TRAINABLE_H_
#define CLOZE_ENCODER_TRAINABLE_H_

#include <cstdint>
#include <string>

#include "core/tensor/param_store.h"
#include "encoder/modules/config.h"

namespace cloze {

// True if `spec` lets the parameter learn.
bool IsTrained(const Param& param, const ModelConfig& config, const TrainableSpec& spec);

// kSpec when `spec` asks for what such a model does not have.
absl::Status CheckTrainable(const TrainableSpec& spec, const ModelConfig& config);

// How many numbers a model has, and how many of them learn.
struct ParamCount {
  int64_t all = 0, trained = 0;
};
ParamCount CountParams(const ParamStore& store);

}  // namespace cloze

#endif  // CLOZE_ENCODER_TRAINABLE_H_
