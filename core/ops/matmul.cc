#include "core/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/threads.h"
#include "core/ops/cost.h"

namespace cloze {
namespace {

using dnnl::memory;

memory::data_type TypeOf(DType type) { return type == DType::kF32 ? memory::data_type::f32 : memory::data_type::bf16; }

// [rows, cols] with the given strides.
memory::desc Describe(int64_t rows, int64_t cols, DType type, int64_t row_stride, int64_t col_stride) {
  return memory::desc({rows, cols}, TypeOf(type), memory::dims{row_stride, col_stride});
}
memory::desc Describe(ConstMat m) { return Describe(m.rows, m.cols, m.type, m.stride, 1); }
memory::desc DescribeTransposed(ConstMat m) { return Describe(m.cols, m.rows, m.type, 1, m.stride); }

// Here and in MakePrimitive oneDNN 2.x and 3.x differ for us.
memory::dims DimsOf(const memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_dims();
#else
  return desc.dims();
#endif
}

struct Operands {
  memory::desc src, weights, bias, dst;  // bias: zero desc when absent
  bool accumulate;
};

dnnl::matmul::primitive_desc MakePrimitive(const dnnl::engine& engine, const Operands& o) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (o.accumulate) {
    dnnl::post_ops post;
    post.append_sum(1.0f);
    attr.set_post_ops(post);
  }
#if DNNL_VERSION_MAJOR >= 3
  const bool bias = !o.bias.is_zero();
  return bias ? dnnl::matmul::primitive_desc(engine, o.src, o.weights, o.bias, o.dst, attr)
              : dnnl::matmul::primitive_desc(engine, o.src, o.weights, o.dst, attr);
#else
  const bool bias = o.bias.data.ndims != 0;
  return bias ? dnnl::matmul::primitive_desc(dnnl::matmul::desc(o.src, o.weights, o.bias, o.dst), attr, engine)
              : dnnl::matmul::primitive_desc(dnnl::matmul::desc(o.src, o.weights, o.dst), attr, engine);
#endif
}

// What a cached primitive depends on: kind of product, sizes, strides, types, bias, accumulate.
using Key = std::tuple<int, int64_t, int64_t, int64_t, int64_t, int64_t, int, int, bool, bool>;

struct Cached {
  dnnl::matmul primitive;
  memory::desc src, weights, bias, dst;
  int64_t scratch;  // bytes
};

struct Packed {
  memory data;
  uint64_t version = 0;
};

// A tile of a product, for one thread.
struct Tile {
  const Cached* cached;
  const void* src;
  memory weights;
  const float* bias;
  void* dst;
};

// oneDNN splits long sums over the threads, which changes the last bits with their number. So results are cut into tiles whose sizes depend
// on the shape alone, and each tile is a product on one thread. Its kernels are best by far (15 % on Zen 4) where a tile has all columns of
// the result: so rows are cut, unless there are too few.
int64_t TileRows(ConstMat dst, int64_t depth) {
  if (dst.rows >= 1024) return 128;
  if (dst.cols * depth > 4 << 20) return 96;  // weights too large to read them often
  return dst.rows >= 512 ? 64 : 32;
}
constexpr int64_t kTileCols = 256;  // where there are few rows
int64_t TileCols(ConstMat dst, int64_t depth) { return dst.rows >= 2 * TileRows(dst, depth) ? dst.cols : kTileCols; }

// n cut into the fewest equal pieces of at most `most`, each but the last a multiple of 64.
int64_t Piece(int64_t n, int64_t most) {
  const int64_t pieces = (n + most - 1) / most;
  return std::min(n, (n + pieces * 64 - 1) / (pieces * 64) * 64);
}

// A tile of dw = dy^T x copies its columns of dy and x: the larger and squarer the better, but there should be several, and none of more
// than some milliseconds.
struct GradientTile {
  int64_t rows, cols;
};
GradientTile TileOfGradient(ConstMat dw, int64_t tokens) {
  const int64_t area = std::max<int64_t>(1 << 16, std::min(dw.rows * dw.cols / 8, (int64_t{1} << 29) / tokens));
  const int64_t cols = Piece(dw.cols, std::max<int64_t>(256, 1.5 * std::sqrt(area)));
  return {Piece(dw.rows, std::max<int64_t>(128, area / cols)), cols};
}

// Of a product with these operands: each of its three sizes stands in two of them.
OpCost ProductCost(ConstMat a, ConstMat b, ConstMat c) {
  const double sizes = double(a.rows) * a.cols * b.rows * b.cols * c.rows * c.cols;
  return Traffic({a, b, c}, 2 * std::sqrt(sizes));
}

// f(begin, size) for the tiles of [0, n).
template <typename F>
void ForTiles(int64_t n, int64_t tile, F f) {
  for (int64_t begin = 0; begin < n; begin += tile) f(begin, std::min(tile, n - begin));
}

}  // namespace

struct Matmul::Rep {
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  struct Worker {
    dnnl::stream stream;
    std::unique_ptr<char, Free> scratch;
    int64_t size = 0;
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::map<Key, Cached> primitives;
  // Packed copies of a tile of a weight; more than one when shapes want different layouts.
  std::map<std::pair<const void*, int>, std::vector<Packed>> packed;
  std::vector<Worker> workers;                   // one a thread
  std::vector<Tile> tiles;                       // of the product at hand
  std::vector<std::pair<memory, memory>> stale;  // what to pack before it: from, to

  const Cached& Primitive(const Key& key, const Operands& operands) {
    if (const auto it = primitives.find(key); it != primitives.end()) return it->second;
    SetLibraryThreads(1);
    const auto pd = MakePrimitive(engine, operands);
    const int64_t scratch = pd.scratchpad_desc().get_size();
    return primitives.emplace(key, Cached{dnnl::matmul(pd), operands.src, pd.weights_desc(), operands.bias, operands.dst, scratch})
        .first->second;
  }

  // `plain` [k, n] f32 in the layout `wanted`.
  memory Pack(const Weight& w, int kind, const memory::desc& plain, const memory::desc& wanted) {
    std::vector<Packed>& copies = packed[{w.w.data, kind}];
    Packed* copy = nullptr;
    for (Packed& p : copies) {
      if (p.data.get_desc() == wanted) copy = &p;
    }
    if (copy == nullptr) {
      copy = &copies.emplace_back(Packed{memory(wanted, engine), 0});
      std::memset(copy->data.get_data_handle(), 0, wanted.get_size());
    }
    if (copy->version != w.version) AddStale(w, plain, copy->data);
    copy->version = w.version;
    return copy->data;
  }

  // Cut into pieces for all threads.
  void AddStale(const Weight& w, const memory::desc& plain, const memory& copy) {
    const memory::desc whole = copy.get_desc();
    const memory::dims dims = DimsOf(whole);
    ForTiles(dims[0], 2048, [&](int64_t k, int64_t depth) {
      ForTiles(dims[1], 384, [&](int64_t n, int64_t cols) {  // a multiple of every width of blocks
        stale.emplace_back(memory(plain.submemory_desc({depth, cols}, {k, n}), engine, const_cast<void*>(w.w.data)),
                           memory(whole.submemory_desc({depth, cols}, {k, n}), engine, copy.get_data_handle()));
      });
    });
  }

  void Execute(const Tile& tile) {
    const Cached& c = *tile.cached;
    Worker& worker = workers[ThreadIndex()];
    std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, memory(c.src, engine, const_cast<void*>(tile.src))},
                                            {DNNL_ARG_WEIGHTS, tile.weights},
                                            {DNNL_ARG_DST, memory(c.dst, engine, tile.dst)}};
    if (tile.bias != nullptr) args.emplace(DNNL_ARG_BIAS, memory(c.bias, engine, const_cast<float*>(tile.bias)));
    if (c.scratch > 0) {
      const memory::desc bytes({c.scratch}, memory::data_type::u8, memory::dims{1});
      args.emplace(DNNL_ARG_SCRATCHPAD, memory(bytes, engine, worker.scratch.get()));
    }
    c.primitive.execute(worker.stream, args);
    worker.stream.wait();
  }

  void ReserveWorkers() {
    int64_t scratch = 0;
    for (const Tile& tile : tiles) scratch = std::max(scratch, tile.cached->scratch);
    scratch = (scratch + 4095) / 4096 * 4096;
    while (workers.size() < static_cast<size_t>(Threads())) workers.push_back({dnnl::stream(engine), nullptr});
    for (Worker& w : workers) {
      if (w.size < scratch) w.scratch.reset(static_cast<char*>(std::aligned_alloc(4096, scratch))), w.size = scratch;
    }
  }

  void PackStale() {
    const OpTimer timer("pack weights", [&] {
      OpCost cost;
      for (const auto& [from, to] : stale) cost.bytes += from.get_desc().get_size() + to.get_desc().get_size();
      return cost;
    });
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
    if (!stale.empty()) PackStale();
    ParallelFor(tiles.size(), [&](int64_t i) { Execute(tiles[i]); });
    tiles.clear();
    stale.clear();
  }

  // A tile of dst (+)= src weights, with w or w^T as weights.
  void AddTile(int kind, ConstMat src, const Weight& w, const memory::desc& plain, const float* bias, Mat dst, bool accumulate) {
    const Key key = {kind, src.rows, src.cols, dst.cols, src.stride, dst.stride, int(src.type), int(dst.type), bias != nullptr, accumulate};
    const memory::desc any({src.cols, dst.cols}, TypeOf(src.type), memory::format_tag::any);
    const memory::desc bias_desc = bias == nullptr ? memory::desc() : Describe(1, dst.cols, DType::kF32, dst.cols, 1);
    const Cached& cached = Primitive(key, {Describe(src), any, bias_desc, Describe(dst), accumulate});
    tiles.push_back({&cached, src.data, Pack(w, kind * 2 + int(src.type), plain, cached.weights), bias, dst.data});
  }
};

Matmul::Matmul() : rep_(std::make_unique<Rep>()) { dnnl::set_primitive_cache_capacity(4096); }
Matmul::~Matmul() = default;

void Matmul::Forward(ConstMat x, const Weight& w, const float* bias, Mat y, bool accumulate) {
  CLOZE_CHECK(x.cols == w.w.cols && y.cols == w.w.rows && x.rows == y.rows && w.w.type == DType::kF32);
  const OpTimer timer("matmul", [&] { return ProductCost(x, w.w, y); });
  ForTiles(y.cols, TileCols(y, x.cols), [&](int64_t col, int64_t cols) {
    const Weight part = {Rows(w.w, col, cols), w.version};
    ForTiles(y.rows, TileRows(y, x.cols), [&](int64_t row, int64_t rows) {
      rep_->AddTile(0, Rows(x, row, rows), part, DescribeTransposed(part.w), bias == nullptr ? nullptr : bias + col,
                    Columns(Rows(y, row, rows), col, cols), accumulate);
    });
  });
  rep_->Run();
}

void Matmul::AddData(ConstMat dy, const Weight& w, Mat dx, bool accumulate) {
  CLOZE_CHECK(dy.cols == w.w.rows && dx.cols == w.w.cols && dy.rows == dx.rows && w.w.type == DType::kF32);
  ForTiles(dx.cols, TileCols(dx, dy.cols), [&](int64_t col, int64_t cols) {
    const Weight part = {Columns(w.w, col, cols), w.version};
    ForTiles(dx.rows, TileRows(dx, dy.cols), [&](int64_t row, int64_t rows) {
      rep_->AddTile(1, Rows(dy, row, rows), part, Describe(part.w), nullptr, Columns(Rows(dx, row, rows), col, cols), accumulate);
    });
  });
}

void Matmul::AddWeight(ConstMat dy, ConstMat x, Mat dw) {
  CLOZE_CHECK(dy.rows == x.rows && dw.rows == dy.cols && dw.cols == x.cols && dw.type == DType::kF32 && x.type == dy.type);
  if (x.rows == 0) return;
  const GradientTile tile = TileOfGradient(dw, x.rows);
  ForTiles(dw.rows, tile.rows, [&](int64_t row, int64_t rows) {
    ForTiles(dw.cols, tile.cols, [&](int64_t col, int64_t cols) {
      const ConstMat left = Columns(dy, row, rows), right = Columns(x, col, cols);
      const Mat out = Columns(Rows(dw, row, rows), col, cols);
      const Key key = {2, x.rows, rows, cols, dy.stride, x.stride, int(x.type), int(dw.stride), false, true};
      const Cached& cached = rep_->Primitive(key, {DescribeTransposed(left), Describe(right), memory::desc(), Describe(out), true});
      rep_->tiles.push_back({&cached, left.data, memory(cached.weights, rep_->engine, const_cast<void*>(right.data)), nullptr, out.data});
    });
  });
}

void Matmul::BackwardData(ConstMat dy, const Weight& w, Mat dx, bool accumulate) {
  const OpTimer timer("matmul dx", [&] { return ProductCost(dy, w.w, dx); });
  AddData(dy, w, dx, accumulate);
  rep_->Run();
}

void Matmul::BackwardWeight(ConstMat dy, ConstMat x, Mat dw) {
  const OpTimer timer("matmul dw", [&] { return ProductCost(dy, x, dw); });
  AddWeight(dy, x, dw);
  rep_->Run();
}

void Matmul::Backward(ConstMat x, const Weight& w, ConstMat dy, Mat dw, Mat dx, bool accumulate) {
  if (Profile::active() != nullptr) {  // a time for each
    BackwardWeight(dy, x, dw);
    return BackwardData(dy, w, dx, accumulate);
  }
  AddWeight(dy, x, dw);  // its tiles are the longer ones
  AddData(dy, w, dx, accumulate);
  rep_->Run();
}

// Once whole and, where few rows are cut into columns, once more in tiles. The library rounds up to its blocks.
int64_t Matmul::PackedBytes(int64_t out, int64_t in, DType type, bool backward) {
  const auto blocks = [](int64_t n) { return (n + 63) / 64 * 64; };
  return blocks(out) * blocks(in) * SizeOf(type) * ((backward ? in : out) > kTileCols ? 2 : 1);
}

int64_t Matmul::packed_bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, copies] : rep_->packed) {
    for (const Packed& copy : copies) bytes += copy.data.get_desc().get_size();
  }
  return bytes;
}

int64_t Matmul::scratch_bytes() const {
  int64_t bytes = 0;
  for (const Rep::Worker& worker : rep_->workers) bytes += worker.size;
  return bytes;
}

struct PeakProduct::Rep {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive;
  std::unordered_map<int, memory> args;
};

PeakProduct::PeakProduct(int64_t m, int64_t n, int64_t k, DType type) : rep_(std::make_unique<Rep>()) {
  SetLibraryThreads(Threads());
  const auto any = [&](int64_t rows, int64_t cols) { return memory::desc({rows, cols}, TypeOf(type), memory::format_tag::any); };
  const auto pd = MakePrimitive(rep_->engine, {any(m, k), any(k, n), memory::desc(), Describe(m, n, type, n, 1), false});
  rep_->primitive = dnnl::matmul(pd);
  const auto filled = [&](const memory::desc& desc) {
    memory out(desc, rep_->engine);
    auto* words = static_cast<uint16_t*>(out.get_data_handle());
    for (size_t i = 0; i < desc.get_size() / 2; ++i) words[i] = static_cast<uint16_t>(0x3F00 + i % 113);  // about 1, in either type
    return out;
  };
  rep_->args = {{DNNL_ARG_SRC, filled(pd.src_desc())},
                {DNNL_ARG_WEIGHTS, filled(pd.weights_desc())},
                {DNNL_ARG_DST, filled(pd.dst_desc())},
                {DNNL_ARG_SCRATCHPAD, memory(pd.scratchpad_desc(), rep_->engine)}};
}
PeakProduct::~PeakProduct() = default;

void PeakProduct::Run() {
  SetLibraryThreads(Threads());
  rep_->primitive.execute(rep_->stream, rep_->args);
  rep_->stream.wait();
}

std::string MatmulLibrary() {
  const dnnl::version_t* v = dnnl::version();
  const auto isa = dnnl::get_effective_cpu_isa();
  const auto is = [&](dnnl::cpu_isa other) { return isa == other; };
  const char* name = is(dnnl::cpu_isa::avx512_core_bf16)   ? "avx512_core_bf16"
                     : is(dnnl::cpu_isa::avx512_core_vnni) ? "avx512_core_vnni"
                     : is(dnnl::cpu_isa::avx512_core)      ? "avx512_core"
                     : is(dnnl::cpu_isa::avx2)             ? "avx2"
                     : is(dnnl::cpu_isa::sse41)            ? "sse41"
                                                           : "other";
  return absl::StrCat("oneDNN ", v->major, ".", v->minor, ".", v->patch, " (", name, ")");
}

}  // namespace cloze
