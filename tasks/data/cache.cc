// Keys of the cache, and its life cycle: reuse, rebuild, clean up.
#include "tasks/data/cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "absl/strings/match.h"
#include "core/base/file.h"
#include "tasks/data/file_form.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

// Adds everything that determines which examples are read: the reading options, and the content of
// the files.
absl::Status AddData(const DataSpec& data, const std::vector<DataFile>& files,
    const BuildOptions& options, Hasher* key) {
  key->AddNumber(data.documents());
  key->AddNumber(data.header());
  for (const std::string* field : {&data.text_field(), &data.text_pair_field(), &data.label_field(),
           &data.words_field(), &data.tags_field()})
    key->AddText(*field);
  key->AddNumber(data.max_examples());
  // Later fields only if they are set, so that stores of earlier versions keep their names.
  if (SplitShare(data) > 0) key->AddText(absl::StrCat(data.share(), " ", data.leave_out()));
  if (SplitShare(data) > 0 && data.share_rule() > 1) key->AddNumber(data.share_rule());
  if (!data.delimiter().empty()) key->AddText(data.delimiter());
  if (data.encoding() != DataSpec::UTF8) key->AddText(DataSpec::Encoding_Name(data.encoding()));
  if (data.decimal_comma()) key->AddText("decimal comma");
  for (const DataFile& file : files) {
    key->AddNumber(file.format->format);
    if (file.format->format == DataSpec::FOLDERS) key->AddText(ClassOfFile(file.path));
    if (IsStream(file.path)) key->AddText("stream");  // its content is in the name of its store
    if (IsStream(file.path)) continue;
    ASSIGN_OR_RETURN(const Fd fd, OpenForRead(file.path));
    ASSIGN_OR_RETURN(const int64_t size, FileSize(file.path));
    key->AddNumber(size);
    RETURN_IF_ERROR(ForBlocks(fd, file.path, size, [&](const char* block, int64_t n) {
      key->Add(block, n);
      return CheckStop(options);
    }));
  }
  return absl::OkStatus();
}

absl::StatusOr<ExampleStore> OpenSound(
    const std::string& folder, const StoreKind& kind, const BuildOptions& options) {
  ASSIGN_OR_RETURN(
      ExampleStore store, ExampleStore::Open(folder, kind.vocab, kind.labels, kind.targets));
  RETURN_IF_ERROR(store.VerifyContent(options.stop));
  return store;
}

// Detects, by stat alone, that the data files and their store are unchanged since the last start.
// Kept beside the store.
struct Stamp {
  std::string path;     // of the file that holds it; one for a spec, a task and a tokenizer
  std::string sources;  // hash of what stat says of the files
  // No file changed in the last two seconds, when a later change could keep the time.
  bool settled = true;
};

absl::Status AddStat(const std::string& path, Hasher* hash, int64_t* changed) {
  if (IsStream(path)) return absl::OkStatus();
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Errno(Exit::kNoInput, "cannot open", path);
  hash->AddText(path);
  for (const int64_t number : {int64_t(info.st_dev), int64_t(info.st_ino), info.st_size,
           info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec})
    hash->AddNumber(number);
  *changed = std::max<int64_t>({*changed, info.st_mtim.tv_sec, info.st_ctim.tv_sec});
  return absl::OkStatus();
}

absl::StatusOr<Stamp> StampOf(const DataSpec& data, const StoreKind& kind,
    const std::vector<DataFile>& files, const BuildOptions& options) {
  Hasher spec, sources;
  spec.AddText(kind.key.Hex());
  spec.AddText(data.SerializeAsString());
  int64_t changed = 0;
  for (const DataFile& file : files) RETURN_IF_ERROR(AddStat(file.path, &sources, &changed));
  return Stamp{JoinPath(options.cache_dir, absl::StrCat(kind.name, "-", spec.Hex(), ".stamp")),
      sources.Hex(), std::time(nullptr) > changed + 2};
}

absl::StatusOr<std::string> StampText(const Stamp& stamp, const std::string& folder) {
  Hasher store;
  int64_t changed = 0;
  for (const char* name : kStoreFiles)
    RETURN_IF_ERROR(AddStat(JoinPath(folder, name), &store, &changed));
  return absl::StrCat(stamp.sources, " ", store.Hex(), " ", BaseName(folder));
}

// The store of `stamp`, if it and the files have not changed.
absl::StatusOr<ExampleStore> OpenStamped(const Stamp& stamp, const StoreKind& kind) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(stamp.path, 1024));
  const std::string name = text.substr(text.rfind(' ') + 1);
  if (absl::StrContains(name, '/')) return Error(Exit::kData, "not a name");
  const std::string folder = JoinPath(DirectoryOf(stamp.path), name);
  ASSIGN_OR_RETURN(const std::string now, StampText(stamp, folder));
  if (text != now) return Error(Exit::kData, "the data have changed");
  return ExampleStore::Open(folder, kind.vocab, kind.labels, kind.targets);
}

// Ignores errors: without a stamp the next start hashes the data again.
void WriteStamp(const Stamp& stamp, const std::string& folder) {
  const absl::StatusOr<std::string> text = StampText(stamp, folder);
  if (stamp.settled && text.ok()) WriteFileAtomically(stamp.path, *text).IgnoreError();
}

// Hashes kBlocks blocks of a file, including the first and the last.
absl::StatusOr<uint64_t> HashBlocks(const std::string& path, int64_t size) {
  constexpr int64_t kBlocks = 16, kBlock = 4096;
  ASSIGN_OR_RETURN(const Fd fd, OpenForRead(path));
  Hasher hash;
  char block[kBlock];
  const int64_t last = std::max<int64_t>(size - kBlock, 0),
                stride = std::max(last / (kBlocks - 1), kBlock);
  for (int64_t at = 0; at < size; at = at < last ? std::min(at + stride, last) : size) {
    const int64_t n = std::min(kBlock, size - at);
    const absl::Status status = ReadAt(fd, path, at, block, n);
    if (ExitOf(status) == Exit::kData) break;  // shorter now; the sizes differ
    RETURN_IF_ERROR(status);
    hash.Add(block, n);
  }
  return hash.Digest();
}

absl::StatusOr<SourceFile> SourceOf(const std::string& path) {
  if (IsStream(path)) return SourceFile{.path = path, .stream = true};
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Errno(Exit::kNoInput, "cannot open", path);
  SourceFile source{
      path, info.st_size, int64_t{info.st_mtim.tv_sec} * 1000000000 + info.st_mtim.tv_nsec, 0};
  ASSIGN_OR_RETURN(source.sample, HashBlocks(path, info.st_size));
  return source;
}

// Returns where the first line of the files is that is not UTF-8; "" if it cannot be found.
std::string FindNotUtf8(const DataSpec& data, const std::vector<DataFile>& files) {
  for (const DataFile& file : files) {
    if (data.encoding() != DataSpec::UTF8 || IsStream(file.path)) continue;
    auto lines = LineReader::Open(file.path);
    std::string line;
    for (bool more = lines.ok(); more;) {
      more = lines->Next(&line).value_or(false);
      std::string note = more ? NotUtf8(file.path, lines->line_number(), line) : "";
      if (!note.empty()) return absl::StrCat("warning: ", note);
    }
  }
  return "";
}

// Opens the store that the run has made of the streams in its data. `folder` is that of the key:
// the whole name of a store by an earlier version.
absl::StatusOr<ExampleStore> OpenMade(
    const std::string& folder, const StoreKind& kind, const BuildOptions& options) {
  const std::string base = BaseName(folder),
                    name = options.made == kUnnamedStore ? base : options.made;
  if (name != base && (!absl::StartsWith(name, base + "-") || absl::StrContains(name, '/')))
    return Error(Exit::kNoInput, QuotePath(folder), ": no store of a stream");
  ASSIGN_OR_RETURN(ExampleStore store, OpenSound(JoinPath(options.cache_dir, name), kind, options));
  if (name == base || store.folder() == NameByContent(folder, store.header())) return store;
  return Error(Exit::kData, QuotePath(store.folder()), ": holds another store");
}

// Makes the store of `folder` or, with `by_content`, the one of that name and its content.
absl::StatusOr<BuiltStore> MakeStore(const std::string& folder, bool by_content,
    const DataSpec& data, const StoreKind& kind, const BuildOptions& options,
    std::vector<SourceFile> sources, FillStore fill, std::string note) {
  DataStats stats;
  ASSIGN_OR_RETURN(std::unique_ptr<ExampleStoreWriter> writer,
      ExampleStoreWriter::Create(folder, kind.vocab, kind.labels, kind.targets));
  RETURN_IF_ERROR(fill(writer.get(), &stats));
  RETURN_IF_ERROR(CheckSources(sources));
  if (writer->size() == 0) {
    const bool lost = !options.made.empty();
    return Error(Exit::kData, QuoteInput(data.files(0)), data.files_size() > 1 ? ", ...: " : ": ",
        "0 usable examples", PartOfSplit(data),
        lost ? " (the run has no store of its stream for these files and this vocabulary: expected "
               "the same stream again)"
             : "");
  }
  RETURN_IF_ERROR(CheckStop(options));
  RETURN_IF_ERROR(writer->Finish(stats, by_content));
  const std::string made = writer->folder();
  writer.reset();
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(data));
  for (const std::string& more :
      {stats.invalid_bytes > 0 ? FindNotUtf8(data, files) : "", OddTables(data)})
    absl::StrAppend(&note, note.empty() || more.empty() ? "" : "; ", more);
  ASSIGN_OR_RETURN(ExampleStore store, OpenSound(made, kind, options));
  return BuiltStore{std::move(store), std::move(sources), false, std::move(note)};
}

// OpenOrBuild of data with streams; `folder` is that of the key.
absl::StatusOr<BuiltStore> OpenOrRead(const std::string& folder, const DataSpec& data,
    const StoreKind& kind, const BuildOptions& options, std::vector<SourceFile> sources,
    FillStore fill) {
  std::string note;
  if (!options.made.empty()) {
    absl::StatusOr<ExampleStore> made = OpenMade(folder, kind, options);
    if (ExitOf(made.status()) == Exit::kInterrupted) return made.status();
    if (made.ok()) {
      return BuiltStore{*std::move(made), std::move(sources), true,
          "the stream that this run has read is used; no stream is read again"};
    }
    note = absl::StrCat("the stream is read again: ", made.status().message());
  }
  if (options.only_cached || !options.reads_streams) {
    return Error(Exit::kNoInput, QuoteInput(data.files(0)), ": is a stream, which only rank 0 can ",
        "read: expected its store in output.cache_directory, on a file system of all ranks");
  }
  const bool by_content = options.made != BaseName(folder);  // false: of an earlier version
  if (!by_content) RETURN_IF_ERROR(RemoveStore(folder));
  return MakeStore(
      folder, by_content, data, kind, options, std::move(sources), fill, std::move(note));
}

}  // namespace

absl::Status CheckStop(const BuildOptions& options) {
  return CheckStopped(options.stop, "preparing the data");
}

absl::StatusOr<std::vector<SourceFile>> SourcesOf(const DataSpec& data) {
  std::vector<SourceFile> sources;
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(data));
  for (const DataFile& file : files) {
    ASSIGN_OR_RETURN(SourceFile source, SourceOf(file.path));
    sources.push_back(std::move(source));
  }
  return sources;
}

absl::Status CheckSources(absl::Span<const SourceFile> sources) {
  for (const SourceFile& source : sources) {
    if (source.stream) continue;
    ASSIGN_OR_RETURN(const SourceFile now, SourceOf(source.path));
    if (now == source) continue;
    const std::string how = now.size != source.size
                                ? absl::StrCat(source.size, " bytes before, ", now.size, " now")
                            : now.sample != source.sample ? "same length, other content"
                                                          : "another modification time";
    return Error(Exit::kData, QuotePath(source.path), ": the file has changed (", how, ")");
  }
  return absl::OkStatus();
}

absl::StatusOr<BuiltStore> OpenOrBuild(const DataSpec& data, StoreKind kind,
    const Tokenizer& tokenizer, const BuildOptions& options, FillStore fill) {
  if (SplitShare(data) > 0)
    RETURN_IF_ERROR(RequireFiles(data, "a held-out share needs two passes", "name two files"));
  ASSIGN_OR_RETURN(const std::vector<DataFile> files, FilesOf(data));
  ASSIGN_OR_RETURN(std::vector<SourceFile> sources, SourcesOf(data));
  kind.key.AddText(kind.name);
  kind.key.AddNumber(kStoreVersion);
  kind.key.AddNumber(kind.labels);
  tokenizer.AddToKey(&kind.key);
  const bool streams = HasStream(data);
  ASSIGN_OR_RETURN(const Stamp stamp, StampOf(data, kind, files, options));
  if (absl::StatusOr<ExampleStore> store = OpenStamped(stamp, kind); !streams && store.ok())
    return BuiltStore{*std::move(store), std::move(sources), true, ""};
  RETURN_IF_ERROR(AddData(data, files, options, &kind.key));
  const std::string folder =
      JoinPath(options.cache_dir, absl::StrCat(kind.name, "-", kind.key.Hex()));
  if (streams) return OpenOrRead(folder, data, kind, options, std::move(sources), fill);
  std::string note;
  if (PathExists(folder)) {
    absl::StatusOr<ExampleStore> store = OpenSound(folder, kind, options);
    if (store.ok()) {
      if (!options.only_cached) WriteStamp(stamp, folder);
      return BuiltStore{*std::move(store), std::move(sources), true, ""};
    }
    if (options.only_cached || ExitOf(store.status()) == Exit::kInterrupted) return store.status();
    note = absl::StrCat("the token cache was broken and is rebuilt: ", store.status().message());
    RETURN_IF_ERROR(RemoveStore(folder));
  } else if (options.only_cached) {
    return Error(Exit::kNoInput, QuotePath(folder), ": no token cache");
  }
  auto built =
      MakeStore(folder, false, data, kind, options, std::move(sources), fill, std::move(note));
  if (built.ok()) WriteStamp(stamp, folder);
  return built;
}

}  // namespace cloze
