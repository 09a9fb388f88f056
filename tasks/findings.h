// Oddities in the data of a run: repeated texts, leaks, conflicting labels.
#ifndef CLOZE_TASKS_FINDINGS_H_
#define CLOZE_TASKS_FINDINGS_H_

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
struct Findings {
  struct Part {
    int64_t examples = 0;
    int64_t repeated = 0;     // sequences that occurred before in the same part
    int64_t conflicting = 0;  // distinct sequences with more than one target
  };
  Part train, validation;
  int64_t leaked = 0;  // examples of validation that are also in train
};

// Compares the examples of two stores; `validation` may be null. kInterrupted when stopped.
absl::StatusOr<Findings> Compare(
    const ExampleStore& train, const ExampleStore* validation, const std::atomic<bool>* stop);

// Groups of labels that differ only in case or white space, each with two or more.
std::vector<std::vector<std::string>> LabelVariants(const std::vector<std::string>& labels);

// Returns the lines of a spec that merge such labels: trim_labels, and label_map to the most
// frequent spelling.
std::vector<std::string> LabelRepairs(const std::vector<std::string>& labels,
    absl::FunctionRef<int64_t(const std::string&)> count_of);

// One line for the user per finding.
std::vector<std::string> Describe(const Findings& findings, const std::vector<std::string>& labels);

}  // namespace cloze

#endif  // CLOZE_TASKS_FINDINGS_H_
