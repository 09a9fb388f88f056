#include "core/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/large_memory.h"
#include "core/base/threads.h"
#include "core/ops/cost.h"
#include "core/ops/kernels/kernels.h"
#include "core/ops/onednn.h"
#include "core/ops/panel_gradient.h"
#include "core/ops/tiles.h"

namespace cloze {
namespace {

using dnnl::memory;

// What a cached primitive depends on: kind of product, sizes, strides, types, bias, accumulate.
using Key = std::tuple<int, int64_t, int64_t, int64_t, int64_t, int64_t, int, int, bool, bool>;

struct Cached {
  dnnl::matmul primitive;
  memory::desc src, weights, bias, dst;
  int64_t scratch;  // bytes
  bool biased;
};

struct Packed {
  explicit Packed(LargeMemory memory) : bytes(std::move(memory)) {}

  LargeMemory bytes;
  memory data;
  const void* of = nullptr;
  uint64_t version = 0;
};

// A tile of a product, for one thread.
struct Tile {
  const Cached* cached;
  const void* src;
  memory weights;
  const float* bias;
  Mat dst;
  bool apart;  // computed without gaps between its rows, then copied to its place
};

// Arguments of a primitive on one thread. From tile to tile only their addresses change, as making
// them costs more than a small product.
struct Arguments {
  memory src, bias, dst, scratch;
  std::unordered_map<int, memory> all;
};

// Of a product with these operands: each of its three sizes stands in two of them.
OpCost ProductCost(ConstMat a, ConstMat b, ConstMat c) {
  const double sizes = double(a.rows) * a.cols * b.rows * b.cols * c.rows * c.cols;
  return Traffic({a, b, c}, 2 * std::sqrt(sizes));
}

}  // namespace

struct Matmul::Rep {
  struct Worker {
    dnnl::stream stream;
    LargeMemory scratch = {}, result = {};  // of a primitive; of a tile that is computed apart
    std::unordered_map<const Cached*, Arguments> arguments = {};
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::map<Key, Cached> primitives;
  // Packed copies by the address of a tile of a weight, or by the tile's column where weights
  // share; more than one when shapes want different layouts.
  std::map<std::pair<uintptr_t, int>, std::vector<Packed>> packed;
  bool share_packed = false;
  PanelGradient panel_gradient;
  // Of dry runs: bytes by address (0 where weights share), direction and shape of a weight.
  std::map<std::tuple<uintptr_t, bool, int64_t, int64_t>, int64_t> dry_packed;
  int64_t dry_scratch = 0;
  std::vector<Worker> workers;  // one a thread
  std::vector<Tile> tiles;      // of the product at hand
  std::vector<std::pair<ProductArgs, DType>>
      products;  // the same on the matrix unit, with the type of the result
  std::vector<std::pair<PackArgs, DType>> strips;  // what to pack before it
  std::vector<std::pair<memory, memory>>
      stale;  // the same where the library lays it out in a way of its own: from, to

  template <typename MakeOperands>
  const Cached& Primitive(const Key& key, MakeOperands make) {
    if (const auto it = primitives.find(key); it != primitives.end()) return it->second;
    SetLibraryThreads(1);
    const Operands operands = make();
    const auto pd = MakePrimitive(engine, operands);
    const int64_t scratch = pd.scratchpad_desc().get_size();
    Cached made = {dnnl::matmul(pd), operands.src, pd.weights_desc(), operands.bias, operands.dst,
        scratch, HasBias(operands)};
    return primitives.emplace(key, std::move(made)).first->second;
  }

  // `plain` [k, n] f32, from column `col` of a weight on, in the layout `wanted`.
  memory Pack(const Weight& w, int kind, int64_t col, const memory::desc& plain,
      const memory::desc& wanted) {
    std::vector<Packed>& copies =
        packed[{share_packed ? col : reinterpret_cast<uintptr_t>(w.w.data), kind}];
    Packed* copy = nullptr;
    for (Packed& p : copies) {
      if (p.data.get_desc() == wanted) copy = &p;
    }
    if (copy == nullptr) {
      copy = &copies.emplace_back(LargeMemory(wanted.get_size()));
      copy->data = memory(wanted, engine, copy->bytes.get());
    }
    if (copy->of != w.w.data || copy->version != w.version) AddStale(w, kind, plain, copy->data);
    copy->of = w.w.data, copy->version = w.version;
    return copy->data;
  }

  // Cut so that a thread reads whole rows.
  void AddStrips(ConstMat w, int kind, PackArgs args, void* to) {
    const bool forward = kind < 2;
    const DType type = DType(kind % 2);
    args.depth_step = forward ? 1 : w.stride, args.cols_step = forward ? w.stride : 1;
    ForTiles(w.rows, forward ? args.block_cols : args.block_depth, [&](int64_t row, int64_t rows) {
      (forward ? args.cols : args.depth) = rows;
      args.from = static_cast<const float*>(w.data) + row * w.stride;
      const int64_t block = forward ? row / args.block_cols * args.cols_stride
                                    : row / args.block_depth * args.depth_stride;
      args.to = static_cast<char*>(to) + block * SizeOf(type);
      strips.emplace_back(args, type);
    });
  }

  // Cut into pieces for all threads.
  void AddStale(const Weight& w, int kind, const memory::desc& plain, const memory& copy) {
    const memory::desc whole = copy.get_desc();
    if (std::optional<PackArgs> blocks = BlocksOf(whole))
      return AddStrips(w.w, kind, *blocks, copy.get_data_handle());
    const memory::dims dims = DimsOf(whole);
    ForTiles(dims[0], 2048, [&](int64_t k, int64_t depth) {
      ForTiles(dims[1], 384, [&](int64_t n, int64_t cols) {  // a multiple of every width of blocks
        stale.emplace_back(memory(plain.submemory_desc({depth, cols}, {k, n}), engine,
                               const_cast<void*>(w.w.data)),
            memory(whole.submemory_desc({depth, cols}, {k, n}), engine, copy.get_data_handle()));
      });
    });
  }

  Arguments& ArgumentsOf(const Cached& c, Worker& worker) {
    const auto [it, added] = worker.arguments.try_emplace(&c);
    Arguments& args = it->second;
    if (!added) return args;
    args.src = memory(c.src, engine, nullptr);
    args.dst = memory(c.dst, engine, nullptr);
    args.all = {{DNNL_ARG_SRC, args.src}, {DNNL_ARG_DST, args.dst}, {DNNL_ARG_WEIGHTS, memory()}};
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
    args.src.set_data_handle(const_cast<void*>(tile.src));
    args.dst.set_data_handle(tile.apart ? worker.result.get() : tile.dst.data);
    if (c.biased) args.bias.set_data_handle(const_cast<float*>(tile.bias));
    if (c.scratch > 0) args.scratch.set_data_handle(worker.scratch.get());
    args.all.at(DNNL_ARG_WEIGHTS) = tile.weights;
    c.primitive.execute(worker.stream, args.all);
    worker.stream.wait();
    if (!tile.apart) return;
    const int64_t bytes = tile.dst.cols * SizeOf(tile.dst.type);
    for (int64_t r = 0; r < tile.dst.rows; ++r)
      std::memcpy(Rows(tile.dst, r, 1).data, worker.result.get() + r * bytes, bytes);
  }

  void ReserveWorkers() {
    int64_t scratch = 0, result = 0;
    for (const auto& [p, type] : products)
      scratch = std::max<int64_t>(scratch, ProductScratch(p.rows, p.depth) * sizeof(float));
    for (const Tile& tile : tiles) {
      scratch = std::max(scratch, tile.cached->scratch);
      if (tile.apart)
        result = std::max(result, tile.dst.rows * tile.dst.cols * SizeOf(tile.dst.type));
    }
    while (workers.size() < static_cast<size_t>(Threads()))
      workers.push_back({dnnl::stream(engine)});
    for (Worker& w : workers) {
      if (scratch > w.scratch.bytes()) w.scratch = LargeMemory(scratch);
      if (result > w.result.bytes()) w.result = LargeMemory(result);
    }
  }

  void PackStale() {
    const Op op("pack weights", [&] {
      OpCost cost;
      for (const auto& [from, to] : stale)
        cost.bytes += from.get_desc().get_size() + to.get_desc().get_size();
      for (const auto& [args, type] : strips)
        cost.bytes += args.depth * args.cols * (4 + SizeOf(type));
      return cost;
    });
    ParallelFor(strips.size(),
        [&](int64_t i) { GetKernels().pack[strips[i].second](strips[i].first); });
    ParallelFor(stale.size(), [&](int64_t i) {
      auto& [from, to] = stale[i];
      dnnl::reorder(from, to).execute(workers[ThreadIndex()].stream, from, to);
      workers[ThreadIndex()].stream.wait();
    });
  }

  // All tiles, after packing what they need.
  void Run() {
    SetLibraryThreads(1);
    ReserveWorkers();
    if (!stale.empty() || !strips.empty()) PackStale();
    const int64_t count = tiles.size();
    ParallelFor(count + products.size(), [&](int64_t i) {
      if (i < count) return Execute(tiles[i]);
      ProductArgs mine = products[i - count].first;
      mine.scratch = reinterpret_cast<float*>(workers[ThreadIndex()].scratch.get());
      GetKernels().product[products[i - count].second](mine);
    });
    tiles.clear();
    products.clear();
    strips.clear();
    stale.clear();
  }

  // Whether the CPU's matrix unit has sums of `depth` terms, where results have the same bits
  // however they are cut.
  static bool HasProduct(DType type, int64_t depth) {
    return type == DType::kBf16 && GetKernels().product.bf16 != nullptr && depth % kProductBlock == 0;
  }
  static bool HasProduct(ConstMat src) {
    return HasProduct(src.type, src.cols) && src.stride % 2 == 0;
  }

  void AddProducts(int kind, ConstMat src, const Weight& w, const memory::desc& plain,
      const float* bias, Mat dst, bool add) {
    const memory weights = Pack(w, kind * 2 + 1, 0, plain,
        memory::desc(
            {src.cols, dst.cols}, memory::data_type::bf16, memory::format_tag::BA16a32b2a));
    ForPieces(dst.rows, kProductRows, kProductBlock, [&](int64_t row, int64_t rows) {
      ForTiles(dst.cols, kProductCols, [&](int64_t col, int64_t cols) {
        const Mat to = Columns(Rows(dst, row, rows), col, cols);
        const auto* blocks =
            static_cast<const char*>(weights.get_data_handle()) + col * src.cols * 2;
        products.push_back(
            {{rows, cols, src.cols, src.stride, dst.stride, Rows(src, row, rows).data, blocks,
                 bias == nullptr ? nullptr : bias + col, to.data, add, nullptr},
                dst.type});
      });
    });
  }

  // A tile of dst (+)= src weights, with w or w^T, from column `col` of the weights on.
  void AddTile(int kind, ConstMat src, const Weight& w, int64_t col, const memory::desc& plain,
      const float* bias, Mat dst, bool accumulate) {
    const bool apart = dst.stride != dst.cols && !accumulate;
    const int64_t stride = apart ? dst.cols : dst.stride;
    const Key key = {kind, src.rows, src.cols, dst.cols, src.stride, stride, int(src.type),
        int(dst.type), bias != nullptr, accumulate};
    const Cached& cached = Primitive(key, [&]() -> Operands {
      const memory::desc any({src.cols, dst.cols}, TypeOf(src.type), memory::format_tag::any);
      const memory::desc bias_desc =
          bias == nullptr ? memory::desc() : Describe(1, dst.cols, DType::kF32, dst.cols, 1);
      return {Describe(src), any, bias_desc, Describe(dst.rows, dst.cols, dst.type, stride, 1),
          accumulate};
    });
    tiles.push_back({&cached, src.data,
        Pack(w, kind * 2 + int(src.type), col, plain, cached.weights), bias, dst, apart});
  }
};

Matmul::Matmul() : rep_(std::make_unique<Rep>()) {
  dnnl::set_primitive_cache_capacity(4096);
  dnnl::set_jit_profiling_flags(0);  // else it looks for a profiler's library to load
}
Matmul::~Matmul() = default;

void Matmul::Forward(ConstMat x, const Weight& w, const float* bias, Mat y, bool accumulate) {
  CLOZE_CHECK(
      x.cols == w.w.cols && y.cols == w.w.rows && x.rows == y.rows && w.w.type == DType::kF32);
  const Op op("matmul", [&] { return ProductCost(x, w.w, y); });
  if (op.dry()) return CountPacked(x, w, false);
  if (Rep::HasProduct(x)) {
    rep_->AddProducts(0, x, w, DescribeTransposed(w.w), bias, y, accumulate);
    return rep_->Run();
  }
  ForTiles(y.cols, TileCols(y, x.cols), [&](int64_t col, int64_t cols) {
    const Weight part = {Rows(w.w, col, cols), w.version};
    ForTiles(y.rows, TileRows(y, x.cols), [&](int64_t row, int64_t rows) {
      rep_->AddTile(0, Rows(x, row, rows), part, col, DescribeTransposed(part.w),
          bias == nullptr ? nullptr : bias + col, Columns(Rows(y, row, rows), col, cols),
          accumulate);
    });
  });
  rep_->Run();
}

void Matmul::AddData(ConstMat dy, const Weight& w, Mat dx, bool accumulate) {
  CLOZE_CHECK(
      dy.cols == w.w.rows && dx.cols == w.w.cols && dy.rows == dx.rows && w.w.type == DType::kF32);
  if (Rep::HasProduct(dy))
    return rep_->AddProducts(1, dy, w, Describe(w.w), nullptr, dx, accumulate);
  ForTiles(dx.cols, TileCols(dx, dy.cols), [&](int64_t col, int64_t cols) {
    const Weight part = {Columns(w.w, col, cols), w.version};
    ForTiles(dx.rows, TileRows(dx, dy.cols), [&](int64_t row, int64_t rows) {
      rep_->AddTile(1, Rows(dy, row, rows), part, col, Describe(part.w), nullptr,
          Columns(Rows(dx, row, rows), col, cols), accumulate);
    });
  });
}

void Matmul::AddWeight(ConstMat dy, ConstMat x, Mat dw) {
  CLOZE_CHECK(dy.rows == x.rows && dw.rows == dy.cols && dw.cols == x.cols &&
              dw.type == DType::kF32 && x.type == dy.type);
  if (x.rows == 0) return;
  if (PanelGradient::Runs(x.type)) return rep_->panel_gradient.Add(dy, x, dw);
  const GradientTile tile = TileOfGradient(dw, x.rows);
  ForTiles(dw.rows, tile.rows, [&](int64_t row, int64_t rows) {
    ForTiles(dw.cols, tile.cols, [&](int64_t col, int64_t cols) {
      const ConstMat left = Columns(dy, row, rows), right = Columns(x, col, cols);
      const Mat out = Columns(Rows(dw, row, rows), col, cols);
      const Key key = {
          2, x.rows, rows, cols, dy.stride, x.stride, int(x.type), int(dw.stride), false, true};
      const Cached& cached = rep_->Primitive(key, [&]() -> Operands {
        return {DescribeTransposed(left), Describe(right), memory::desc(), Describe(out), true};
      });
      const memory weights(cached.weights, rep_->engine, const_cast<void*>(right.data));
      rep_->tiles.push_back({&cached, left.data, weights, nullptr, out, false});
    });
  });
}

void Matmul::BackwardData(ConstMat dy, const Weight& w, Mat dx, bool accumulate) {
  const Op op("matmul dx", [&] { return ProductCost(dy, w.w, dx); });
  if (op.dry()) return CountPacked(dy, w, true);
  AddData(dy, w, dx, accumulate);
  rep_->Run();
}

void Matmul::BackwardWeight(ConstMat dy, ConstMat x, Mat dw) {
  const Op op("matmul dw", [&] { return ProductCost(dy, x, dw); });
  if (op.dry()) {
    const int64_t bytes = PanelGradient::Bytes(x.rows, dw.rows, dw.cols, x.type);
    rep_->dry_scratch = std::max(rep_->dry_scratch, bytes);
    return;
  }
  AddWeight(dy, x, dw);
  rep_->Run();
}

void Matmul::Backward(ConstMat x, const Weight& w, ConstMat dy, Mat dw, Mat dx, bool accumulate) {
  if (Profile::active() != nullptr || DryRun::active()) {  // each on its own
    BackwardWeight(dy, x, dw);
    return BackwardData(dy, w, dx, accumulate);
  }
  AddWeight(dy, x, dw);  // its tiles are the longer ones
  AddData(dy, w, dx, accumulate);
  rep_->Run();
}

// A weight is packed once for the matrix unit. Otherwise it is packed whole and, because batches
// with few rows are cut into columns, a second time in tiles. oneDNN rounds up to its blocks.
void Matmul::CountPacked(ConstMat src, const Weight& w, bool backward) {
  const auto blocks = [](int64_t n) { return (n + 63) / 64 * 64; };
  const bool once = Rep::HasProduct(src) || (backward ? w.w.cols : w.w.rows) <= kLeastTileCols;
  const uintptr_t at = rep_->share_packed ? 0 : reinterpret_cast<uintptr_t>(w.w.data);
  rep_->dry_packed[{at, backward, w.w.rows, w.w.cols}] =
      blocks(w.w.rows) * blocks(w.w.cols) * SizeOf(src.type) * (once ? 1 : 2);
}

Matmul::Memory Matmul::TakeDryMemory() {
  Memory memory = {0, std::exchange(rep_->dry_scratch, 0)};
  for (const auto& [key, bytes] : rep_->dry_packed) memory.packed += bytes;
  rep_->dry_packed.clear();
  return memory;
}

void Matmul::SharePacked(bool share) {
  if (share != rep_->share_packed) rep_->packed.clear();
  rep_->share_packed = share;
}

int64_t Matmul::packed_bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, copies] : rep_->packed) {
    for (const Packed& copy : copies) bytes += copy.data.get_desc().get_size();
  }
  return bytes;
}

std::string MatmulLibrary() {
  const dnnl::version_t* v = dnnl::version();
  const auto isa = dnnl::get_effective_cpu_isa();
  const auto is = [&](dnnl::cpu_isa other) { return isa == other; };
  const char* name = is(dnnl::cpu_isa::avx512_core_amx)    ? "avx512_core_amx"
                     : is(dnnl::cpu_isa::avx512_core_bf16) ? "avx512_core_bf16"
                     : is(dnnl::cpu_isa::avx512_core_vnni) ? "avx512_core_vnni"
                     : is(dnnl::cpu_isa::avx512_core)      ? "avx512_core"
                     : is(dnnl::cpu_isa::avx2)             ? "avx2"
                     : is(dnnl::cpu_isa::sse41)            ? "sse41"
                                                           : "other";
  return absl::StrCat("oneDNN ", v->major, ".", v->minor, ".", v->patch, " (", name, ")");
}

}  // namespace cloze
