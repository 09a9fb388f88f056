// The kernels in use on this CPU.
#ifndef CLOZE_CORE_OPS_DISPATCH_H_
#define CLOZE_CORE_OPS_DISPATCH_H_

#include <string>

namespace cloze {

// Returns instruction set, version and compiler of the kernels, as "amx 2, GCC 12.2.0". Together
// with MatmulLibrary() they determine the bits of all results.
std::string KernelsName();
// True if the CPU multiplies bf16, which makes it the faster type.
bool MultipliesBf16();

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_DISPATCH_H_
