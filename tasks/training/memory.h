// Memory that a run needs, known before anything is allocated.
#ifndef CLOZE_TASKS_TRAINING_MEMORY_H_
#define CLOZE_TASKS_TRAINING_MEMORY_H_

#include <cstdint>

#include "core/base/status.h"
#include "encoder/config.h"

namespace cloze {

// Bytes of the weights, and of the gradients and AdamW's two moments of those that learn, all f32. Activations come on top, so a run never
// needs less.
int64_t TrainingBytes(const ModelConfig& config, const TrainableSpec& trainable = TrainableSpec());

// kLimit when TrainingBytes is more than `limit_mb` million bytes; 0: than what this machine, or this process's control group, can give.
absl::Status CheckMemory(const ModelConfig& config, int64_t limit_mb, const TrainableSpec& trainable = TrainableSpec());

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_MEMORY_H_
