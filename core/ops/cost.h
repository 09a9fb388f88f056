// Costs of ops for the profile. Private to core/ops.
#ifndef CLOZE_CORE_OPS_COST_H_
#define CLOZE_CORE_OPS_COST_H_

#include <initializer_list>

#include "core/base/profile.h"
#include "core/tensor/mat.h"

namespace cloze {

// Returns the cost of reading or writing each of `mats` once; empty ones cost nothing.
inline OpCost Traffic(std::initializer_list<ConstMat> mats, double flop = 0) {
  OpCost cost = {.flop = flop};
  for (const ConstMat& m : mats)
    cost.bytes += m.empty() ? 0 : double(m.rows) * m.cols * SizeOf(m.type);
  return cost;
}

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_COST_H_
