// What passes need of memory, without running them.
#ifndef CLOZE_ENCODER_FOOTPRINT_H_
#define CLOZE_ENCODER_FOOTPRINT_H_

#include "encoder/model.h"

namespace cloze {

struct PassBytes {
  int64_t kept = 0;  // activations that stand in the arena at the end of the encoder's forward pass
  int64_t peak = 0;  // most of the arena at any moment
};

// Bytes that the model's arena needs for a pass of that shape with the present number of threads:
// what the passes themselves allocate, to the byte where it does not hang on the ids. `model` may
// be laid out only.
PassBytes CountTraining(Model& model, const PassShape& shape, DType compute, bool recompute);
// As evaluation does it: the encoder without gradients, then the head's loss and logits.
PassBytes CountInference(Model& model, const PassShape& shape, DType compute);

// Most bytes that packed weights take in the course of a training run; `shared`: see
// Matmul::SharePacked.
int64_t PackedBytes(Model& model, DType compute, bool shared);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FOOTPRINT_H_
