#include <cmath>
#include <csignal>
#include <cstring>
#include <unordered_map>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "core/base/hash_map.h"
#include "core/ops/matmul_engine.h"
#include "core/ops/onednn.h"
#include "core/ops/op.h"

namespace cloze {
namespace {

using dnnl::memory;

// Delays signals of this thread while the returned object lives. oneDNN's f32 kernels for AVX512
// keep data where the system writes the frame of a signal handler, which damaged results or the
// heap.
auto WithoutSignals() {
  sigset_t signals, before;
  ::sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    ::sigdelset(&signals, fault);
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  return absl::Cleanup([before] { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); });
}

// oneDNN splits long sums over threads, so the last bits would depend on their number. Therefore
// results are cut into tiles whose sizes depend on the shape alone, and each tile is a product on
// one thread. oneDNN's kernels are 15 % faster (Zen 4) if a tile has all columns of the result, so
// rows are cut unless there are too few.
//
// Its fast kernels also require results without gaps between rows; the others are half as fast in
// bf16 and take 25 ms to generate at first use. So a tile of some columns is computed separately
// and copied.
constexpr int64_t kMinTileCols = 128;
int64_t TileRows(ConstMat dst, int64_t depth) {
  if (dst.rows >= 1024) return 128;
  if (dst.cols * depth > 4 << 20) return 96;  // weights too large to read often
  return dst.rows >= 512 ? 64 : 32;
}
int64_t TileCols(ConstMat dst, int64_t depth) {
  if (dst.rows >= 2 * TileRows(dst, depth)) return dst.cols;
  return dst.cols < 1024 ? kMinTileCols : 2 * kMinTileCols;
}

// Divides [0, n) into the fewest equal tiles of at most `max`. Returns their size, rounded up to a
// multiple of 64 but at most n.
int64_t TileSize(int64_t n, int64_t max) {
  return std::min(n, CeilDiv(n, CeilDiv(n, max) * 64) * 64);
}

// Each tile of dw = dy^T x copies its columns of dy and x, so large square tiles are best; but
// there should be several, each taking a few milliseconds at most. Returns rows and columns.
std::pair<int64_t, int64_t> GradientTile(ConstMat dw, int64_t tokens) {
  const int64_t area =
      std::max<int64_t>(1 << 16, std::min(dw.rows * dw.cols / 8, (int64_t{1} << 29) / tokens));
  const int64_t cols = TileSize(dw.cols, std::max<int64_t>(256, 1.5 * std::sqrt(area)));
  return {TileSize(dw.rows, std::max<int64_t>(128, area / cols)), cols};
}

// Properties that determine a primitive: kind of product, sizes, strides, types, bias, accumulate.
enum class Kind { kForward, kBackwardData, kBackwardWeight };
using Key = std::tuple<Kind, int64_t, int64_t, int64_t, int64_t, int64_t, int, int, bool, bool>;

struct Cached {
  dnnl::matmul primitive;
  Operands operands;
  WeightLayout layout;  // of the weights
  int64_t scratch;      // bytes
};

// A tile of a product, for one thread.
struct Tile {
  const Cached* cached;
  ConstMat src, weights;  // only the data of packed weights
  const float* bias;
  Mat dst;
  bool accumulate, separate;  // separate: computed without gaps between rows, then copied to dst
};

// Vectors with gaps between their elements are copied, see Describe.
bool HasGaps(ConstMat m) { return m.cols == 1 && m.rows > 1 && m.stride != 1; }
ConstMat WithoutGaps(ConstMat m) {
  if (HasGaps(m)) m.stride = 1;
  return m;
}

int64_t CopyBytes(ConstMat m) { return RoundUp(m.rows * m.cols * SizeOf(m.type), 64); }
void CopyRows(ConstMat from, Mat to) {
  for (int64_t r = 0; r < from.rows; ++r)
    std::memcpy(Rows(to, r, 1).data, Rows(from, r, 1).data, from.cols * SizeOf(from.type));
}

struct Worker {
  dnnl::stream stream;
  LargeMemory scratch = {}, copies = {};  // of a primitive; of a tile's operands
  // Of each primitive. Only their addresses change between tiles, because creating them takes
  // longer than a small product.
  HashMap<const Cached*, std::unordered_map<int, memory>> arguments = {};
};

class OneDnnEngine : public MatmulEngine {
 public:
  explicit OneDnnEngine(PackedWeights* packed) : packed_(packed) {
    dnnl::set_primitive_cache_capacity(4096);
    dnnl::set_jit_profiling_flags(0);  // otherwise it searches for a profiler's library
  }

  bool Takes(const Product& p) const override { return TakesGradient(p.src.type); }
  bool TakesGradient(DType type) const override { return type != DType::kS8; }
  // A weight is packed whole and, for batches with few rows, in tiles of columns.
  int64_t PackedBytes(const Product& p) const override {
    return MatmulEngine::PackedBytes(p) * (p.dst.cols <= kMinTileCols ? 1 : 2);
  }

  void AddProduct(const Product& p) override {
    ForTiles(p.dst.cols, TileCols(p.dst, p.src.cols), [&](int64_t col, int64_t cols) {
      ForTiles(p.dst.rows, TileRows(p.dst, p.src.cols),
          [&](int64_t row, int64_t rows) { AddTile(p.Tile(row, rows, col, cols), col); });
    });
  }

  void AddGradient(ConstMat dy, ConstMat x, Mat dw) override {
    const auto [height, width] = GradientTile(dw, x.rows);
    ForTiles(dw.rows, height, [&, width = width](int64_t row, int64_t rows) {
      ForTiles(dw.cols, width, [&](int64_t col, int64_t cols) {
        const ConstMat left = Columns(dy, row, rows), right = Columns(x, col, cols);
        const Mat out = Columns(Rows(dw, row, rows), col, cols);
        const ConstMat a = WithoutGaps(left), b = WithoutGaps(right), c = WithoutGaps(out);
        const Key key = {Kind::kBackwardWeight, x.rows, rows, cols, a.stride, b.stride, int(x.type),
            int(c.stride), false, true};
        const Cached& cached = Primitive(key, [&]() -> Operands {
          return {DescribeTransposed(a), Describe(b), {}, Describe(c), true};
        });
        tiles_.push_back({&cached, left, right, nullptr, out, true, HasGaps(out)});
      });
    });
  }

  void Run() override {
    if (tiles_.empty()) return;
    SetLibraryThreads(1);
    ReserveWorkers();
    if (!reorders_.empty()) RunReorders();
    ParallelFor(tiles_.size(), [&](int64_t i) { Execute(tiles_[i], workers_[ThreadIndex()]); });
    tiles_.clear();
  }

 private:
  const Cached& Primitive(const Key& key, absl::FunctionRef<Operands()> make) {
    if (const auto it = primitives_.find(key); it != primitives_.end()) return it->second;
    SetLibraryThreads(1);
    Operands operands = make();
    const auto pd = MakePrimitive(engine_, operands);
    operands.weights = pd.weights_desc();
    WeightLayout layout = BlocksOf(operands.weights);
    if (layout.blocks.depth == 0) {
      layout.library = absl::c_find(layouts_, operands.weights) - layouts_.begin();
      if (layout.library == std::ssize(layouts_)) layouts_.push_back(operands.weights);
    }
    const int64_t scratch = pd.scratchpad_desc().get_size();
    return primitives_[key] = {dnnl::matmul(pd), operands, layout, scratch};
  }

  // Queues one tile of a product; `col` is the tile's first column of the weight.
  void AddTile(const Product& p, int64_t col) {
    const auto& [src, w, transposed, bias, dst, accumulate] = p;
    const bool separate = HasGaps(dst) || (dst.stride != dst.cols && !accumulate);
    const int64_t stride = separate ? dst.cols : dst.stride;
    const ConstMat dense = WithoutGaps(src);
    const Key key = {transposed ? Kind::kForward : Kind::kBackwardData, src.rows, src.cols,
        dst.cols, dense.stride, stride, int(src.type), int(dst.type), bias != nullptr, accumulate};
    const Cached& cached = Primitive(key, [&]() -> Operands {
      Operands o = {Describe(dense), {}, {}, {}, p.accumulate};
      o.weights = {{p.src.cols, p.dst.cols}, TypeOf(p.src.type), memory::format_tag::any};
      o.dst = Describe(p.dst.rows, p.dst.cols, p.dst.type, stride, 1);
      if (p.bias != nullptr) o.bias = Describe(1, p.dst.cols, DType::kF32, p.dst.cols, 1);
      return o;
    });
    const void* weights = packed_->Get(
        w, transposed, col, cached.layout, [&](void* to) { AddReorder(p, cached, to); });
    tiles_.push_back({&cached, src, {.data = weights}, bias, dst, accumulate, separate});
  }

  // Queues the weight for copying to a layout of oneDNN's own, in parts for all threads.
  void AddReorder(const Product& p, const Cached& cached, void* to) {
    const memory::desc plain = p.transposed ? DescribeTransposed(p.w.w) : Describe(p.w.w);
    ForTiles(cached.layout.depth, 2048, [&](int64_t k, int64_t depth) {
      // 384 is a multiple of every block width.
      ForTiles(cached.layout.cols, 384, [&](int64_t n, int64_t cols) {
        const auto part = [&](const memory::desc& whole, const void* data) {
          return memory(
              whole.submemory_desc({depth, cols}, {k, n}), engine_, const_cast<void*>(data));
        };
        reorders_.emplace_back(part(plain, p.w.w.data), part(cached.operands.weights, to));
      });
    });
  }

  void RunReorders() {
    const Op op("pack weights", [&] {
      OpCost cost;
      for (const auto& [from, to] : reorders_)
        cost.bytes += from.get_desc().get_size() + to.get_desc().get_size();
      return cost;
    });
    ParallelFor(reorders_.size(), [&](int64_t i) {
      auto& [from, to] = reorders_[i];
      const auto guard = WithoutSignals();
      dnnl::reorder(from, to).execute(workers_[ThreadIndex()].stream, from, to);
      workers_[ThreadIndex()].stream.wait();
    });
    reorders_.clear();
  }

  void ReserveWorkers() {
    int64_t scratch = 0, copies = 0;
    for (const Tile& tile : tiles_) {
      scratch = std::max(scratch, tile.cached->scratch);
      copies = std::max(copies, (tile.separate ? CopyBytes(tile.dst) : 0) +
                                    (HasGaps(tile.src) ? CopyBytes(tile.src) : 0) +
                                    (HasGaps(tile.weights) ? CopyBytes(tile.weights) : 0));
    }
    while (workers_.size() < static_cast<size_t>(Threads()))
      workers_.push_back({dnnl::stream(engine_)});
    for (Worker& w : workers_) {
      Grow(scratch, w.scratch);
      Grow(copies, w.copies);
    }
  }

  std::unordered_map<int, memory>& ArgumentsOf(const Cached& c, Worker& worker) {
    std::unordered_map<int, memory>& args = worker.arguments[&c];
    if (!args.empty()) return args;
    const auto add = [&](int name, const memory::desc& desc) {
      args.emplace(name, memory(desc, engine_, nullptr));
    };
    add(DNNL_ARG_SRC, c.operands.src);
    add(DNNL_ARG_WEIGHTS, c.operands.weights);
    add(DNNL_ARG_DST, c.operands.dst);
    if (c.operands.bias) add(DNNL_ARG_BIAS, *c.operands.bias);
    if (c.scratch > 0)
      add(DNNL_ARG_SCRATCHPAD, memory::desc({c.scratch}, memory::data_type::u8, memory::dims{1}));
    return args;
  }

  void Execute(const Tile& tile, Worker& worker) {
    std::unordered_map<int, memory>& args = ArgumentsOf(*tile.cached, worker);
    const auto set = [&](int name, const void* data) {
      args.at(name).set_data_handle(const_cast<void*>(data));
    };
    char* copies = worker.copies.get();
    const auto copy = [&](ConstMat m, bool read) {
      const Mat to = {std::exchange(copies, copies + CopyBytes(m)), m.rows, m.cols, m.cols, m.type};
      if (read) CopyRows(m, to);
      return to;
    };
    const auto gapless = [&](ConstMat m) { return HasGaps(m) ? copy(m, true).data : m.data; };
    const Mat dst = tile.separate ? copy(tile.dst, tile.accumulate) : tile.dst;
    set(DNNL_ARG_SRC, gapless(tile.src));
    set(DNNL_ARG_WEIGHTS, gapless(tile.weights));
    set(DNNL_ARG_DST, dst.data);
    if (tile.bias != nullptr) set(DNNL_ARG_BIAS, tile.bias);
    if (tile.cached->scratch > 0) set(DNNL_ARG_SCRATCHPAD, worker.scratch.get());
    {
      const auto guard = WithoutSignals();
      tile.cached->primitive.execute(worker.stream, args);
      worker.stream.wait();
    }
    if (tile.separate) CopyRows(dst, tile.dst);
  }

  PackedWeights* packed_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  std::map<Key, Cached> primitives_;
  std::vector<memory::desc> layouts_;  // that WeightLayout::library numbers
  std::vector<Worker> workers_;        // one per thread
  std::vector<Tile> tiles_;
  std::vector<std::pair<memory, memory>> reorders_;  // parts of weights: from, to
};

}  // namespace

std::unique_ptr<MatmulEngine> MakeOneDnnEngine(PackedWeights* packed) {
  return std::make_unique<OneDnnEngine>(packed);
}

}  // namespace cloze
