// The engines behind Matmul. Private to core/ops.
#ifndef CLOZE_CORE_OPS_MATMUL_ENGINE_H_
#define CLOZE_CORE_OPS_MATMUL_ENGINE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
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
  // packing for Run() or, for a layout without blocks, calls `pack`. `pin`: never stale again.
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

// Makes `memory` at least `bytes` long; its content is lost if it grows.
void Grow(int64_t bytes, LargeMemory& memory);

// dst = src w^T (`transposed`) or src w, + bias [cols] f32 or null; with `accumulate` added to dst.
struct Product {
  ConstMat src;
  Weight w;
  bool transposed;
  const float* bias;
  Mat dst;
  bool accumulate;

  // Returns the part with these rows and columns of dst.
  Product Tile(int64_t row, int64_t rows, int64_t col, int64_t cols) const;
};

// Results have the same bits for any number of threads. Not thread-safe.
class MatmulEngine {
 public:
  virtual ~MatmulEngine() = default;
  // True if the engine computes the product, or gradients from activations of `type`, on this CPU.
  virtual bool Takes(const Product& p) const = 0;
  virtual bool TakesGradient(DType type) const = 0;
  // Queues or computes a product.
  virtual void AddProduct(const Product& p) = 0;
  // Queues or computes dw [out, in] f32 += dy^T [out, n] x [n, in].
  virtual void AddGradient(ConstMat dy, ConstMat x, Mat dw) = 0;
  // Computes what is queued.
  virtual void Run() = 0;
  // Return upper bounds of the bytes of packed weights that a product needs, and of the scratch
  // memory of a gradient, which the engine keeps for the largest so far.
  virtual int64_t PackedBytes(const Product& p) const;
  virtual int64_t GradientBytes(int64_t /*tokens*/, int64_t /*out*/, int64_t /*in*/, DType) const {
    return 0;
  }
};

// Returns the engine that uses oneDNN, for all f32 and bf16, in tiles of one thread each.
std::unique_ptr<MatmulEngine> MakeOneDnnEngine(PackedWeights* packed);

// Returns the engine that uses our kernels: for bf16 those of the CPU's matrix unit (AMX), for f32
// those with 256-bit vectors. On these CPUs oneDNN copies operands again for every tile: in bf16
// those of weight gradients, which takes longer than multiplying; in f32 those of all products,
// which takes a third of the time.
std::unique_ptr<MatmulEngine> MakeKernelEngine(PackedWeights* packed);

// Forward products of weights in int8, see Weight.
class Int8Engine : public MatmulEngine {
 public:
  explicit Int8Engine(PackedWeights* packed) : packed_(packed) {}
  bool Takes(const Product& p) const override { return p.w.int8 && p.transposed; }
  bool TakesGradient(DType) const override { return false; }
  void AddProduct(const Product& p) override { Multiply(p, nullptr); }
  void AddGradient(ConstMat, ConstMat, Mat) override { CLOZE_CHECK(false); }
  void Run() override {}
  int64_t PackedBytes(const Product& p) const override;

  // See Matmul::ForwardMlp.
  void Mlp(
      ConstMat x, const WeightAndBias& up, ActivationKind act, const WeightAndBias& down, Mat y);
  // See Matmul::Pin.
  void Pin(const Weight& w, ConstMat values);

 private:
  struct Scratch {
    LargeMemory quantized, between;  // rows: the input of a product, the inner layer of an MLP
  };
  // Computes `p`, or act(p) if `act` is not null.
  void Multiply(const Product& p, const ActivationKind* act);

  PackedWeights* packed_;
  std::vector<Scratch> scratch_;  // one per thread; products of few rows share the first
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_MATMUL_ENGINE_H_
