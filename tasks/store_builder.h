// For tasks: builds stores of examples from the data of a spec.
#ifndef CLOZE_TASKS_STORE_BUILDER_H_
#define CLOZE_TASKS_STORE_BUILDER_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tasks/data/cache.h"
#include "tasks/data/readers.h"
#include "tasks/record.h"

namespace cloze {

// Calls f(one) for each file: the spec of this file alone, without `share` and `leave_out`. Skips
// streams.
absl::Status ForEachFile(
    const DataSpec& data, absl::FunctionRef<absl::Status(const DataSpec& one)> f);

// Reads the first item of each file. Skips streams, and ignores `share` and `leave_out`.
template <typename Item>
absl::Status CheckFirst(const DataSpec& data, Labels labels) {
  return ForEachFile(data, [&](const DataSpec& one) -> absl::Status {
    ASSIGN_OR_RETURN(ReaderOf<Item> reader, ReaderOf<Item>::Open(one, labels));
    Item item;
    return reader.Next(&item).status();
  });
}

// Special tokens that a task needs besides <class>.
struct NeededTokens {
  bool sep = true, mask = false, unk = false;
};
// kMismatch if the tokenizer lacks one of them.
absl::Status RequireTokens(const Tokenizer& tokenizer, NeededTokens needed);

// Describes a store; the task may add to its key.
StoreKind StoreKindOf(const std::string& name, const Tokenizer& tokenizer,
    const std::vector<std::string>& labels, int32_t max_tokens, bool append_sep);

// The last argument of RunPipeline: reports progress and checks for a stop after each batch.
template <typename Reader>
auto Ticker(const Reader& reader, const BuildOptions& options) {
  return [&reader, &options] {
    if (options.progress) options.progress(reader.position(), reader.total_bytes());
    return CheckStop(options);
  };
}

// Adds each number of `stats` to that of *sum.
void AddStats(const DataStats& stats, DataStats* sum);

// Fills a store with texts: read, encode and tick as in RunPipeline. `encode` sets the statistics
// that its task has; documents and the sizes of the store are set here.
template <typename Item, typename Read, typename Encode, typename Tick>
absl::Status FillWithTexts(
    Read read, Encode encode, Tick tick, ExampleStoreWriter* writer, DataStats* stats) {
  const auto consume = [&](const Item&, const EncodedText& text) -> absl::StatusOr<bool> {
    for (const Example& window : text.windows) RETURN_IF_ERROR(writer->Add(window));
    AddStats(text.stats, stats);
    ++stats->documents;
    return true;
  };
  return RunPipeline<Item, EncodedText>(read, encode, consume, tick);
}

}  // namespace cloze

#endif  // CLOZE_TASKS_STORE_BUILDER_H_
