// The tables of kernels that this CPU can run.
#ifndef CLOZE_TESTS_CORE_OPS_RUNNABLE_H_
#define CLOZE_TESTS_CORE_OPS_RUNNABLE_H_

#include <cpuid.h>

#include <vector>

#include "core/ops/kernels/kernels.h"

namespace cloze {

extern const Kernels kKernels_amx, kKernels_avx512bf16, kKernels_avx512vnni, kKernels_avx512,
    kKernels_avx2vnni, kKernels_avx2, kKernels_baseline;

namespace reference {

// Returns them in order of preference, the best one last.
inline std::vector<const Kernels*> Runnable() {
  std::vector<const Kernels*> tables = {&kKernels_baseline};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    tables.push_back(&kKernels_avx2);
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  unsigned a = 0, b, c, d;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 4) != 0)
    tables.push_back(&kKernels_avx2vnni);
  if (avx512) tables.push_back(&kKernels_avx512);
  if (avx512 && __builtin_cpu_supports("avx512vnni")) tables.push_back(&kKernels_avx512vnni);
  if (avx512 && __builtin_cpu_supports("avx512bf16")) tables.push_back(&kKernels_avx512bf16);
  if (&GetKernels() == &kKernels_amx)
    tables.push_back(&kKernels_amx);  // needs a permission that GetKernels requests
  return tables;
}

}  // namespace reference
}  // namespace cloze

#endif  // CLOZE_TESTS_CORE_OPS_RUNNABLE_H_
