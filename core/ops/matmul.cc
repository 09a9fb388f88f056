#include "core/ops/matmul.h"

#include <cpuid.h>

#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/ops/matmul_engine.h"
#include "core/ops/onednn.h"
#include "core/ops/op.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

// The cost of a product with these operands: each of its three sizes occurs in two of them.
OpCost ProductCost(ConstMat a, ConstMat b, ConstMat c) {
  const double sizes = double(a.rows) * a.cols * b.rows * b.cols * c.rows * c.cols;
  return Traffic({a, b, c}, 2 * std::sqrt(sizes));
}

constexpr int64_t kWideRows = 256;  // converted to f32 at a time

bool OneDnnHas(dnnl::cpu_isa isa) {
  const int bits = static_cast<int>(isa);  // a set of bits
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

void Grow(int64_t bytes, LargeMemory& memory) {
  if (bytes > memory.bytes()) memory = LargeMemory(bytes);
}

Product Product::Part(int64_t row, int64_t rows, int64_t col, int64_t cols) const {
  return {Rows(src, row, rows),
      {transposed ? Rows(w.w, col, cols) : Columns(w.w, col, cols), w.version}, transposed,
      bias == nullptr ? nullptr : bias + col, Columns(Rows(dst, row, rows), col, cols), accumulate};
}

void PackedWeights::Share(bool share) {
  if (share != share_) packed_.clear(), memory_ = Arena();
  share_ = share;
}

int64_t PackedWeights::bytes() const {
  int64_t bytes = 0;
  for (const auto& [key, copies] : packed_) {
    for (const Copy& copy : copies) bytes += copy.layout.bytes;
  }
  return bytes;
}

const void* PackedWeights::Get(const Product& p, int64_t col, const WeightLayout& layout,
    absl::FunctionRef<void(void* to)> pack) {
  const ConstMat& w = p.w.w;
  const uintptr_t at = share_ ? col : reinterpret_cast<uintptr_t>(w.data);
  std::vector<Copy>& copies = packed_[{at, p.transposed, layout.type}];
  auto copy = absl::c_find_if(copies, [&](const Copy& c) { return c.layout == layout; });
  if (copy == copies.end())
    copy = copies.insert(copy, {.layout = layout, .to = memory_.NewArray<char>(layout.bytes)});
  char* const to = copy->to;
  if (copy->source == w.data && (copy->version == p.w.version || copy->version == Weight::kAlways))
    return to;
  copy->source = w.data, copy->version = p.w.version;
  const PackBlocks& blocks = layout.blocks;
  if (blocks.depth == 0) return pack(to), to;
  // Each task reads whole rows of w.
  const int64_t step = p.transposed ? blocks.cols : blocks.depth,
                stride = p.transposed ? blocks.cols_stride : blocks.depth_stride;
  ForTiles(w.rows, step, [&](int64_t row, int64_t rows) {
    const auto* from = static_cast<const float*>(w.data) + row * w.stride;
    char* const strip = to + row / step * stride * SizeOf(layout.type);
    queue_.emplace_back(p.transposed
                            ? PackArgs{layout.depth, rows, 1, w.stride, blocks, from, strip}
                            : PackArgs{rows, layout.cols, w.stride, 1, blocks, from, strip},
        layout.type);
  });
  return to;
}

void PackedWeights::Run() {
  if (queue_.empty()) return;
  const Op op("pack weights", [&] {
    OpCost cost;
    for (const auto& [args, type] : queue_)
      cost.bytes += args.depth * args.cols * (4 + SizeOf(type));
    return cost;
  });
  ParallelFor(
      queue_.size(), [&](int64_t i) { GetKernels().pack[queue_[i].second](queue_[i].first); });
  queue_.clear();
}

struct Matmul::Rep {
  PackedWeights packed;
  std::unique_ptr<MatmulEngine> onednn = MakeOneDnnEngine(&packed),
                                kernels = MakeKernelEngine(&packed);
  Int8Engine int8{&packed};
  // Of dry runs: bytes by address (0 if weights share), direction and shape of a weight.
  std::map<std::tuple<uintptr_t, bool, int64_t, int64_t>, int64_t> dry_packed;
  int64_t dry_scratch = 0;
  LargeMemory wide;  // of ComputeInF32: two operands
  int64_t dry_wide = 0;

  void AddProduct(const Product& p) {
    const ConstMat& w = p.w.w;
    CLOZE_CHECK(p.src.cols == (p.transposed ? w.cols : w.rows) && p.src.rows == p.dst.rows &&
                p.dst.cols == (p.transposed ? w.rows : w.cols) && w.type == DType::kF32);
    if (ProductType(p.src.type) != p.src.type) return ComputeInF32(p);
    (KernelMultiplies(p.src) ? kernels : onednn)->AddProduct(p);
  }

  void AddGradient(ConstMat dy, ConstMat x, Mat dw) {
    CLOZE_CHECK(dy.rows == x.rows && dw.rows == dy.cols && dw.cols == x.cols &&
                dw.type == DType::kF32 && x.type == dy.type);
    if (x.rows == 0) return;
    if (ProductType(x.type) != x.type) return ComputeInF32(dy, x, dw);
    (KernelHasGradient(x.type) ? kernels : onednn)->AddGradient(dy, x, dw);
  }

  void Run() {
    packed.Run();
    kernels->Run();
    onednn->Run();
  }

  static int64_t WideBytes(int64_t rows, int64_t left, int64_t right) {
    return std::min(rows, kWideRows) * (left + right) * int64_t{sizeof(float)};
  }

  // Returns f32 matrices [rows, left] and [rows, right], valid until the next call.
  std::pair<Mat, Mat> NewWide(int64_t rows, int64_t left, int64_t right) {
    Grow(WideBytes(rows, left, right), wide);
    float* const memory = wide.as<float>().data();
    return {{memory, rows, left, left, DType::kF32},
        {memory + rows * left, rows, right, right, DType::kF32}};
  }

  // Computes a product of bf16 operands at once, in f32.
  void ComputeInF32(const Product& p) {
    ForTiles(p.src.rows, kWideRows, [&](int64_t row, int64_t rows) {
      Product part = p.Part(row, rows, 0, p.dst.cols);
      const Mat dst = part.dst;
      const auto [x, y] = NewWide(rows, p.src.cols, dst.cols);
      Convert(part.src, x);
      part.src = x;
      if (dst.type == DType::kBf16) {
        if (p.accumulate) Convert(dst, y);
        part.dst = y;
      }
      AddProduct(part);
      Run();
      if (dst.type == DType::kBf16) Convert(y, dst);
    });
  }
  void ComputeInF32(ConstMat dy, ConstMat x, Mat dw) {
    ForTiles(x.rows, kWideRows, [&](int64_t row, int64_t rows) {
      const auto [wide_dy, wide_x] = NewWide(rows, dy.cols, x.cols);
      Convert(Rows(dy, row, rows), wide_dy);
      Convert(Rows(x, row, rows), wide_x);
      AddGradient(wide_dy, wide_x, dw);
      Run();
    });
  }

  // Dry runs count scratch memory and packed weights: one copy for our kernels; two for oneDNN,
  // which needs a weight whole and, for batches with few rows, in tiles of columns. Sizes are
  // rounded up to oneDNN's blocks.
  void CountGradient(ConstMat dy, ConstMat x) {
    CountWide(dy, x);
    const DType type = ProductType(x.type);
    dry_scratch = std::max(dry_scratch, KernelGradientBytes(x.rows, dy.cols, x.cols, type));
  }
  void CountWide(ConstMat a, ConstMat b) {
    if (ProductType(a.type) != a.type)
      dry_wide = std::max(dry_wide, WideBytes(a.rows, a.cols, b.cols));
  }
  void CountProduct(const Product& p) {
    CountWide(p.src, p.dst);
    const ConstMat& w = p.w.w;
    const DType type = ProductType(p.src.type);
    ConstMat src = p.src;
    src.type = type;
    const bool once = KernelMultiplies(src) || p.dst.cols <= kLeastTileCols;
    const uintptr_t at = packed.shared() ? 0 : reinterpret_cast<uintptr_t>(w.data);
    dry_packed[{at, p.transposed, w.rows, w.cols}] =
        RoundUp(w.rows, 64) * RoundUp(w.cols, 64) * SizeOf(type) * (once ? 1 : 2);
  }

  // Runs a product as an op of its own.
  void RunProduct(const char* name, const Product& p) {
    const ConstMat& w = p.w.w;
    const Op op(name, [&] { return ProductCost(p.src, w, p.dst); });
    if (op.dry()) return CountProduct(p);
    AddProduct(p);
    Run();
  }
};

Matmul::Matmul() : rep_(std::make_unique<Rep>()) {}
Matmul::~Matmul() = default;

void Matmul::Forward(ConstMat x, const Weight& w, const float* bias, Mat y, bool accumulate) {
  rep_->RunProduct("matmul", {x, w, true, bias, y, accumulate});
}

void Matmul::ForwardInt8(ConstMat x, const Weight& w, const float* bias, Mat y) {
  CLOZE_CHECK(x.cols == w.w.cols && x.rows == y.rows && y.cols == w.w.rows);
  const Op op("matmul int8", [&] { return ProductCost(x, w.w, y); });
  if (!op.dry()) rep_->int8.Multiply({x, w, true, bias, y, false});
}

void Matmul::ForwardInt8Mlp(
    ConstMat x, const WeightAndBias& up, ActivationKind act, const WeightAndBias& down, Mat y) {
  const ConstMat &u = up.w.w, &d = down.w.w;
  CLOZE_CHECK(x.cols == u.cols && u.rows == d.cols && x.rows == y.rows && y.cols == d.rows);
  const Op op("mlp int8", [&] {
    return Traffic({x, u, d, y}, 2.0 * x.rows * (u.rows * u.cols + d.rows * d.cols));
  });
  if (!op.dry()) rep_->int8.Mlp(x, up, act, down, y);
}

void Matmul::PackInt8(ConstMat w, ConstMat values) {
  CLOZE_CHECK(w.rows == values.rows && w.cols == values.cols);
  rep_->int8.Pack({w, Weight::kAlways}, values);
}

void Matmul::BackwardData(ConstMat dy, const Weight& w, Mat dx, bool accumulate) {
  rep_->RunProduct("matmul dx", {dy, w, false, nullptr, dx, accumulate});
}

void Matmul::BackwardWeight(ConstMat dy, ConstMat x, Mat dw) {
  const Op op("matmul dw", [&] { return ProductCost(dy, x, dw); });
  if (op.dry()) return rep_->CountGradient(dy, x);
  rep_->AddGradient(dy, x, dw);
  rep_->Run();
}

void Matmul::Backward(ConstMat x, const Weight& w, ConstMat dy, Mat dw, Mat dx, bool accumulate) {
  if (Profile::active() != nullptr || DryRun::active()) {  // each on its own
    BackwardWeight(dy, x, dw);
    return BackwardData(dy, w, dx, accumulate);
  }
  rep_->AddGradient(dy, x, dw);  // first, because its tiles take longer
  rep_->AddProduct({dy, w, false, nullptr, dx, accumulate});
  rep_->Run();
}

void Matmul::SharePacked(bool share) { rep_->packed.Share(share); }

int64_t Matmul::packed_bytes() const { return rep_->packed.bytes(); }

Matmul::Memory Matmul::TakeDryMemory() {
  Memory memory = {0, std::exchange(rep_->dry_scratch, 0) + std::exchange(rep_->dry_wide, 0)};
  for (const auto& [key, bytes] : rep_->dry_packed) memory.packed += bytes;
  rep_->dry_packed.clear();
  return memory;
}

bool MultipliesBf16() {
  return GetKernels().multiplies_bf16 && OneDnnHas(dnnl::cpu_isa::avx512_core_bf16);
}

bool Bf16IsFaster() {
  constexpr unsigned kFp16 = 1u << 23;  // AVX512_FP16, which Cooper Lake and Zen 5 do not have
  unsigned a, b, c, d;
  const bool slow = __builtin_cpu_is("intel") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
                    (d & kFp16) != 0 && !OneDnnHas(dnnl::cpu_isa::avx512_core_amx);
  return MultipliesBf16() && !slow;
}

DType ProductType(DType type) { return MultipliesBf16() ? type : DType::kF32; }

std::string MatmulLibrary() {
  const dnnl::version_t* v = dnnl::version();
  const auto isa = dnnl::get_effective_cpu_isa();
  using Isa = dnnl::cpu_isa;
  constexpr std::pair<Isa, const char*> kNames[] = {{Isa::avx512_core_amx, "avx512_core_amx"},
      {Isa::avx512_core_bf16, "avx512_core_bf16"}, {Isa::avx512_core_vnni, "avx512_core_vnni"},
      {Isa::avx512_core, "avx512_core"}, {Isa::avx2, "avx2"}, {Isa::sse41, "sse41"}};
  const auto* known = absl::c_find_if(kNames, [&](const auto& n) { return n.first == isa; });
  const std::string name = known == std::end(kNames)
                               ? absl::StrCat("isa 0x", absl::Hex(static_cast<int>(isa)))
                               : known->second;
  return absl::StrCat("oneDNN ", v->major, ".", v->minor, ".", v->patch, " (", name, ")");
}

}  // namespace cloze
