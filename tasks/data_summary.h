// Summary of the examples of a store: lengths, labels, and what was cut off.
#ifndef CLOZE_TASKS_DATA_SUMMARY_H_
#define CLOZE_TASKS_DATA_SUMMARY_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "encoder/families/model_config.h"
#include "tasks/data/cache.h"

namespace cloze {

// Facts that are known only after reading the examples of a store.
struct StoreContent {
  std::vector<int64_t> lengths;  // of the sequences, sorted
  std::vector<int64_t> classes;  // texts or words of each label; empty: no labels
  int64_t stride = 1;            // examples in the store for each one that was read
};

// Reads all examples or, if there are more than `most`, every n-th; `classes` are then multiplied
// by n. kInterrupted if *stop (may be null) becomes true.
absl::StatusOr<StoreContent> ContentOf(
    const ExampleStore& store, size_t labels, int64_t most, const std::atomic<bool>* stop);

// Returns the labels whose examples can be counted; empty for a regression or for spans.
std::vector<std::string> CountedLabels(const ModelConfig& config);

// Returns {"examples", "tokens", "empty", "truncated", ..., "lengths": {"shortest", "median",
// "p95", "longest", "histogram": [{"from", "to", "count"}, ...]}, "classes": {label: count}}.
OrderedJson SummaryOf(
    const DataStats& stats, const StoreContent& content, const std::vector<std::string>& labels);

// Lines for the user about the content of a store.
std::vector<std::string> DescribeStore(absl::string_view name, const BuiltStore& built);
// Returns those of its lines that say what is unusual about the texts.
std::vector<std::string> DescribeOddities(absl::string_view name, const DataStats& stats);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_SUMMARY_H_
