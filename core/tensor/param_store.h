// All parameters of a model in one flat f32 buffer, their gradients in another.
#ifndef CLOZE_CORE_TENSOR_PARAM_STORE_H_
#define CLOZE_CORE_TENSOR_PARAM_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/large_memory.h"
#include "core/base/philox.h"
#include "core/tensor/mat.h"

namespace cloze {

using ParamId = int;

// How a parameter starts. kNormal is truncated at two deviations, as Google's BERT has it;
// kWholeNormal is not, as Hugging Face has it; kUniform lies between +-1 / sqrt(cols) (Kaiming's
// for a = sqrt(5)).
enum class Init : uint8_t { kNormal, kZero, kOne, kWholeNormal, kUniform };

// One parameter: a named span of the flat buffers. Names are unique inside a store and are those of
// the model folder.
struct Param {
  std::string name;
  int64_t rows = 0, cols = 0;  // a vector is [1, cols]
  bool vector = false;         // one dimension in files
  bool decay = false;          // weight decay applies
  bool adjacent = false;       // no gap before it
  bool trainable = true;       // has a gradient and optimizer state
  float rate = 1;              // times the run's learning rate
  Init init = Init::kNormal;
  int64_t offset = 0;        // in values()
  int64_t grad_offset = -1;  // in grads(); -1 when not trainable
  int64_t size() const { return rows * cols; }
};

// Built in two steps: modules Add() their parameters, then Allocate() lays them out, each on a
// cache line but for `adjacent` ones, which follow the parameter before without a gap: query, key
// and value make one [3H, H] matrix.
class ParamStore {
 public:
  ParamId AddMatrix(std::string name, int64_t rows, int64_t cols, bool adjacent = false,
      Init init = Init::kNormal);  // decays
  ParamId AddVector(
      std::string name, int64_t size, Init init, bool adjacent = false);  // does not decay
  void SetInit(ParamId id, Init init) { params_[id].init = init; }
  // Before Allocate(): no gradient, no optimizer state.
  void Freeze(ParamId id) { params_[id].trainable = false; }
  void SetRate(ParamId id, float rate) { params_[id].rate = rate; }

  // Decides where parameters and, with `training`, the gradients of trainable ones stand, without
  // memory for them.
  void LayOut(bool training);
  // LayOut, and the buffers, zeroed.
  void Allocate(bool training);
  // Draws the start values of parameter `id` as its Init says, from Normal(0, stddev), or sets 0
  // or 1. Depends only on seed and name.
  void Initialize(ParamId id, uint64_t seed, float stddev);

  int size() const { return static_cast<int>(params_.size()); }
  const Param& param(ParamId id) const { return params_[id]; }
  // Id of `name`, or -1.
  ParamId Find(const std::string& name) const;

  Mat value(ParamId id) {
    return View(at(values_) + params_[id].offset, params_[id].rows, params_[id].cols);
  }
  ConstMat value(ParamId id) const {
    return View(static_cast<const float*>(at(values_)) + params_[id].offset, params_[id].rows,
        params_[id].cols);
  }
  // Empty when the parameter is not trainable.
  Mat grad(ParamId id) const;

  absl::Span<float> values() { return {at(values_), static_cast<size_t>(values_size_)}; }
  absl::Span<const float> values() const {
    return {at(values_), static_cast<size_t>(values_size_)};
  }
  absl::Span<float> grads() const { return {at(grads_), static_cast<size_t>(grads_size_)}; }

  // Grows whenever the values have changed; packed copies compare it. Whoever writes values calls
  // Changed() afterwards, or TrainableChanged() when it wrote no frozen ones.
  uint64_t version(ParamId id) const { return params_[id].trainable ? version_ : frozen_version_; }
  void Changed() { frozen_version_ = ++version_; }
  void TrainableChanged() { ++version_; }

 private:
  static float* at(const LargeMemory& memory) {
    return memory.bytes() > 0 ? memory.as<float>().data() : reinterpret_cast<float*>(NoMemory());
  }

  std::vector<Param> params_;
  LargeMemory values_, grads_;
  int64_t values_size_ = 0, grads_size_ = 0;
  uint64_t version_ = 1, frozen_version_ = 1;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_PARAM_STORE_H_
