// Packed copies of weights. Private to core/ops.
#ifndef CLOZE_CORE_OPS_PACKED_WEIGHTS_H_
#define CLOZE_CORE_OPS_PACKED_WEIGHTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/ops/kernels/matmul.h"
#include "core/ops/matmul.h"
#include "core/tensor/arena.h"

namespace cloze {

// Calls f(begin, size) for the tiles of [0, n).
template <typename F>
void ForTiles(int64_t n, int64_t tile, F f) {
  for (int64_t begin = 0; begin < n; begin += tile) f(begin, std::min(tile, n - begin));
}

// Element type and layout of a product's right operand [depth, cols]; the layout tells the engine.
struct WeightLayout {
  DType type = DType::kF32;
  int64_t depth = 0, cols = 0;
  PackBlocks blocks = {};  // of our kernels; blocks.depth 0: oneDNN's layout `library`, or int8
  int library = -1;
  int64_t bytes = 0;

  bool operator==(const WeightLayout&) const = default;
};

// The packed weights of a Matmul: stale copies are queued and packed by Run().
class PackedWeights {
 public:
  // See Matmul::SharePacked.
  void Share(bool share);
  bool shared() const { return share_; }
  int64_t bytes() const;
  // Frees all copies.
  void Drop() { packed_.clear(), memory_ = Arena(); }

  // Returns the copy in `layout` of `w`, of which a product reads the transpose or not; `w` may be
  // the part of a weight that begins at column `col` of the operand. If the copy is stale, queues
  // packing for Run() or, for a layout without blocks, calls `pack` at once. With `pin`, the copy
  // never becomes stale.
  const void* Get(const Weight& w, bool transposed, int64_t col, const WeightLayout& layout,
      absl::FunctionRef<void(void* to)> pack, bool pin = false);
  // Packs what is queued.
  void Run();

 private:
  // A weight in one layout, and the version of the content that was packed.
  struct Copy {
    WeightLayout layout;
    char* to;
    const void* source = nullptr;
    std::optional<uint64_t> version = {};  // null: pinned
  };
  void Queue(const ConstMat& w, bool transposed, const WeightLayout& layout, char* to);

  // By address of the weight (if shared: first column), direction and type. A key has several
  // copies if shapes of products want different layouts.
  std::map<std::tuple<uintptr_t, bool, DType>, std::vector<Copy>> packed_;
  Arena memory_;  // holds the copies; zeroed, as the padding of blocks must be
  std::vector<std::pair<PackArgs, DType>> queue_;
  bool share_ = false;
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_PACKED_WEIGHTS_H_
