#include "tasks/run/run_folder.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "tasks/data/example_store.h"

namespace cloze {

std::string CacheFolder(const TaskSpec& spec) {
  const std::string& given = spec.output().cache_directory();
  return given.empty() ? JoinPath(spec.output().directory(), "cache") : given;
}

std::string SeedFolder(uint64_t seed) { return absl::StrCat("seed-", seed); }

bool IsSeedFolder(absl::string_view name) {
  uint64_t seed = 0;
  return absl::ConsumePrefix(&name, "seed-") && absl::SimpleAtoi(name, &seed) &&
         absl::StrCat(seed) == name;
}

RunFolder::RunFolder(const TaskSpec& spec, RunLock lock)
    : directory_(spec.output().directory()), cache_(CacheFolder(spec)),
      keep_(spec.output().keep_checkpoints()), cache_is_new_(!PathExists(cache_)),
      lock_(std::move(lock)) {}

absl::StatusOr<RunFolder> RunFolder::Open(const TaskSpec& spec) {
  const std::string& directory = spec.output().directory();
  const auto holds = [&](absl::string_view name) { return PathExists(JoinPath(directory, name)); };
  const auto refuse = [&](absl::string_view problem) {
    return Error(Exit::kCannotCreate, QuotePath(directory), ": ", problem);
  };
  if (holds("model.safetensors") && !holds(kSpecName))
    return refuse("holds a model that is not of a run (choose another output.directory)");
  if (holds(SeedFolder(spec.seed())))
    return refuse(
        "holds runs of a spec with `repeat` (choose another output.directory, or repeat "
        "them)");
  ASSIGN_OR_RETURN(RunLock lock, RunLock::Acquire(directory));
  return RunFolder(spec, std::move(lock));
}

void RunFolder::Undo(Exit why) {
  const auto stores = ListDirectory(cache_);
  if (cache_is_new_ && stores.ok()) {
    for (const std::string& store : *stores) {
      if (why != Exit::kInterrupted) RemoveStore(JoinPath(cache_, store)).IgnoreError();
    }
    ::rmdir(cache_.c_str());
  }
  lock_.Undo();
}

absl::StatusOr<std::optional<FoundCheckpoint>> RunFolder::Newest(
    std::vector<std::string>* notes) const {
  RemoveLeftovers(directory_);
  return FindCheckpoint(directory_, notes);
}

absl::Status RunFolder::WriteSpec(const TaskSpec& spec) const {
  return WriteFileAtomically(Path(kSpecName), PrintEffective(spec));
}

absl::Status RunFolder::Save(int64_t step, Write write, int64_t expected_bytes) {
  const absl::Status status = SaveCheckpoint(directory_, step, write, keep_, expected_bytes);
  failed_saves_ = status.ok() ? 0 : failed_saves_ + 1;
  if (status.ok()) saved_step_ = step;
  return status;
}

absl::Status RunFolder::SaveBest(int64_t step, Write write, int64_t expected_bytes) const {
  return SaveModel(directory_, step, write, expected_bytes);
}

}  // namespace cloze
