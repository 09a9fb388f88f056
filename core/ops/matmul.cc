#include "core/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
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

struct Operands {
  memory::desc src, weights, bias, dst;  // bias: zero desc when absent
  bool accumulate;
};

// The one place where oneDNN 2.x and 3.x differ for us.
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
// on the shape alone, and each tile is a product on one thread. Whole columns are best where there are rows enough for all threads.
constexpr int64_t kTileRows = 128;
int64_t TileCols(ConstMat dst) { return dst.rows >= 8 * kTileRows ? dst.cols : 256; }
int64_t GradientTile(int64_t n) { return n <= 128 ? 64 : n <= 512 ? 128 : n <= 1024 ? 256 : 512; }

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

// oneDNN uses one thread while this lives.
class OneThread {
 public:
  OneThread() : threads_(Threads()) { SetThreads(1); }
  ~OneThread() { SetThreads(threads_); }

 private:
  int threads_;
};

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
    const OneThread one;
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
    if (copy == nullptr) copy = &copies.emplace_back(Packed{memory(wanted, engine), 0});
    if (copy->version != w.version) stale.emplace_back(memory(plain, engine, const_cast<void*>(w.w.data)), copy->data);
    copy->version = w.version;
    return copy->data;
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

  // All tiles, after packing what they need. Inside a ParallelFor of several tasks oneDNN stays on the task's thread.
  void Run() {
    ReserveWorkers();
    if (!stale.empty()) PackStale();
    if (tiles.size() == 1) {
      const OneThread one;
      Execute(tiles[0]);
    } else {
      ParallelFor(tiles.size(), [&](int64_t i) { Execute(tiles[i]); });
    }
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
  ForTiles(y.cols, TileCols(y), [&](int64_t col, int64_t cols) {
    const Weight part = {Rows(w.w, col, cols), w.version};
    ForTiles(y.rows, kTileRows, [&](int64_t row, int64_t rows) {
      rep_->AddTile(0, Rows(x, row, rows), part, DescribeTransposed(part.w), bias == nullptr ? nullptr : bias + col,
                    Columns(Rows(y, row, rows), col, cols), accumulate);
    });
  });
  rep_->Run();
}

void Matmul::BackwardData(ConstMat dy, const Weight& w, Mat dx, bool accumulate) {
  CLOZE_CHECK(dy.cols == w.w.rows && dx.cols == w.w.cols && dy.rows == dx.rows && w.w.type == DType::kF32);
  const OpTimer timer("matmul dx", [&] { return ProductCost(dy, w.w, dx); });
  ForTiles(dx.cols, TileCols(dx), [&](int64_t col, int64_t cols) {
    const Weight part = {Columns(w.w, col, cols), w.version};
    ForTiles(dx.rows, kTileRows, [&](int64_t row, int64_t rows) {
      rep_->AddTile(1, Rows(dy, row, rows), part, Describe(part.w), nullptr, Columns(Rows(dx, row, rows), col, cols), accumulate);
    });
  });
  rep_->Run();
}

void Matmul::BackwardWeight(ConstMat dy, ConstMat x, Mat dw) {
  CLOZE_CHECK(dy.rows == x.rows && dw.rows == dy.cols && dw.cols == x.cols && dw.type == DType::kF32 && x.type == dy.type);
  if (x.rows == 0) return;
  const OpTimer timer("matmul dw", [&] { return ProductCost(dy, x, dw); });
  ForTiles(dw.rows, GradientTile(dw.rows), [&](int64_t row, int64_t rows) {
    ForTiles(dw.cols, GradientTile(dw.cols), [&](int64_t col, int64_t cols) {
      const ConstMat left = Columns(dy, row, rows), right = Columns(x, col, cols);
      const Mat out = Columns(Rows(dw, row, rows), col, cols);
      const Key key = {2, x.rows, rows, cols, dy.stride, x.stride, int(x.type), int(dw.stride), false, true};
      const Cached& cached = rep_->Primitive(key, {DescribeTransposed(left), Describe(right), memory::desc(), Describe(out), true});
      rep_->tiles.push_back({&cached, left.data, memory(cached.weights, rep_->engine, const_cast<void*>(right.data)), nullptr, out.data});
    });
  });
  rep_->Run();
}

int64_t Matmul::packed_bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, copies] : rep_->packed) {
    for (const Packed& copy : copies) bytes += copy.data.get_desc().get_size();
  }
  return bytes;
}

struct PeakProduct::Rep {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive;
  std::unordered_map<int, memory> args;
};

PeakProduct::PeakProduct(int64_t m, int64_t n, int64_t k, DType type) : rep_(std::make_unique<Rep>()) {
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
