#include "core/ops/dispatch.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "core/ops/kernels/kernels.h"

namespace cloze {

extern const Kernels kKernels_amx, kKernels_avx512bf16, kKernels_avx512, kKernels_avx2,
    kKernels_baseline;

namespace {

// Increment with every change of code in core/ops or encoder that changes the bits of a result.
constexpr int kKernelsVersion = 3;
#ifdef __clang__
constexpr char kCompiler[] = __VERSION__;
#else
constexpr char kCompiler[] = "GCC " __VERSION__;
#endif

// True if the CPU multiplies tiles of bf16 and the system lets this process use them.
bool HasAmx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  constexpr int kRequestPermission = 0x1023,
                kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a, b, c, d;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTile) == 0)
    return false;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

const Kernels& Choose() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  const char* limit = std::getenv("CLOZE_MAX_ISA");
  const auto allowed = [&](const Kernels& kernels) {
    if (limit == nullptr) return true;
    for (const Kernels* k : {&kKernels_baseline, &kKernels_avx2, &kKernels_avx512,
             &kKernels_avx512bf16, &kKernels_amx}) {
      if (k == &kernels) return true;
      if (std::strcmp(limit, k->name) == 0) return false;
    }
    return false;
  };
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  if (bf16 && allowed(kKernels_amx) && HasAmx()) return kKernels_amx;
  if (bf16 && allowed(kKernels_avx512bf16)) return kKernels_avx512bf16;
  if (avx512 && allowed(kKernels_avx512)) return kKernels_avx512;
  if (avx2 && allowed(kKernels_avx2)) return kKernels_avx2;
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
bool MultipliesBf16() { return GetKernels().multiplies_bf16; }

}  // namespace cloze
