// `cloze pretrain --plan` and `cloze finetune --plan`.
#ifndef CLOZE_TOOLS_PLAN_H_
#define CLOZE_TOOLS_PLAN_H_

#include <atomic>

#include "proto/spec.h"

namespace cloze {

// Prints what the run of the spec would need of memory and time; trains nothing that stays and
// makes no run directory. kLimit, after the part about memory, when the run does not fit.
absl::Status PrintPlan(const LoadedSpec& loaded, const std::atomic<bool>* stop);

}  // namespace cloze

#endif  // CLOZE_TOOLS_PLAN_H_
