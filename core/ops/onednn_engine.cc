#include "core/ops/onednn_engine.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/number.h"
#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/onednn.h"
#include "core/ops/tiles.h"

namespace cloze {
namespace {

using dnnl::memory;

// Properties that determine a primitive: kind of product, sizes, strides, types, bias, accumulate.
enum class Kind { kForward, kBackwardData, kBackwardWeight };
using Key = std::tuple<Kind, int64_t, int64_t, int64_t, int64_t, int64_t, int, int, bool, bool>;

struct Cached {
  dnnl::matmul primitive;
  memory::desc src, weights, bias, dst;
  WeightLayout layout;  // of weights
  int64_t scratch;      // bytes
  bool biased;
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
  const int64_t size = SizeOf(from.type);
  for (int64_t r = 0; r < from.rows; ++r) {
    std::memcpy(static_cast<char*>(to.data) + r * to.stride * size,
        static_cast<const char*>(from.data) + r * from.stride * size, from.cols * size);
  }
}

// A piece of a weight to copy to a layout of oneDNN's own.
struct Reorder {
  memory from, to;
};

// Arguments of a primitive on one thread. Only their addresses change between tiles, because
// creating them takes longer than a small product.
struct Arguments {
  memory src, weights, bias, dst, scratch;
  std::unordered_map<int, memory> all;
};

struct Worker {
  dnnl::stream stream;
  LargeMemory scratch = {}, copies = {};  // of a primitive; of a tile's operands
  std::unordered_map<const Cached*, Arguments> arguments = {};
};

}  // namespace

struct OneDnnEngine::Rep {
  explicit Rep(PackedWeights* packed) : packed(packed) {}

  PackedWeights* packed;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::map<Key, Cached> primitives;
  std::vector<memory::desc> layouts;  // that WeightLayout::library numbers
  std::vector<Worker> workers;        // one per thread
  std::vector<Tile> tiles;
  std::vector<Reorder> reorders;

  WeightLayout LayoutOf(const memory::desc& desc) {
    WeightLayout layout = BlocksOf(desc);
    if (layout.block_depth > 0) return layout;
    layout.library = std::find(layouts.begin(), layouts.end(), desc) - layouts.begin();
    if (layout.library == static_cast<int>(layouts.size())) layouts.push_back(desc);
    return layout;
  }

  template <typename MakeOperands>
  const Cached& Primitive(const Key& key, MakeOperands make) {
    if (const auto it = primitives.find(key); it != primitives.end()) return it->second;
    SetLibraryThreads(1);
    const Operands operands = make();
    const auto pd = MakePrimitive(engine, operands);
    const int64_t scratch = pd.scratchpad_desc().get_size();
    const memory::desc weights = pd.weights_desc();
    Cached made = {dnnl::matmul(pd), operands.src, weights, operands.bias, operands.dst,
        LayoutOf(weights), scratch, HasBias(operands)};
    return primitives.emplace(key, std::move(made)).first->second;
  }

  // Queues w^T or w for copying to a layout of oneDNN's own, in pieces for all threads.
  void AddReorder(const Weight& w, bool transposed, const Cached& cached, void* to) {
    const memory::desc plain = transposed ? DescribeTransposed(w.w) : Describe(w.w);
    ForTiles(cached.layout.depth, 2048, [&](int64_t k, int64_t depth) {
      // 384 is a multiple of every block width.
      ForTiles(cached.layout.cols, 384, [&](int64_t n, int64_t cols) {
        reorders.push_back({memory(plain.submemory_desc({depth, cols}, {k, n}), engine,
                                const_cast<void*>(w.w.data)),
            memory(cached.weights.submemory_desc({depth, cols}, {k, n}), engine, to)});
      });
    });
  }

  // Queues a tile of a product with w^T or w, which is a part of a weight from column `col` on.
  void AddTile(ConstMat src, const Weight& w, bool transposed, int64_t col, const float* bias,
      Mat dst, bool accumulate) {
    const bool separate = HasGaps(dst) || (dst.stride != dst.cols && !accumulate);
    const int64_t stride = separate ? dst.cols : dst.stride;
    const ConstMat dense = WithoutGaps(src);
    const Key key = {transposed ? Kind::kForward : Kind::kBackwardData, src.rows, src.cols,
        dst.cols, dense.stride, stride, int(src.type), int(dst.type), bias != nullptr, accumulate};
    const Cached& cached = Primitive(key, [&]() -> Operands {
      const memory::desc any({src.cols, dst.cols}, TypeOf(src.type), memory::format_tag::any);
      const memory::desc bias_desc =
          bias == nullptr ? memory::desc() : Describe(1, dst.cols, DType::kF32, dst.cols, 1);
      return {Describe(dense), any, bias_desc, Describe(dst.rows, dst.cols, dst.type, stride, 1),
          accumulate};
    });
    const void* weights = packed->Get(w, transposed, col, cached.layout,
        [&](void* to) { AddReorder(w, transposed, cached, to); });
    tiles.push_back({&cached, src, {.data = weights}, bias, dst, accumulate, separate});
  }

  Arguments& ArgumentsOf(const Cached& c, Worker& worker) {
    const auto [it, added] = worker.arguments.try_emplace(&c);
    Arguments& args = it->second;
    if (!added) return args;
    args.src = memory(c.src, engine, nullptr);
    args.weights = memory(c.weights, engine, nullptr);
    args.dst = memory(c.dst, engine, nullptr);
    args.all = {
        {DNNL_ARG_SRC, args.src}, {DNNL_ARG_WEIGHTS, args.weights}, {DNNL_ARG_DST, args.dst}};
    if (c.biased) args.all.emplace(DNNL_ARG_BIAS, args.bias = memory(c.bias, engine, nullptr));
    const memory::desc bytes({c.scratch}, memory::data_type::u8, memory::dims{1});
    if (c.scratch > 0)
      args.all.emplace(DNNL_ARG_SCRATCHPAD, args.scratch = memory(bytes, engine, nullptr));
    return args;
  }

  void Execute(const Tile& tile) {
    const Cached& c = *tile.cached;
    Worker& worker = workers[ThreadIndex()];
    Arguments& args = ArgumentsOf(c, worker);
    char* copies = worker.copies.get();
    const auto copy = [&](ConstMat m, bool read) {
      const Mat to = {std::exchange(copies, copies + CopyBytes(m)), m.rows, m.cols, m.cols, m.type};
      if (read) CopyRows(m, to);
      return to;
    };
    const auto gapless = [&](ConstMat m) {
      return HasGaps(m) ? copy(m, true).data : const_cast<void*>(m.data);
    };
    const Mat dst = tile.separate ? copy(tile.dst, tile.accumulate) : tile.dst;
    args.src.set_data_handle(gapless(tile.src));
    args.weights.set_data_handle(gapless(tile.weights));
    args.dst.set_data_handle(dst.data);
    if (c.biased) args.bias.set_data_handle(const_cast<float*>(tile.bias));
    if (c.scratch > 0) args.scratch.set_data_handle(worker.scratch.get());
    c.primitive.execute(worker.stream, args.all);
    worker.stream.wait();
    if (tile.separate) CopyRows(dst, tile.dst);
  }

  void ReserveWorkers() {
    int64_t scratch = 0, copies = 0;
    for (const Tile& tile : tiles) {
      scratch = std::max(scratch, tile.cached->scratch);
      copies = std::max(copies, (tile.separate ? CopyBytes(tile.dst) : 0) +
                                    (HasGaps(tile.src) ? CopyBytes(tile.src) : 0) +
                                    (HasGaps(tile.weights) ? CopyBytes(tile.weights) : 0));
    }
    while (workers.size() < static_cast<size_t>(Threads()))
      workers.push_back({dnnl::stream(engine)});
    for (Worker& w : workers) {
      if (scratch > w.scratch.bytes()) w.scratch = LargeMemory(scratch);
      if (copies > w.copies.bytes()) w.copies = LargeMemory(copies);
    }
  }

  void RunReorders() {
    const Op op("pack weights", [&] {
      OpCost cost;
      for (const auto& [from, to] : reorders)
        cost.bytes += from.get_desc().get_size() + to.get_desc().get_size();
      return cost;
    });
    ParallelFor(reorders.size(), [&](int64_t i) {
      auto& [from, to] = reorders[i];
      dnnl::reorder(from, to).execute(workers[ThreadIndex()].stream, from, to);
      workers[ThreadIndex()].stream.wait();
    });
    reorders.clear();
  }
};

OneDnnEngine::OneDnnEngine(PackedWeights* packed) : rep_(std::make_unique<Rep>(packed)) {
  dnnl::set_primitive_cache_capacity(4096);
  dnnl::set_jit_profiling_flags(0);  // otherwise it searches for a profiler's library
}
OneDnnEngine::~OneDnnEngine() = default;

void OneDnnEngine::AddProduct(
    ConstMat src, const Weight& w, bool transposed, const float* bias, Mat dst, bool accumulate) {
  ForTiles(dst.cols, TileCols(dst, src.cols), [&](int64_t col, int64_t cols) {
    const Weight part = {transposed ? Rows(w.w, col, cols) : Columns(w.w, col, cols), w.version};
    ForTiles(dst.rows, TileRows(dst, src.cols), [&](int64_t row, int64_t rows) {
      rep_->AddTile(Rows(src, row, rows), part, transposed, col,
          bias == nullptr ? nullptr : bias + col, Columns(Rows(dst, row, rows), col, cols),
          accumulate);
    });
  });
}

void OneDnnEngine::AddGradient(ConstMat dy, ConstMat x, Mat dw) {
  const GradientTile tile = TileOfGradient(dw, x.rows);
  ForTiles(dw.rows, tile.rows, [&](int64_t row, int64_t rows) {
    ForTiles(dw.cols, tile.cols, [&](int64_t col, int64_t cols) {
      const ConstMat left = Columns(dy, row, rows), right = Columns(x, col, cols);
      const Mat out = Columns(Rows(dw, row, rows), col, cols);
      const ConstMat a = WithoutGaps(left), b = WithoutGaps(right), c = WithoutGaps(out);
      const Key key = {Kind::kBackwardWeight, x.rows, rows, cols, a.stride, b.stride, int(x.type),
          int(c.stride), false, true};
      const Cached& cached = rep_->Primitive(key, [&]() -> Operands {
        return {DescribeTransposed(a), Describe(b), memory::desc(), Describe(c), true};
      });
      rep_->tiles.push_back({&cached, left, right, nullptr, out, true, HasGaps(out)});
    });
  });
}

void OneDnnEngine::Run() {
  if (rep_->tiles.empty()) return;
  SetLibraryThreads(1);
  rep_->ReserveWorkers();
  if (!rep_->reorders.empty()) rep_->RunReorders();
  ParallelFor(rep_->tiles.size(), [&](int64_t i) { rep_->Execute(rep_->tiles[i]); });
  rep_->tiles.clear();
}

}  // namespace cloze
