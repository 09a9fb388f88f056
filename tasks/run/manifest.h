// MANIFEST of a checkpoint or saved model: name, length and hash of each of its files.
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

// Hashes and fsyncs every file of `folder`, which holds plain files only.
absl::StatusOr<Manifest> MakeManifest(const std::string& folder, int64_t step);

// Returns the text of the file; its last line is a checksum of the others.
std::string FormatManifest(const Manifest& manifest);

// Reads MANIFEST of `folder`. kMismatch unless FormatManifest would write the same bytes.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

// Compares length and, with `hashes`, content of every file. kMismatch names the first that
// differs; kIo if one cannot be read.
absl::Status CheckFiles(const std::string& folder, const Manifest& manifest, bool hashes);

}  // namespace cloze

#endif  // CLOZE_TASKS_RUN_MANIFEST_H_
