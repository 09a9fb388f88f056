// Copies of weights in the layouts that matrix products read. Private to core/ops.
#ifndef CLOZE_CORE_OPS_PACKED_WEIGHT_H_
#define CLOZE_CORE_OPS_PACKED_WEIGHT_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/large_memory.h"
#include "core/ops/kernels/pack.h"
#include "core/ops/matmul.h"

namespace cloze {

// Element type and layout of a product's right operand [depth, cols].
struct WeightLayout {
  DType type = DType::kF32;
  int64_t depth = 0, cols = 0;
  // Blocks as in PackArgs; block_depth 0: layout number `library` of oneDNN.
  int64_t block_depth = 0, block_cols = 0, depth_stride = 0, cols_stride = 0;
  int library = -1;
  int64_t bytes = 0;

  bool operator==(const WeightLayout&) const = default;
};

// A weight in one layout, and the version of the content that was packed.
struct PackedWeight {
  explicit PackedWeight(const WeightLayout& layout) : layout(layout), memory(layout.bytes) {}

  WeightLayout layout;
  LargeMemory memory;
  const void* source = nullptr;
  uint64_t version = 0;
};

// The packed weights of a Matmul. Stale copies are queued and packed by Run().
class PackedWeights {
 public:
  // See Matmul::SharePacked.
  void Share(bool share);
  bool shared() const { return share_; }
  int64_t bytes() const;

  // Returns the copy of w^T (`transposed`) or w in `layout`. w may be a part of a weight, from
  // column `col` of the operand on. A stale copy is queued, or passed to `pack` if its layout is
  // oneDNN's.
  const void* Get(const Weight& w, bool transposed, int64_t col, const WeightLayout& layout,
      absl::FunctionRef<void(void* to)> pack);
  // Packs what is queued.
  void Run();

 private:
  void Queue(ConstMat w, bool transposed, const WeightLayout& layout, char* to);

  struct Strip {
    PackArgs args;
    DType type;
  };
  // By address of the weight or, if shared, the first column. There are several copies if shapes of
  // products want different layouts.
  std::map<std::tuple<uintptr_t, bool, DType>, std::vector<PackedWeight>> packed_;
  std::vector<Strip> queue_;
  bool share_ = false;
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_PACKED_WEIGHT_H_
