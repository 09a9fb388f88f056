#include "core/tensor/param_store.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/threads.h"

namespace cloze {
namespace {

constexpr int64_t kCacheLine = 16;  // floats

// Returns the offset of `param` and advances *used past it.
int64_t OffsetOf(const Param& param, int64_t* used) {
  const int64_t offset = param.adjacent ? *used : RoundUp(*used, kCacheLine);
  *used = offset + param.size();
  return offset;
}

uint64_t HashName(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash;
}

// Standard normal, redrawn until within `limit` deviations; each draw from its own counter.
float Normal(const Philox& philox, uint64_t stream, int64_t index, float limit) {
  for (uint32_t attempt = 0;; ++attempt) {
    const Philox::Words b = philox(
        stream, static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32) << 16 | attempt);
    for (int pair = 0; pair < 4; pair += 2) {
      const float u = 1 - Philox::Uniform(b[pair]),
                  angle = 2 * std::numbers::pi_v<float> * Philox::Uniform(b[pair + 1]);
      const float radius = std::sqrt(-2 * std::log(u));
      for (const float z : {radius * std::cos(angle), radius * std::sin(angle)}) {
        if (std::fabs(z) <= limit) return z;
      }
    }
  }
}

// Uniform in [-1, 1).
float Symmetric(const Philox& philox, uint64_t stream, int64_t index) {
  const uint32_t low = static_cast<uint32_t>(index), high = static_cast<uint32_t>(index >> 32);
  return 2 * Philox::Uniform(philox(stream, low, high << 16)[0]) - 1;
}

}  // namespace

ParamId ParamStore::AddMatrix(ParamKey key, int64_t rows, int64_t cols, bool adjacent, Init init) {
  for (ParamId id = size() - 1; key.shared; --id) {
    CLOZE_CHECK(id >= 0);
    if (params_[id].name == key.name && params_[id].adapter == key.adapter) return id;
  }
  params_.push_back({std::move(key), rows, cols, /*vector=*/false, /*decay=*/true, adjacent});
  params_.back().init = init;
  return size() - 1;
}

ParamId ParamStore::AddVector(ParamKey key, int64_t size, Init init, bool adjacent) {
  const ParamId id = AddMatrix(std::move(key), 1, size, adjacent, init);
  params_[id].vector = true;
  params_[id].decay = false;
  return id;
}

void ParamStore::LayOut(bool training) {
  values_size_ = grads_size_ = 0;
  for (Param& param : params_) {
    param.trainable &= training;
    param.offset = OffsetOf(param, &values_size_);
    if (param.trainable) param.grad_offset = OffsetOf(param, &grads_size_);
  }
}

void ParamStore::Allocate(bool training) {
  LayOut(training);
  const bool sparse_start = !training && !params_.empty() && params_[0].sparse;
  const int64_t sparse = sparse_start ? params_[0].size() * sizeof(float) : 0;
  values_ = LargeMemory(values_size_ * sizeof(float), sparse);
  grads_ = LargeMemory(grads_size_ * sizeof(float));
  Changed();
}

void InitializeParam(ParamId id, uint64_t seed, float stddev, ParamStore* store) {
  const Param& param = store->param(id);
  float* out = store->value(id).f32();
  if (param.init == Init::kZero || param.init == Init::kOne) {
    std::fill(out, out + param.size(), param.init == Init::kOne ? 1.0f : 0.0f);
  } else {
    const Philox philox(seed, Purpose::kInit);
    const uint64_t stream = HashName(param.name);
    const float bound = 1 / std::sqrt(static_cast<float>(param.cols));
    const float limit = param.init == Init::kNormal ? 2 : std::numeric_limits<float>::infinity();
    ParallelChunks(param.size(), 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        out[i] = param.init == Init::kUniform ? bound * Symmetric(philox, stream, i)
                                              : stddev * Normal(philox, stream, i, limit);
    });
  }
  store->Changed();
}

ParamId ParamStore::Find(const std::string& name, int adapter) const {
  ParamId found = -1;
  for (ParamId id = 0; id < size(); ++id) {
    const Param& param = params_[id];
    if (param.name != name) continue;
    if (param.adapter == adapter) return id;
    if (param.adapter < 0) found = id;
  }
  return found;
}

ParamId ParamStore::Find(Role role, ParamKind kind, int layer) const {
  for (ParamId id = 0; id < size(); ++id) {
    const Param& p = params_[id];
    if (p.role == role && p.kind == kind && p.layer == layer && p.adapter < 0) return id;
  }
  return -1;
}

int64_t FirstGradientFrom(int layer, const ParamStore& store) {
  auto first = static_cast<int64_t>(store.grads().size());
  for (ParamId id = store.size() - 1; id >= 0; --id) {
    const Param& param = store.param(id);
    if (param.trainable && param.layer < layer) break;
    if (param.trainable) first = param.grad_offset;
  }
  return first;
}

Mat ParamStore::grad(ParamId id) const {
  const Param& param = params_[id];
  return param.grad_offset < 0 ? Mat()
                               : View(FloatsOf(grads_) + param.grad_offset, param.rows, param.cols);
}

}  // namespace cloze
