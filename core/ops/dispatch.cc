// Picks the kernels for this CPU.
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/ops/kernels/kernels.h"

namespace cloze {

extern const Kernels kKernels_avx512bf16, kKernels_avx512, kKernels_avx2, kKernels_baseline;

namespace {

const Kernels& Choose() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const char* limit = std::getenv("CLOZE_MAX_ISA");
  const auto allowed = [&](const Kernels& kernels) {
    if (limit == nullptr) return true;
    for (const Kernels* k : {&kKernels_baseline, &kKernels_avx2, &kKernels_avx512, &kKernels_avx512bf16}) {
      if (k == &kernels) return true;
      if (std::strcmp(limit, k->name) == 0) return false;
    }
    return false;
  };
  if (avx512 && __builtin_cpu_supports("avx512bf16") && allowed(kKernels_avx512bf16)) return kKernels_avx512bf16;
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
  const int64_t keys = (tokens + 15) / 16 * 16, width = (head_dim + 15) / 16 * 16;
  return 7 * keys * width + kAttentionQueries * (3 * keys + 3 * width + 1) + 2 * (keys + 128);
}

}  // namespace cloze
