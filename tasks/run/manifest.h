// MANIFEST of a checkpoint: which files belong to it, how long they are, and what they hash to.
#ifndef CLOZE_TASKS_RUN_MANIFEST_H_
#define CLOZE_TASKS_RUN_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace cloze {

inline constexpr char kManifestName[] = "MANIFEST";

// One file of a folder.
struct ManifestEntry {
  std::string name;  // plain, printable
  int64_t length = 0;
  std::string hash;  // XXH3-128, 32 hexadecimal digits
};

struct Manifest {
  int64_t step = 0;
  std::vector<ManifestEntry> files;
};

// Hashes every file of `folder` (plain files only) and makes each durable.
absl::StatusOr<Manifest> MakeManifest(const std::string& folder, int64_t step);

// The text of the file, with a checksum of its own in the last line.
std::string FormatManifest(const Manifest& manifest);

// Reads MANIFEST of `folder`. kMismatch unless it is byte for byte what FormatManifest writes.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

// Compares length and, when `hashes`, content of every file. kMismatch names the first that
// differs.
absl::Status CheckFiles(const std::string& folder, const Manifest& manifest, bool hashes);

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_MANIFEST_H_
