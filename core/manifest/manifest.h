// MANIFEST: name, length and hash of each file of a folder that Cloze saved.
#ifndef CLOZE_CORE_MANIFEST_MANIFEST_H_
#define CLOZE_CORE_MANIFEST_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"

namespace cloze {

inline constexpr char kManifestName[] = "MANIFEST";

struct Manifest {
  struct File {
    std::string name;  // plain, printable
    int64_t length = 0;
    std::string hash;  // XXH3-128, 32 hexadecimal digits
  };
  int64_t step = 0;
  std::vector<File> files;
};

// Returns the text of MANIFEST; its last line is a checksum of the others.
std::string FormatManifest(const Manifest& manifest);

// Reads MANIFEST of `folder`. kMismatch unless FormatManifest would write the same bytes.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

// Compares length and, with `hashes`, content of every file; an empty hash in `manifest` matches
// any content. kMismatch names the first that differs; kIo if one cannot be read.
absl::Status CheckFiles(const std::string& folder, const Manifest& manifest, bool hashes);

// Hashes and fsyncs every file of `folder`, which holds plain files only, and writes its MANIFEST.
absl::StatusOr<Manifest> AddManifest(const std::string& folder, int64_t step);

// Replaces MANIFEST by a mark that the files of `folder` are being replaced; ReadManifest then
// fails.
absl::Status MarkReplaced(const std::string& folder);
// Returns check(). Repeats it for up to a second while it fails and MANIFEST of `folder` has that
// mark or has just changed.
absl::Status CheckBetweenSaves(const std::string& folder, absl::FunctionRef<absl::Status()> check);

// Bytes of weights. Larger ones are checked by their length only, because hashing takes long.
inline constexpr int64_t kMaxHashedWeights = 4 << 20;

// Checks the length and hash of the files of `folder` that a model is loaded from. OK without a
// MANIFEST; waits up to a second for a save in progress. kMismatch says how to accept changed
// files; kIo.
absl::Status CheckFolder(const std::string& folder);

}  // namespace cloze

#endif  // CLOZE_CORE_MANIFEST_MANIFEST_H_
