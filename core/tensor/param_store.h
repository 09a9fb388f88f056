// All parameters of a model in one flat f32 buffer, their gradients in another.
#ifndef CLOZE_CORE_TENSOR_PARAM_STORE_H_
#define CLOZE_CORE_TENSOR_PARAM_STORE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/philox.h"
#include "core/tensor/arena.h"

namespace cloze {

using ParamId = int;

// Initial values. kNormal is truncated at two standard deviations, as in Google's BERT;
// kWholeNormal is not, as in Hugging Face; kUniform is in +-1 / sqrt(cols) (Kaiming's for a =
// sqrt(5)).
enum class Init : uint8_t { kNormal, kZero, kOne, kWholeNormal, kUniform };

// The module of a parameter, and what the parameter is in it: weight, bias and so on. The store
// keeps numbers; encoder/modules/roles.h names them.
enum class Role : uint8_t;
enum class ParamKind : uint8_t;

// Identifies a parameter, or a module, whose parameters get their keys from KeyOf().
struct ParamKey {
  std::string name = {};  // as in the model folder
  Role role = {};
  // -1: embeddings, 0 ... layers - 1: blocks, layers: head. Below -1: of a decoder's encoder, whose
  // last block is -2.
  int layer = 0;
  int adapter = -1;  // number of the adapter it belongs to; -1: the model itself
  ParamKind kind = {};
  bool shared = false;  // uses the parameters of an earlier module with the same key
};

// One parameter: a named span of the flat buffers. Names are those of the model folder; they are
// unique among the parameters of the model itself and among those of one adapter.
struct Param : ParamKey {
  int64_t rows = 0, cols = 0;  // a vector is [1, cols]
  bool vector = false;         // one dimension in files
  bool decay = false;          // weight decay applies
  bool adjacent = false;       // no gap before it
  bool trainable = true;       // has a gradient and optimizer state
  bool matmul_only = false;    // only matrix products read it, so ranks may exchange it rounded
  bool int8 = false;           // passes compute its products in int8, see Weight
  bool sparse = false;         // inference reads few of its rows
  int matrices = 1;            // stacked in it: those of query, key and value
  int64_t kernel_width = 1;    // in files the matrix is [rows, cols / kernel_width, kernel_width]
  bool transposed = false;     // in files the matrix is [cols, rows]
  float rate = 1;              // multiplies the learning rate of the run
  Init init = Init::kNormal;
  int64_t offset = 0;        // in values()
  int64_t grad_offset = -1;  // in grads(); -1 when not trainable
  int64_t size() const { return rows * cols; }
  std::vector<int64_t> shape() const {
    if (vector) return {cols};
    if (transposed) return {cols, rows};
    if (kernel_width > 1) return {rows, cols / kernel_width, kernel_width};
    return {rows, cols};
  }
};

// Returns the numbers of `memory`, which may be empty.
inline float* FloatsOf(const LargeMemory& memory) {
  return memory.bytes() > 0 ? memory.as<float>().data() : reinterpret_cast<float*>(NoMemory());
}

// Built in two steps: modules Add() their parameters, then Allocate() lays them out, each at the
// start of a cache line. `adjacent` ones follow the previous parameter without a gap, so that
// query, key and value form one [3H, H] matrix.
class ParamStore {
 public:
  // Return the parameter of this name and adapter that was added before if key.shared.
  ParamId AddMatrix(ParamKey key, int64_t rows, int64_t cols, bool adjacent = false,
      Init init = Init::kNormal);                                                   // decays
  ParamId AddVector(ParamKey key, int64_t size, Init init, bool adjacent = false);  // does not
  // Returns a parameter whose properties, up to `init`, may be changed before Allocate(); `rate`
  // and `int8` also later.
  Param& Edit(ParamId id) { return params_[id]; }

  // Assigns offsets to parameters and, with `training`, to the gradients of trainable ones, without
  // allocating memory.
  void LayOut(bool training);
  // Calls LayOut and allocates the buffers, zeroed.
  void Allocate(bool training);
  // Saves memory if only few values will be read. Call before the first access.
  void ExpectFewValues() { values_.UseSmallPages(); }

  int size() const { return static_cast<int>(params_.size()); }
  const Param& param(ParamId id) const { return params_[id]; }
  // Returns the parameter `name` of an adapter, else that of the model itself, else -1.
  ParamId Find(const std::string& name, int adapter = -1) const;
  // Returns the model's own parameter of this kind in `layer`, or -1.
  ParamId Find(Role role, ParamKind kind, int layer) const;

  Mat value(ParamId id) {
    return View(FloatsOf(values_) + params_[id].offset, params_[id].rows, params_[id].cols);
  }
  ConstMat value(ParamId id) const {
    return View(FloatsOf(values_) + params_[id].offset, params_[id].rows, params_[id].cols);
  }
  // Returns an empty Mat if the parameter is not trainable.
  Mat grad(ParamId id) const;

  absl::Span<float> values() { return {FloatsOf(values_), static_cast<size_t>(values_size_)}; }
  absl::Span<const float> values() const {
    return {FloatsOf(values_), static_cast<size_t>(values_size_)};
  }
  absl::Span<float> grads() const { return {FloatsOf(grads_), static_cast<size_t>(grads_size_)}; }
  // Exchanges the buffer of the gradients with one of the same size.
  void SwapGrads(LargeMemory* other) { std::swap(grads_, *other); }

  // Version of the values, which packed copies compare. Call Changed() after writing values, or
  // TrainableChanged() if no frozen ones were written.
  uint64_t version(ParamId id) const { return params_[id].trainable ? version_ : frozen_version_; }
  void Changed() { frozen_version_ = ++version_; }
  void TrainableChanged() { ++version_; }

 private:
  std::vector<Param> params_;
  LargeMemory values_, grads_;
  int64_t values_size_ = 0, grads_size_ = 0;
  uint64_t version_ = 1, frozen_version_ = 1;
};

// Initializes parameter `id`: from Normal(0, stddev) or another distribution, or with 0 or 1.
// Depends only on seed and name.
void InitializeParam(ParamId id, uint64_t seed, float stddev, ParamStore* store);

// Returns the offset in grads() from which all gradients belong to `layer` or a later layer.
int64_t FirstGradientFrom(int layer, const ParamStore& store);

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_PARAM_STORE_H_
