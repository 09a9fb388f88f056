// `cloze data check`: what the data of a spec contain, and what is unusual in them.
#ifndef CLOZE_TASKS_JOBS_DATA_CHECK_H_
#define CLOZE_TASKS_JOBS_DATA_CHECK_H_

#include <atomic>
#include <string>

#include "core/base/json.h"
#include "core/base/status.h"
#include "proto/spec.h"

namespace cloze {

// Reads and tokenizes all data of the spec with a cache in the existing folder `scratch`. Returns
// "train" and, if the spec has validation data, "validation", each with counts, "lengths" (a
// histogram in tokens) and "classes"; "leaked", "label_variants", "labels_only_in_validation" and
// "warnings", one sentence per finding.
absl::StatusOr<OrderedJson> CheckData(
    const LoadedSpec& loaded, const std::string& scratch, const std::atomic<bool>* stop);

// Returns the same as a table.
std::string DataTable(const OrderedJson& check);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_DATA_CHECK_H_
