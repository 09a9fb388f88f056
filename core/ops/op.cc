#include "core/ops/op.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "core/ops/matmul.h"

namespace cloze {

extern const Kernels kKernels_amx, kKernels_avx512bf16, kKernels_avx512vnni, kKernels_avx512,
    kKernels_avx2vnni, kKernels_avx2, kKernels_baseline;

namespace {

// Increment with every change of code in core/ops or encoder that changes the bits of training.
constexpr int kKernelsVersion = 4;
#ifdef __clang__
constexpr char kCompiler[] = __VERSION__;
#else
constexpr char kCompiler[] = "GCC " __VERSION__;
#endif

// True if the CPU multiplies tiles of bf16 and of bytes, and the system lets this process use them.
bool HasAmx() {
  constexpr unsigned kNeeded = 1u << 22 | 1u << 24 | 1u << 25;  // AMX-BF16, -TILE, -INT8
  constexpr int kRequestPermission = 0x1023,
                kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a, b, c, d;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kNeeded) != kNeeded) return false;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// True if the CPU multiplies bytes in vectors of 256 bits.
bool HasAvxVnni() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0;
}

// Returns the best table within CLOZE_MAX_ISA; an unknown name there limits nothing.
const Kernels& Choose() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  const std::pair<const Kernels*, bool> best_first[] = {{&kKernels_amx, bf16 && vnni},
      {&kKernels_avx512bf16, bf16 && vnni}, {&kKernels_avx512vnni, vnni},
      {&kKernels_avx512, avx512}, {&kKernels_avx2vnni, avx2 && HasAvxVnni()},
      {&kKernels_avx2, avx2}, {&kKernels_baseline, true}};
  const char* variable = std::getenv("CLOZE_MAX_ISA");
  const std::string_view limit = variable == nullptr ? "" : variable;
  bool allowed = absl::c_none_of(best_first, [&](const auto& e) { return limit == e.first->name; });
  for (const auto& [kernels, runs] : best_first) {
    allowed |= limit == kernels->name;
    if (allowed && runs && (kernels != &kKernels_amx || HasAmx())) return *kernels;
  }
  return kKernels_baseline;
}

}  // namespace

const Kernels& GetKernels() {
  static const Kernels& kernels = Choose();
  return kernels;
}

std::string KernelsName() {
  return absl::StrCat(GetKernels().name, " ", kKernelsVersion, ", ", kCompiler);
}
OpCost MemoryCost(std::initializer_list<ConstMat> mats, double flop) {
  OpCost cost = {.flop = flop};
  for (const ConstMat& m : mats)
    cost.bytes += m.empty() ? 0 : double(m.rows) * m.cols * SizeOf(m.type);
  return cost;
}

void ForRows(const char* op, std::initializer_list<ConstMat> mats, int64_t rows,
    absl::FunctionRef<void(int64_t row)> f) {
  ForRowChunks(op, mats, rows, kRowChunk, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r);
  });
}

void ForRowChunks(const char* op, std::initializer_list<ConstMat> mats, int64_t rows, int64_t chunk,
    absl::FunctionRef<void(int64_t begin, int64_t end)> f) {
  const Op scope(op, [&] { return MemoryCost(mats); });
  if (!scope.dry()) ParallelChunks(rows, chunk, f);
}

void ReduceRows(int64_t rows, int64_t cols, Arena& arena, float* sum,
    absl::FunctionRef<void(int64_t, int64_t, float*)> f) {
  const Arena::Mark mark = arena.mark();
  const int64_t chunks = CeilDiv(rows, kRowChunk);
  float* partial = arena.NewArray<float>(chunks * cols);
  if (DryRun::active()) return arena.Rewind(mark);
  ParallelFor(chunks, [&](int64_t i) {
    std::memset(partial + i * cols, 0, cols * sizeof(float));
    f(i * kRowChunk, std::min(rows, (i + 1) * kRowChunk), partial + i * cols);
  });
  if (sum != nullptr)
    ParallelChunks(cols, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < chunks; ++i) {
        const float* p = partial + i * cols;
        for (int64_t c = begin; c < end; ++c) sum[c] += p[c];
      }
    });
  arena.Rewind(mark);
}

}  // namespace cloze
