// The context of a pass through the modules.
#ifndef CLOZE_ENCODER_MODULES_PASS_H_
#define CLOZE_ENCODER_MODULES_PASS_H_

#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/tensor/arena.h"
#include "core/tensor/param_store.h"
#include "encoder/modules/batch.h"

namespace cloze {

// Modules are const and own no memory: parameters live in the store, activations in the arena.
struct Pass {
  const ParamStore& params;
  Matmul& matmul;
  Arena& arena;
  const Batch& batch;
  uint64_t seed = 0;      // of dropout
  bool training = false;  // dropout on
  DType compute = DType::kF32;
  int adapter = 0;                                 // adapter whose LoRAs are used
  const std::vector<ParamId>* replaced = nullptr;  // [parameters] the adapter's; null: none
  RowCoordinates coordinates = {};  // of the rows to process; empty: all rows of the batch
  bool recompute = false;  // saves only the inputs of blocks; backward runs forward again: less
                           // memory, same bits

  ParamId in_use(ParamId id) const {
    return replaced == nullptr || id >= static_cast<ParamId>(replaced->size()) ? id
                                                                               : (*replaced)[id];
  }
  ConstMat value(ParamId id) const { return params.value(in_use(id)); }
  bool requires_grad(ParamId id) const { return params.param(id).grad_offset >= 0; }
  // Returns `count` adjacent weights [out, in], the first of which is `id`, as one matrix.
  Weight weight(ParamId id, int count = 1) const {
    ConstMat w = value(id);
    return {{w.data, w.rows * count, w.cols, w.stride, w.type}, params.version(in_use(id))};
  }
  Mat weight_grad(ParamId id, int count = 1) const {
    Mat w = params.grad(id);
    return {w.data, w.rows * count, w.cols, w.stride, w.type};
  }
  const float* vector(ParamId id) const { return value(id).f32(); }
  float* vector_grad(ParamId id) const { return static_cast<float*>(params.grad(id).data); }

  // Returns the dropout with probability p at a site, a unique number in the model.
  DropoutSite Site(float p, uint32_t site) const {
    const bool all = coordinates.example == nullptr;
    return {training ? p : 0, seed, site,
        all ? RowCoordinates{batch.row_examples.data(), batch.positions.data()} : coordinates};
  }
  Mat New(int64_t rows, int64_t cols) const { return arena.New(rows, cols, compute); }
};

// Numbers of dropout sites: four per block, and four before the first block for embeddings and
// head. Attention adds the number of the head below bit 12, LoRA that of the linear layer.
enum class DropoutPlace : uint32_t {
  kEmbeddings = 0,
  kHeadInput = 1,
  kHeadOutput = 2,
  kAttention = 4,
  kAttentionOutput = 5,
  kFeedForwardOutput = 6,
  kLora = 7
};
inline uint32_t DropoutSiteId(DropoutPlace place, int block = 0) {
  const uint32_t number = static_cast<uint32_t>(place) + 4 * static_cast<uint32_t>(block);
  return place == DropoutPlace::kAttention ? number : number << 12;
}

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_PASS_H_
