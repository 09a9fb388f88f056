// From files to a store of tokenised examples, kept in a cache by the content of the files.
#ifndef CLOZE_TASKS_DATA_BUILD_H_
#define CLOZE_TASKS_DATA_BUILD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/data/example_store.h"
#include "tasks/data/labels.h"
#include "tasks/data/windows.h"

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

// Each of these opens the store `cache_dir/<kind>-<hash>` when there is a sound one, else builds
// it. The hash covers the content of the files, what of the specs matters, the tokenizer and the
// format. The result does not depend on the number of threads. Errors: kData for what is wrong in a
// file ("file:line: field: ...") and for data without a usable example, kMismatch for a tokenizer
// without a special token that is needed.

// <class> tokens [<sep>]: sequences of max_tokens that never cross the border of a document; the
// last two of a document share its rest evenly.
absl::StatusOr<BuiltStore> BuildMaskedLm(const DataSpec& data, const MaskedLmSpec& task,
    const Tokenizer& tokenizer, const BuildOptions& options);

// <class> text <sep> [pair <sep>], cut to max_tokens as long_texts says; the label's id stands at
// row 0, or the values of several labels or of the number. Of WINDOWS, all but a text's first say
// `continues`.
absl::StatusOr<BuiltStore> BuildClassification(const DataSpec& data,
    const SequenceClassificationSpec& task, const std::vector<std::string>& labels,
    const Tokenizer& tokenizer, const BuildOptions& options);

// <class> words <sep>; a word's label stands at its first piece. A long sentence becomes windows,
// of which all but the first say `continues`; each word has its label in one of them (`overlap`).
// IOB1 tags count as IOB2 ones where the labels have a B; a note says so.
absl::StatusOr<BuiltStore> BuildTagging(const DataSpec& data, const TokenTaggingSpec& task,
    const std::vector<std::string>& labels, const Tokenizer& tokenizer, const BuildOptions& options,
    Overlap overlap = Overlap::kNone);

// The files of `data` as they are now.
absl::StatusOr<std::vector<SourceFile>> SourcesOf(const DataSpec& data);

// kData naming the first file that is not as it was.
absl::Status CheckSources(absl::Span<const SourceFile> sources);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_BUILD_H_
