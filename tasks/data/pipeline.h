// Reads in order, encodes in parallel, consumes in order. Private to tasks/data.
#ifndef CLOZE_TASKS_DATA_PIPELINE_H_
#define CLOZE_TASKS_DATA_PIPELINE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/base/threads.h"

namespace cloze {

// Repeats until read(&item, &bytes) or consume(item, result) returns false: fills a batch with
// read, calls encode(item, &result) on the batch in parallel, then consume in the order of reading,
// then tick(). All but encode may return errors. Only one batch is in memory.
template <typename Item, typename Result, typename Read, typename Encode, typename Consume,
    typename Tick>
absl::Status RunPipeline(Read read, Encode encode, Consume consume, Tick tick) {
  constexpr int64_t kBatchBytes = 4 << 20, kBatchItems = 8192;
  std::vector<Item> items;
  std::vector<Result> results;
  for (bool more = true; more;) {
    items.clear();
    for (int64_t bytes = 0; bytes < kBatchBytes && items.size() < kBatchItems;) {
      Item item;
      ASSIGN_OR_RETURN(more, read(&item, &bytes));
      if (!more) break;
      items.push_back(std::move(item));
    }
    results.clear();
    results.resize(items.size());
    ParallelChunks(
        items.size(), static_cast<int64_t>(items.size()) / 64 + 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) encode(items[i], &results[i]);
        });
    for (size_t i = 0; i < items.size(); ++i) {
      ASSIGN_OR_RETURN(const bool wants_more, consume(items[i], results[i]));
      if (!wants_more) return absl::OkStatus();
    }
    RETURN_IF_ERROR(tick());
  }
  return absl::OkStatus();
}

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_PIPELINE_H_
