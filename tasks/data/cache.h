// The token cache: stores of examples, found by the content of the files they were made from.
#ifndef CLOZE_TASKS_DATA_CACHE_H_
#define CLOZE_TASKS_DATA_CACHE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/data/example_store.h"

namespace cloze {

struct BuildOptions {
  std::string cache_dir;  // made if missing
  std::function<void(int64_t done, int64_t total)>
      progress;                             // bytes of the files tokenised so far; may be empty
  const std::atomic<bool>* stop = nullptr;  // true: end with kInterrupted, nothing half-written
  bool only_cached = false;                 // kNoInput instead of building; changes nothing on disk
};

// A file as it was when it was read.
struct SourceFile {
  std::string path;
  int64_t size = 0, mtime_ns = 0;
  uint64_t sample = 0;  // XXH3 of 16 blocks spread over the file; of all of a small one
  bool operator==(const SourceFile&) const = default;
};

struct BuiltStore {
  ExampleStore store;
  std::vector<SourceFile> sources;
  bool reused = false;
  std::string
      note;  // what the user should know, e.g. that a broken cache was built anew; else empty
};

// kInterrupted when the user asked to stop.
absl::Status CheckStop(const BuildOptions& options);

// A kind of store: the start of the folder's name, the sizes it is for, and what of the task's spec
// decides its content.
struct StoreKind {
  std::string name;
  int32_t vocab = 0, labels = 0;
  Targets targets = Targets::kLabels;
  Hasher key;  // with the task's part already added
};

// Fills the store through the writer and completes *stats.
using FillStore = absl::FunctionRef<absl::Status(ExampleStoreWriter*, DataStats*)>;

// Completes the key with files and tokenizer, opens the store that it names, or builds it with
// `fill`.
absl::StatusOr<BuiltStore> OpenOrBuild(const DataSpec& data, StoreKind kind,
    const Tokenizer& tokenizer, const BuildOptions& options, FillStore fill);

// The files of `data` as they are now.
absl::StatusOr<std::vector<SourceFile>> SourcesOf(const DataSpec& data);

// kData naming the first file that is not as it was.
absl::Status CheckSources(absl::Span<const SourceFile> sources);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_CACHE_H_
