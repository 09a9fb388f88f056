#include "tasks/run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "tasks/data/example_store.h"

namespace cloze {
namespace {

// True if `fd` is still the file of that name: another process may have removed it between open and
// flock.
bool HasName(const Fd& fd, const std::string& path) {
  struct stat mine, named;
  return ::fstat(fd.get(), &mine) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

}  // namespace

std::string CacheFolder(const TaskSpec& spec) {
  const std::string& given = spec.output().cache_directory();
  return given.empty() ? JoinPath(spec.output().directory(), "cache") : given;
}

std::string VocabFolder(const TaskSpec& spec) {
  return JoinPath(spec.output().directory(), "vocab");
}

bool IsSeedFolder(absl::string_view name) {
  uint64_t seed = 0;
  return absl::ConsumePrefix(&name, "seed-") && absl::SimpleAtoi(name, &seed) &&
         absl::StrCat(seed) == name;
}

std::string ForeignContent(const std::string& directory) {
  constexpr const char* kModel[] = {"config.json", "model.safetensors",
      "model.safetensors.index.json", "adapter_model.safetensors"};
  const auto has = [&](const char* name) { return PathExists(JoinPath(directory, name)); };
  if (!has(kSpecName))
    return absl::c_any_of(kModel, has) ? "a model that was not written by a run" : "";
  const auto spec = ReadFile(JoinPath(directory, kSpecName), kMaxSpecBytes);
  return has(kLogName) || (spec.ok() && absl::StartsWith(*spec, kSpecHeader))
             ? ""
             : absl::StrCat("a ", kSpecName, " that is not of a run and would be overwritten");
}

std::string SpecOfRun(absl::string_view folder) {
  while (absl::EndsWith(folder, "/")) folder.remove_suffix(1);
  std::string path = JoinPath(folder, kSpecName);
  if (!PathExists(path) && IsCheckpointName(BaseName(folder)))
    path = JoinPath(DirectoryOf(folder), kSpecName);
  return PathExists(path) ? path : "";
}

absl::Status CopySpec(const std::string& folder, const std::string& to) {
  const std::string path = SpecOfRun(folder);
  if (path.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string spec, ReadFile(path, kMaxSpecBytes));
  return WriteNewFile(JoinPath(to, kSpecName), spec);
}

void KeepRulesOf(const std::string& directory, TaskSpec* spec) {
  std::vector<std::string> folders = {directory};
  const bool sweep = PathExists(JoinPath(directory, kSweepName));
  for (const std::string& name : ListDirectory(directory).value_or(std::vector<std::string>())) {
    if (sweep || IsSeedFolder(name)) folders.push_back(JoinPath(directory, name));
  }
  for (const std::string& folder : folders) {
    const std::string path = SpecOfRun(folder);
    if (path.empty()) continue;
    if (const auto run = LoadSpec(path); run.ok()) return KeepRules(run->spec, spec);
  }
}

absl::StatusOr<RunLock> RunLock::Acquire(const std::string& run_dir) {
  RunLock lock;
  absl::Status status = MakeDirectories(run_dir, &lock.made_);
  lock.path_ = JoinPath(run_dir, "run.lock");
  while (status.ok()) {
    const bool existed = PathExists(lock.path_);
    lock.fd_ = Fd(
        ::open(lock.path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
    if (!lock.fd_.ok()) {
      status = Errno(ExitOfCreate(errno), "cannot create", lock.path_);
    } else if (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      status = errno != EWOULDBLOCK ? Errno(Exit::kCannotCreate, "cannot lock", lock.path_)
                                    : Error(Exit::kCannotCreate, QuotePath(run_dir),
                                          ": another process is running in this directory (choose "
                                          "another output.directory or wait for it)");
    } else if (HasName(lock.fd_, lock.path_)) {
      lock.made_file_ = !existed;
      return lock;
    }
  }
  lock.Undo();
  return status;
}

void RunLock::Undo() {
  if (made_file_) ::unlink(path_.c_str());
  RemoveEmpty(made_);
  made_.clear();
  fd_ = Fd();
}

RunFolder::RunFolder(const TaskSpec& spec)
    : directory_(spec.output().directory()), cache_(CacheFolder(spec)), vocab_(VocabFolder(spec)),
      cache_is_new_(!PathExists(cache_)),
      vocab_is_new_(LearnsVocabulary(spec) && !PathExists(vocab_)) {}

absl::StatusOr<RunFolder> RunFolder::Open(const TaskSpec& spec, Ranks* ranks) {
  RunFolder folder(spec);
  RETURN_IF_ERROR(ranks->OnRoot([&] { return folder.Lock(spec); }));
  return folder;
}

absl::Status RunFolder::Lock(const TaskSpec& spec) {
  const auto refuse = [&](absl::string_view problem) {
    return Error(Exit::kCannotCreate, QuotePath(directory_), ": ", problem);
  };
  for (const std::string& start : {spec.model().start_from(), spec.model().decoder_from()}) {
    std::error_code missing;
    if (std::filesystem::equivalent(start, directory_, missing))
      return refuse("is the model that the run starts from (choose another output.directory)");
  }
  if (const std::string foreign = ForeignContent(directory_); !foreign.empty())
    return refuse(absl::StrCat("holds ", foreign, " (choose another output.directory)"));
  const auto names = ListDirectory(directory_);
  if (names.ok() && absl::c_any_of(*names, IsSeedFolder))
    return refuse(
        "holds runs of a spec with `repeat` (choose another output.directory, or repeat them)");
  if (PathExists(Path(kSweepName)))
    return refuse("holds runs of a sweep (choose another output.directory)");
  ASSIGN_OR_RETURN(lock_, RunLock::Acquire(directory_));
  return absl::OkStatus();
}

void RunFolder::Undo(Exit why) {
  if (!lock_.has_value()) return;
  const auto stores = ListDirectory(cache_);
  if (cache_is_new_ && stores.ok()) {
    for (const std::string& store : *stores) {
      if (why != Exit::kInterrupted) RemoveStore(JoinPath(cache_, store)).IgnoreError();
    }
    ::rmdir(cache_.c_str());
  }
  std::error_code ignored;
  if (vocab_is_new_) std::filesystem::remove_all(vocab_, ignored);
  lock_->Undo();
}

}  // namespace cloze
