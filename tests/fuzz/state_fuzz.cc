// A checkpoint: MANIFEST (until a zero byte) and trainer.textproto. The checksum in the manifest's
// last line is made right. A tiny run resumes from a state that is accepted, and takes two steps.
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "proto/spec.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/trainer_state.h"
#include "tasks/training/trainer.h"
#include "tests/fuzz/input.h"

// Hundreds of runs would wait for the disk.
extern "C" int fsync(int) { return 0; }

namespace cloze::fuzz {
namespace {

// A run that has stopped after its first step.
class TinyRun : public Folder {
 public:
  TinyRun() {
    Write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\nsat\n");
    Write("text.txt", "the cat sat\n\nthe cat\n\ncat sat the cat\n");
    const std::string data = absl::StrCat("{ files: '", JoinPath(path(), "text.txt"), "' }");
    spec_ =
        *ParseSpec(absl::StrCat("model { tokenizer: '", path(),
                       "/vocab.txt' encoder { preset: CUSTOM layers: 1 heads: 1 hidden: 8 "
                       "intermediate: 8 max_positions: 8 } } masked_lm { max_tokens: 8 } train ",
                       data, " validation ", data,
                       " evaluation { every_steps: 1 } batch { tokens: 8 } schedule { steps: "
                       "1000 } runtime { threads: 1 } output { directory: '",
                       run_, "' cache_directory: '", path(), "/cache' }"),
            "spec");
    CLOZE_CHECK(ExitOf(Train(1)) == Exit::kInterrupted);
    const std::string checkpoint = JoinPath(run_, CheckpointName(1));
    state_ = *ReadTrainerState(checkpoint);
    const auto names = ListDirectory(checkpoint);
    for (const std::string& name : *names) {
      if (name != kManifestName && name != kStateName)
        files_.emplace_back(name, *ReadFile(JoinPath(checkpoint, name), 1 << 20));
    }
  }

  // Resumes from `state`, with this run's spec and data, and takes two steps, of which the first is
  // skipped.
  void Resume(TrainerState state) {
    state.clear_format_version();
    state.set_spec(state_.spec());
    state.set_data_fingerprint(state_.data_fingerprint());
    *state.mutable_source() = state_.source();
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_);
    const auto write = [&](const std::string& checkpoint) {
      for (const auto& [name, content] : files_)
        RETURN_IF_ERROR(WriteNewFile(JoinPath(checkpoint, name), content));
      return WriteTrainerState(checkpoint, state);
    };
    CLOZE_CHECK(SaveCheckpoint(run_, state.step(), write, 1).ok());
    const absl::Status status = Train(2);
    const bool many = state.skipped_in_a_row() >= 9 || state.recently_skipped_size() >= 10;
    if (many && ExitOf(status) == Exit::kInternal) return;  // one more is too many
    CheckError(status);
    if (ExitOf(status) != Exit::kInterrupted) return;
    const auto after = ReadTrainerState(JoinPath(run_, CheckpointName(state.step() + 2)));
    if (std::max(state.step(), state.next_example()) > int64_t{1} << 59) return;  // near the end
    CLOZE_CHECK(after.ok() && after->next_example() > state.next_example() &&
                after->skipped_steps() == state.skipped_steps() + 1);
  }

 private:
  absl::Status Train(int64_t steps) {
    std::atomic<bool> stop = false;
    const auto trainer =
        Trainer::Create(spec_, {.stop = &stop,
                                   .after_step = [&](int64_t) { stop = --steps <= 0; },
                                   .on_gradients =
                                       [&](int64_t, absl::Span<float> gradients) {
                                         if (steps == 2)
                                           gradients[0] = std::numeric_limits<float>::quiet_NaN();
                                       }});
    return trainer.ok() ? (*trainer)->Run().status() : trainer.status();
  }

  const std::string run_ = JoinPath(path(), "run");
  LoadedSpec spec_;
  TrainerState state_;
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace
}  // namespace cloze::fuzz

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
  if (fuzz::memory_fails) return 0;
  static fuzz::TinyRun run;
  run.Resume(*read);
  return 0;
}
