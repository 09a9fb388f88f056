// A checkpoint: MANIFEST (until a zero byte) and trainer.textproto. The checksum in the manifest's
// last line is made right.
#include <xxhash.h>

#include "absl/strings/str_format.h"
#include "proto/spec.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/state.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cloze;
  static const fuzz::Folder folder;
  const absl::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find('\0'), all.size());
  const absl::string_view state = all.substr(std::min(end + 1, all.size()));
  const size_t last = all.substr(0, end).rfind("\nmanifest ");
  std::string text(all.substr(0, last == absl::string_view::npos ? end : last + 1));
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  if (last != absl::string_view::npos)
    absl::StrAppendFormat(&text, "manifest %016x%016x\n", hash.high64, hash.low64);
  folder.Write(kManifestName, text);
  folder.Write("trainer.textproto", state);
  const auto manifest = ReadManifest(folder.path());
  fuzz::CheckError(manifest.status());
  if (manifest.ok()) CLOZE_CHECK(FormatManifest(*manifest) == text);
  const auto read = ReadTrainerState(folder.path());
  fuzz::CheckError(read.status());
  if (!read.ok()) return 0;
  CLOZE_CHECK(read->step() >= 0 && read->next_example() >= 0 && read->skipped_steps() >= 0 &&
              read->skipped_steps() <= read->step());
  fuzz::CheckError(ParseSpec(read->spec(), "trainer.textproto").status());
  return 0;
}
