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
  return MemoryCost({a, b, c}, 2 * std::sqrt(sizes));
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

Product Product::Tile(int64_t row, int64_t rows, int64_t col, int64_t cols) const {
  return {Rows(src, row, rows),
      {transposed ? Rows(w.w, col, cols) : Columns(w.w, col, cols), w.version, w.int8}, transposed,
      bias == nullptr ? nullptr : bias + col, Columns(Rows(dst, row, rows), col, cols), accumulate};
}

int64_t MatmulEngine::PackedBytes(const Product& p) const {
  return RoundUp(p.w.w.rows, 64) * RoundUp(p.w.w.cols, 64) * SizeOf(p.src.type);
}

struct Matmul::Rep {
  PackedWeights packed;
  Int8Engine int8{&packed};
  std::unique_ptr<MatmulEngine> onednn = MakeOneDnnEngine(&packed),
                                kernels = MakeKernelEngine(&packed);
  // Of dry runs: bytes by address (0 if weights share), direction and shape of a weight.
  std::map<std::tuple<uintptr_t, bool, int64_t, int64_t>, int64_t> dry_packed;
  int64_t dry_scratch = 0;
  LargeMemory wide;  // of ComputeInF32: two operands
  int64_t dry_wide = 0;

  // Return the engine of a product, or of gradients from activations of `type`; null if the CPU
  // does not multiply their type, so that they are computed in f32.
  MatmulEngine* EngineOf(const Product& p) {
    if (int8.Takes(p)) return &int8;
    if (ProductType(p.src.type) != p.src.type) return nullptr;
    return kernels->Takes(p) ? kernels.get() : onednn.get();
  }
  MatmulEngine* EngineOfGradient(DType type) {
    if (ProductType(type) != type) return nullptr;
    return kernels->TakesGradient(type) ? kernels.get() : onednn.get();
  }

  void AddProduct(const Product& p) {
    const ConstMat& w = p.w.w;
    CLOZE_CHECK(p.src.cols == (p.transposed ? w.cols : w.rows) && p.src.rows == p.dst.rows &&
                p.dst.cols == (p.transposed ? w.rows : w.cols) && w.type == DType::kF32);
    MatmulEngine* const engine = EngineOf(p);
    if (engine == nullptr) return ComputeInF32(p);
    engine->AddProduct(p);
  }

  void AddGradient(ConstMat dy, ConstMat x, Mat dw) {
    CLOZE_CHECK(dy.rows == x.rows && dw.rows == dy.cols && dw.cols == x.cols &&
                dw.type == DType::kF32 && x.type == dy.type);
    if (x.rows == 0) return;
    MatmulEngine* const engine = EngineOfGradient(x.type);
    if (engine == nullptr) return ComputeInF32(dy, x, dw);
    engine->AddGradient(dy, x, dw);
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
      Product part = p.Tile(row, rows, 0, p.dst.cols);
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

  // Dry runs count packed weights and scratch memory.
  void CountWide(ConstMat a, ConstMat b) {
    dry_wide = std::max(dry_wide, WideBytes(a.rows, a.cols, b.cols));
  }
  void CountGradient(ConstMat dy, ConstMat x) {
    if (EngineOfGradient(x.type) == nullptr) {
      CountWide(dy, x);
      x.type = DType::kF32;
    }
    const int64_t bytes = EngineOfGradient(x.type)->GradientBytes(x.rows, dy.cols, x.cols, x.type);
    dry_scratch = std::max(dry_scratch, bytes);
  }
  void CountProduct(Product p) {
    if (EngineOf(p) == nullptr) {
      CountWide(p.src, p.dst);
      p.src.type = DType::kF32;
    }
    const ConstMat& w = p.w.w;
    const uintptr_t at = packed.shared() ? 0 : reinterpret_cast<uintptr_t>(w.data);
    dry_packed[{at, p.transposed, w.rows, w.cols}] = EngineOf(p)->PackedBytes(p);
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
  rep_->RunProduct(w.int8 ? "matmul int8" : "matmul", {x, w, true, bias, y, accumulate});
}

void Matmul::ForwardMlp(
    ConstMat x, const WeightAndBias& up, ActivationKind act, const WeightAndBias& down, Mat y) {
  const ConstMat &u = up.w.w, &d = down.w.w;
  CLOZE_CHECK(x.cols == u.cols && u.rows == d.cols && x.rows == y.rows && y.cols == d.rows &&
              up.w.int8 && down.w.int8);
  const Op op("mlp int8", [&] {
    return MemoryCost({x, u, d, y}, 2.0 * x.rows * (u.rows * u.cols + d.rows * d.cols));
  });
  if (!op.dry()) rep_->int8.Mlp(x, up, act, down, y);
}

void Matmul::Pin(const Weight& w, ConstMat values) {
  CLOZE_CHECK(w.int8 && w.w.rows == values.rows && w.w.cols == values.cols);
  rep_->int8.Pin(w, values);
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

void Matmul::DropPacked() { rep_->packed.Drop(); }

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
