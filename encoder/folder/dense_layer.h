// The linear layer of sentence-transformers behind the pooling.
#ifndef CLOZE_ENCODER_FOLDER_DENSE_LAYER_H_
#define CLOZE_ENCODER_FOLDER_DENSE_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"

namespace cloze {

// y = activation(weight x + bias).
struct DenseLayer {
  int64_t inputs = 0, outputs = 0;
  std::vector<float> weight;  // [outputs, inputs]
  std::vector<float> bias;    // [outputs]; empty: 0
  float (*activation)(float) = nullptr;

  // Returns y [outputs] of x [inputs].
  std::vector<float> Forward(absl::Span<const float> x) const;
};

// Reads config.json and model.safetensors of a Dense module's folder. kNoInput and kData for files
// that are missing or broken; kMismatch for settings that Cloze does not have.
absl::StatusOr<DenseLayer> ReadDenseLayer(const std::string& folder);

}  // namespace cloze

#endif  // CLOZE_ENCODER_FOLDER_DENSE_LAYER_H_
