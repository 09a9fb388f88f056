// Picks the kernels for this CPU.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/ops/kernels/kernels.h"

namespace cloze {

extern const Kernels kKernels_amx, kKernels_avx512bf16, kKernels_avx512, kKernels_avx2,
    kKernels_baseline;

namespace {

// Does the CPU multiply tiles of bf16, and does the system let this process use them?
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

int64_t AttentionScratch(int64_t tokens, int64_t head_dim) {
  const int64_t keys = (tokens + 31) / 32 * 32, width = (head_dim + 15) / 16 * 16;
  return 7 * keys * width + kAttentionQueries * (3 * keys + 3 * width + 1) + 2 * (keys + 128);
}

}  // namespace cloze
