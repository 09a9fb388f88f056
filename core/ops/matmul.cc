#include "core/ops/matmul.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/number.h"
#include "core/ops/cost.h"
#include "core/ops/matrix_unit.h"
#include "core/ops/onednn.h"
#include "core/ops/onednn_engine.h"
#include "core/ops/tiles.h"

namespace cloze {
namespace {

// The cost of a product with these operands: each of its three sizes occurs in two of them.
OpCost ProductCost(ConstMat a, ConstMat b, ConstMat c) {
  const double sizes = double(a.rows) * a.cols * b.rows * b.cols * c.rows * c.cols;
  return Traffic({a, b, c}, 2 * std::sqrt(sizes));
}

}  // namespace

struct Matmul::Rep {
  PackedWeights packed;
  OneDnnEngine onednn{&packed};
  MatrixUnit unit{&packed};
  // Of dry runs: bytes by address (0 if weights share), direction and shape of a weight.
  std::map<std::tuple<uintptr_t, bool, int64_t, int64_t>, int64_t> dry_packed;
  int64_t dry_scratch = 0;

  // dst (+)= src w^T (`transposed`) or src w, + bias.
  void AddProduct(
      ConstMat src, const Weight& w, bool transposed, const float* bias, Mat dst, bool accumulate) {
    CLOZE_CHECK(src.cols == (transposed ? w.w.cols : w.w.rows) && src.rows == dst.rows &&
                dst.cols == (transposed ? w.w.rows : w.w.cols) && w.w.type == DType::kF32);
    if (MatrixUnit::Multiplies(src)) {
      unit.AddProduct(src, w, transposed, bias, dst, accumulate);
    } else {
      onednn.AddProduct(src, w, transposed, bias, dst, accumulate);
    }
  }

  void AddGradient(ConstMat dy, ConstMat x, Mat dw) {
    CLOZE_CHECK(dy.rows == x.rows && dw.rows == dy.cols && dw.cols == x.cols &&
                dw.type == DType::kF32 && x.type == dy.type);
    if (x.rows == 0) return;
    if (MatrixUnit::HasGradient(x.type)) {
      unit.AddGradient(dy, x, dw);
    } else {
      onednn.AddGradient(dy, x, dw);
    }
  }

  void Run() {
    packed.Run();
    unit.Run();
    onednn.Run();
  }

  // A weight is packed once for the matrix unit. Otherwise it is packed whole and, because batches
  // with few rows are cut into columns, a second time in tiles. oneDNN rounds up to its blocks.
  void CountPacked(ConstMat src, const Weight& w, bool transposed) {
    const bool once =
        MatrixUnit::Multiplies(src) || (transposed ? w.w.rows : w.w.cols) <= kLeastTileCols;
    const uintptr_t at = packed.shared() ? 0 : reinterpret_cast<uintptr_t>(w.w.data);
    dry_packed[{at, transposed, w.w.rows, w.w.cols}] =
        RoundUp(w.w.rows, 64) * RoundUp(w.w.cols, 64) * SizeOf(src.type) * (once ? 1 : 2);
  }
};

Matmul::Matmul() : rep_(std::make_unique<Rep>()) {}
Matmul::~Matmul() = default;

void Matmul::Forward(ConstMat x, const Weight& w, const float* bias, Mat y, bool accumulate) {
  const Op op("matmul", [&] { return ProductCost(x, w.w, y); });
  if (op.dry()) return rep_->CountPacked(x, w, true);
  rep_->AddProduct(x, w, true, bias, y, accumulate);
  rep_->Run();
}

void Matmul::BackwardData(ConstMat dy, const Weight& w, Mat dx, bool accumulate) {
  const Op op("matmul dx", [&] { return ProductCost(dy, w.w, dx); });
  if (op.dry()) return rep_->CountPacked(dy, w, false);
  rep_->AddProduct(dy, w, false, nullptr, dx, accumulate);
  rep_->Run();
}

void Matmul::BackwardWeight(ConstMat dy, ConstMat x, Mat dw) {
  const Op op("matmul dw", [&] { return ProductCost(dy, x, dw); });
  if (op.dry()) {
    const int64_t bytes = MatrixUnit::GradientBytes(x.rows, dw.rows, dw.cols, x.type);
    rep_->dry_scratch = std::max(rep_->dry_scratch, bytes);
    return;
  }
  rep_->AddGradient(dy, x, dw);
  rep_->Run();
}

void Matmul::Backward(ConstMat x, const Weight& w, ConstMat dy, Mat dw, Mat dx, bool accumulate) {
  if (Profile::active() != nullptr || DryRun::active()) {  // each on its own
    BackwardWeight(dy, x, dw);
    return BackwardData(dy, w, dx, accumulate);
  }
  rep_->AddGradient(dy, x, dw);  // first, because its tiles take longer
  rep_->AddProduct(dy, w, false, nullptr, dx, accumulate);
  rep_->Run();
}

void Matmul::SharePacked(bool share) { rep_->packed.Share(share); }

int64_t Matmul::packed_bytes() const { return rep_->packed.bytes(); }

Matmul::Memory Matmul::TakeDryMemory() {
  Memory memory = {0, std::exchange(rep_->dry_scratch, 0)};
  for (const auto& [key, bytes] : rep_->dry_packed) memory.packed += bytes;
  rep_->dry_packed.clear();
  return memory;
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
