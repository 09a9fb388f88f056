// The cache of stores: its keys, and reusing or building what a key names. Private to tasks/data.
#ifndef CLOZE_TASKS_DATA_CACHE_H_
#define CLOZE_TASKS_DATA_CACHE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "tasks/data/build.h"
#include "tasks/data/hash.h"

namespace cloze {

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

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_CACHE_H_
