// From files to a store of tokenised examples, kept in a cache by the content of the files.
#ifndef CLOZE_TASKS_BUILD_H_
#define CLOZE_TASKS_BUILD_H_

#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "proto/task.pb.h"
#include "tasks/data/cache.h"
#include "tasks/labels.h"
#include "tasks/windows.h"

namespace cloze {

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

}  // namespace cloze

#endif  // CLOZE_TASKS_BUILD_H_
