// The token cache: stores of examples, named by a hash of the data they were made from, and the
// pipeline that fills them.
#ifndef CLOZE_TASKS_DATA_CACHE_H_
#define CLOZE_TASKS_DATA_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/base/threads.h"
#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/data/example_store.h"

namespace cloze {

struct BuildOptions {
  std::string cache_dir;  // made if missing
  std::function<void(int64_t done, int64_t total)> progress =
      {};                                   // bytes of the files tokenized so far; may be empty
  const std::atomic<bool>* stop = nullptr;  // true: end with kInterrupted, nothing half-written
  bool only_cached = false;                 // kNoInput instead of building; changes nothing on disk
  // Name of the store that the run has made of the streams in these data, which are not read again;
  // kUnnamedStore if it is not recorded; empty: none.
  std::string made = {};
  bool reads_streams = true;  // false: kNoInput instead of reading a stream
};

// Stands for a store that an earlier version has made of a stream, whose name tells no content.
inline constexpr char kUnnamedStore[] = "-";

// The state of a file when it was read; of a stream only the path.
struct SourceFile {
  std::string path;
  int64_t size = 0, mtime_ns = 0;
  uint64_t sample = 0;  // XXH3 of 16 blocks spread over the file; of all of a small file
  bool stream = false;
  bool operator==(const SourceFile&) const = default;
};

struct BuiltStore {
  ExampleStore store;
  std::vector<SourceFile> sources;
  bool reused = false;
  std::string note;  // a note for the user, such as that a broken cache was rebuilt; or empty
  // Labels of evaluation data that the model lacks; empty if they were found by an earlier run.
  std::vector<std::string> unseen_labels = {};

  // Appends to the note.
  template <typename... Text>
  void AddNote(const Text&... text) {
    absl::StrAppend(&note, note.empty() ? "" : "; ", text...);
  }
  // The name of the store's folder, which ends with the hash of what it was made from.
  std::string name() const { return BaseName(store.folder()); }
};

// kInterrupted when the user asked to stop.
absl::Status CheckStop(const BuildOptions& options);

// Repeats until read(&item, &bytes) or consume(item, result) returns false: fills a batch with
// read, calls encode(item, &result) on the batch in parallel, then consume in the order of reading,
// then tick(). All but encode may return errors. Only one batch is in memory.
template <typename Item, typename Result, typename Read, typename Encode, typename Consume,
    typename Tick>
absl::Status RunPipeline(Read read, Encode encode, Consume consume, Tick tick) {
  constexpr int64_t kBatchBytes = 4 << 20, kBatchItems = 8192;
  for (bool more = true; more;) {
    std::vector<Item> items;
    for (int64_t bytes = 0; bytes < kBatchBytes && items.size() < kBatchItems;) {
      Item item;
      ASSIGN_OR_RETURN(more, read(&item, &bytes));
      if (!more) break;
      items.push_back(std::move(item));
    }
    const auto n = static_cast<int64_t>(items.size());
    std::vector<Result> results(n);
    ParallelChunks(n, n / 64 + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) encode(items[i], &results[i]);
    });
    for (int64_t i = 0; i < n; ++i) {
      ASSIGN_OR_RETURN(const bool wants_more, consume(items[i], results[i]));
      if (!wants_more) return absl::OkStatus();
    }
    RETURN_IF_ERROR(tick());
  }
  return absl::OkStatus();
}

// A kind of store: the prefix of the folder's name, its sizes, and the hash of the task's settings
// that affect its content.
struct StoreKind {
  std::string name;
  int32_t vocab = 0, labels = 0;
  Targets targets = Targets::kLabels;
  Hasher key;  // the task's part is added by the caller
};

// Fills the store through the writer and completes *stats.
using FillStore = absl::FunctionRef<absl::Status(ExampleStoreWriter*, DataStats*)>;

// Adds files and tokenizer to kind.key. Opens the store named by the key, or builds it with `fill`.
// A stream has no content before it is read: the store of data with streams is named by the key and
// its own content, and only options.made tells of an earlier one.
absl::StatusOr<BuiltStore> OpenOrBuild(const DataSpec& data, StoreKind kind,
    const Tokenizer& tokenizer, const BuildOptions& options, FillStore fill);

// Returns the current state of the files of `data`.
absl::StatusOr<std::vector<SourceFile>> SourcesOf(const DataSpec& data);

// Returns kData, naming the first file that has changed.
absl::Status CheckSources(absl::Span<const SourceFile> sources);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_CACHE_H_
