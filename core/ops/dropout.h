// From a dropout site to what the kernels need. Private to core/ops.
#ifndef CLOZE_CORE_OPS_DROPOUT_H_
#define CLOZE_CORE_OPS_DROPOUT_H_

#include "core/ops/ops.h"

namespace cloze {

// The site for rows from `row` on.
RowDropout RowsFrom(const DropoutSite& site, int64_t row);

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_DROPOUT_H_
