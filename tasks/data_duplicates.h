// Duplicates in the data of a run: repeated texts, leaks, conflicting labels, and labels that
// differ only in spelling.
#ifndef CLOZE_TASKS_DATA_DUPLICATES_H_
#define CLOZE_TASKS_DATA_DUPLICATES_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "tasks/data/example_store.h"

namespace cloze {

// Larger stores are not compared.
inline constexpr int64_t kMaxCompared = 5'000'000;

// Counts of sequences as the model sees them: texts that differ only in what the tokenizer or the
// length limit removes are the same.
struct DataDuplicates {
  struct SplitCounts {
    int64_t examples = 0;
    int64_t repeated = 0;     // sequences that occurred before in the same split
    int64_t conflicting = 0;  // distinct sequences with more than one target
  };
  SplitCounts train, validation;
  int64_t leaked = 0;  // examples of validation that are also in train
};

// Compares the examples of two stores; `validation` may be null. kInterrupted when stopped.
absl::StatusOr<DataDuplicates> FindDuplicates(
    const ExampleStore& train, const ExampleStore* validation, const std::atomic<bool>* stop);

// Groups of labels that differ only in case or white space, each with two or more.
std::vector<std::vector<std::string>> LabelVariants(const std::vector<std::string>& labels);

// Returns the lines of a spec that merge such labels: trim_labels, and label_map to the most
// frequent spelling.
std::vector<std::string> LabelRepairs(const std::vector<std::string>& labels,
    absl::FunctionRef<int64_t(const std::string&)> count_of);

// Returns a line for the user for each kind of duplicates, and for each group of LabelVariants.
std::vector<std::string> DescribeDuplicates(
    const DataDuplicates& duplicates, const std::vector<std::string>& labels);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_DUPLICATES_H_
