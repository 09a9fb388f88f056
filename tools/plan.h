// `cloze pretrain --plan` and `cloze finetune --plan`.
#ifndef CLOZE_TOOLS_PLAN_H_
#define CLOZE_TOOLS_PLAN_H_

#include <atomic>

#include "proto/spec.h"

namespace cloze {

// Prints the memory and time that the run of the spec would need. Creates no run directory. kLimit,
// after printing the part about memory, if the run does not fit.
absl::Status PrintPlan(const LoadedSpec& loaded, const std::atomic<bool>* stop);

}  // namespace cloze

#endif  // CLOZE_TOOLS_PLAN_H_
