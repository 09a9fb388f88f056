// Writing and reading a store of examples. The reader trusts nothing in the files.
#include "tasks/data/example_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace cloze {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr uint32_t kMaxExampleTokens = 1 << 20;

// Returns the header of an empty store.
StoreHeader NewHeader(int32_t vocab, int32_t labels, Targets targets) {
  StoreHeader header = {};
  header.magic = kStoreMagic;
  header.version = kStoreVersion;
  header.vocab = vocab;
  header.num_labels = labels | static_cast<uint32_t>(targets) << 28;
  header.token_bytes = vocab <= 65536 ? 2 : 4;
  return header;
}

uint64_t HashOf(const StoreHeader& header) {
  return Hash64(&header, offsetof(StoreHeader, self_hash), kStoreMagic);
}

// Returns the exclusive upper bound of labels in a record.
uint32_t LabelLimit(const StoreHeader& header) {
  return header.targets() == Targets::kLabels ? header.label_count()
         : header.targets() == Targets::kSet  ? header.label_count() + 1
                                              : ~uint32_t{0};
}

// Returns the labels or values of an example as they are stored.
std::vector<LabelRecord> RecordsOf(const Example& example, const StoreHeader& header) {
  std::vector<LabelRecord> records;
  if (header.targets() == Targets::kLabels) {
    CLOZE_CHECK(
        example.rows.size() == example.labels.size() && example.rows.size() <= kMaxExampleTokens);
    for (size_t i = 0; i < example.rows.size(); ++i) {
      const int32_t row = example.rows[i],
                    further = i < example.further.size() ? example.further[i] : 0;
      CLOZE_CHECK(row + further < kMaxLabelledTokens);
      records.push_back({static_cast<uint16_t>(row), static_cast<uint16_t>(further),
          static_cast<uint32_t>(example.labels[i])});
    }
  } else if (header.targets() == Targets::kNumber) {
    CLOZE_CHECK(example.values.size() == 1);
    records.push_back({0, 0, std::bit_cast<uint32_t>(example.values[0])});
  } else {
    const uint32_t labels = header.label_count();
    CLOZE_CHECK(example.values.size() == labels);
    records.push_back({0, 0, labels});
    for (uint32_t label = 0; label < labels; ++label) {
      if (example.values[label] > 0) records.push_back({0, 0, label});
    }
  }
  return records;
}

// Makes the values of an example from its label records; false when it has none.
bool TakeValues(const StoreHeader& header, Example* example) {
  if (example->labels.empty()) return false;
  if (header.targets() == Targets::kNumber) {
    example->values = {std::bit_cast<float>(example->labels[0])};
  } else {
    const int32_t labels = header.label_count();
    example->values.assign(labels, 0);
    for (const int32_t label : example->labels) {
      if (label < labels) example->values[label] = 1;
    }
  }
  example->rows = example->further = {0};
  example->labels.clear();
  return true;
}

absl::Status Corrupt(const std::string& path, absl::string_view what) {
  return Error(Exit::kData, QuotePath(path), ": ", what, "; delete the folder to rebuild it");
}

absl::Status CheckHeader(
    const std::string& folder, const StoreHeader& header, const StoreHeader& expected) {
  const std::string path = JoinPath(folder, "header");
  if (header.magic != kStoreMagic) return Corrupt(path, "not a store of examples");
  if (header.version != kStoreVersion) {
    return Error(Exit::kMismatch, QuotePath(path), ": version ", header.version, ": expected ",
        kStoreVersion);
  }
  if (header.self_hash != HashOf(header)) return Corrupt(path, "wrong checksum");
  if (header.vocab != expected.vocab || header.num_labels != expected.num_labels) {
    return Error(Exit::kMismatch, QuotePath(folder), ": made for ", header.vocab, " tokens and ",
        header.label_count(), " labels: expected ", expected.vocab, " and ", expected.label_count(),
        " of the same kind");
  }
  constexpr int64_t kMax = int64_t{1} << 56;  // so that no size overflows
  const bool sane = header.examples > 0 && header.examples < kMax && header.tokens >= 0 &&
                    header.tokens < kMax && header.labels >= 0 && header.labels < kMax &&
                    header.token_bytes == expected.token_bytes;
  return sane ? absl::OkStatus() : Corrupt(path, "impossible sizes");
}

bool SaneRecord(const IndexRecord& record) {
  const uint32_t labels = record.labels & ~kContinuesBit;
  return record.length > 0 && record.length <= kMaxExampleTokens &&
         record.second <= record.length && labels <= kMaxExampleTokens;
}

}  // namespace

absl::Status ExampleStoreWriter::Output::Append(const void* data, size_t size) {
  buffer.append(static_cast<const char*>(data), size);
  return buffer.size() >= kBufferBytes ? Flush() : absl::OkStatus();
}

absl::Status ExampleStoreWriter::Output::Flush() {
  hash.Add(buffer.data(), buffer.size());
  RETURN_IF_ERROR(WriteAll(fd, path, buffer.data(), buffer.size()));
  buffer.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ExampleStoreWriter>> ExampleStoreWriter::Create(
    const std::string& folder, int32_t vocab, int32_t labels, Targets targets) {
  RETURN_IF_ERROR(MakeDirectories(DirectoryOf(folder)));
  ASSIGN_OR_RETURN(AtomicFolder files, AtomicFolder::Create(folder));
  std::unique_ptr<ExampleStoreWriter> writer(
      new ExampleStoreWriter(folder, std::move(files), NewHeader(vocab, labels, targets)));
  for (const auto& [output, name] : {std::pair(&writer->tokens_, "tokens"),
           std::pair(&writer->labels_, "labels"), std::pair(&writer->index_, "index")}) {
    output->path = JoinPath(writer->files_.path(), name);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    output->fd = Fd(::open(output->path.c_str(), kFlags, 0666));
    if (!output->fd.ok()) return Errno(ExitOfCreate(errno), "cannot create", output->path);
  }
  return writer;
}

absl::Status ExampleStoreWriter::Add(const Example& example) {
  const size_t n = example.ids.size(), token_bytes = header_.token_bytes;
  CLOZE_CHECK(n > 0 && n <= kMaxExampleTokens && example.second >= 0 && example.second <= n);
  const std::vector<LabelRecord> labels = RecordsOf(example, header_);
  std::string bytes(n * token_bytes, '\0');
  for (size_t i = 0; i < n; ++i) {
    const uint32_t id = example.ids[i];
    CLOZE_CHECK(id < header_.vocab);
    std::memcpy(&bytes[i * token_bytes], &id, token_bytes);
  }
  for (const LabelRecord& record : labels) {
    CLOZE_CHECK(record.row + record.further < n && record.label < LabelLimit(header_));
    bytes.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  IndexRecord record = {};
  record.first_token = header_.tokens;
  record.first_label = header_.labels;
  record.length = n;
  record.second = example.second;
  record.labels = labels.size() | (example.continues ? kContinuesBit : 0);
  record.check = static_cast<uint32_t>(Hash64(bytes.data(), bytes.size(), header_.examples));
  const size_t token_size = n * token_bytes;
  RETURN_IF_ERROR(tokens_.Append(bytes.data(), token_size));
  RETURN_IF_ERROR(labels_.Append(bytes.data() + token_size, bytes.size() - token_size));
  RETURN_IF_ERROR(index_.Append(&record, sizeof(record)));
  ++header_.examples;
  header_.tokens += n;
  header_.labels += labels.size();
  return absl::OkStatus();
}

std::string NameByContent(const std::string& folder, const StoreHeader& header) {
  return absl::StrCat(folder, "-", absl::Hex(header.self_hash, absl::kZeroPad16));
}

absl::Status ExampleStoreWriter::Finish(DataStats stats, bool by_content) {
  for (Output* output : {&tokens_, &labels_, &index_}) {
    RETURN_IF_ERROR(output->Flush());
    if (::fsync(output->fd.get()) != 0) return Errno(Exit::kIo, "cannot fsync", output->path);
    RETURN_IF_ERROR(output->fd.Close(output->path));
  }
  stats.examples = header_.examples;
  stats.tokens = header_.tokens;
  header_.stats = stats;
  header_.index_hash = index_.hash.Digest();
  header_.tokens_hash = tokens_.hash.Digest();
  header_.labels_hash = labels_.hash.Digest();
  header_.self_hash = HashOf(header_);
  RETURN_IF_ERROR(WriteNewFile(JoinPath(files_.path(), "header"),
      absl::string_view(reinterpret_cast<const char*>(&header_), sizeof(header_))));
  if (by_content) return CommitByContent();
  const absl::Status status = files_.Commit();
  const bool other = ExitOf(status) == Exit::kCannotCreate && IsDirectory(folder_);
  return other ? absl::OkStatus() : status;  // another process built the same store
}

absl::Status ExampleStoreWriter::CommitByContent() {
  folder_ = NameByContent(folder_, header_);
  if (PathExists(folder_)) {
    const auto same =
        ExampleStore::Open(folder_, header_.vocab, header_.label_count(), header_.targets());
    const bool sound = same.ok() && same->header().self_hash == header_.self_hash;
    if (sound && same->VerifyContent().ok()) return absl::OkStatus();
    RETURN_IF_ERROR(RemoveStore(folder_));
  }
  RETURN_IF_ERROR(SyncDirectory(files_.path()));
  RETURN_IF_ERROR(RenameNew(files_.path(), folder_));
  return SyncDirectory(DirectoryOf(folder_));
}

absl::StatusOr<ExampleStore::Input> ExampleStore::OpenFile(
    absl::string_view name, int64_t size) const {
  Input input = {JoinPath(folder_, name), size, Fd()};
  ASSIGN_OR_RETURN(input.fd, OpenForRead(input.path));
  struct stat info;
  if (::fstat(input.fd.get(), &info) != 0)
    return Error(Exit::kIo, QuotePath(input.path), ": cannot stat");
  if (info.st_size == size) return input;
  return Corrupt(input.path, absl::StrCat(info.st_size, " bytes: expected ", size));
}

absl::StatusOr<ExampleStore> ExampleStore::Open(
    const std::string& folder, int32_t vocab, int32_t labels, Targets targets) {
  ExampleStore store;
  store.folder_ = folder;
  StoreHeader& header = store.header_;
  ASSIGN_OR_RETURN(const Input input, store.OpenFile("header", sizeof(header)));
  RETURN_IF_ERROR(ReadAt(input.fd, input.path, 0, &header, sizeof(header)));
  RETURN_IF_ERROR(CheckHeader(folder, header, NewHeader(vocab, labels, targets)));
  ASSIGN_OR_RETURN(store.tokens_, store.OpenFile("tokens", header.tokens * header.token_bytes));
  ASSIGN_OR_RETURN(store.labels_, store.OpenFile("labels", header.labels * sizeof(LabelRecord)));
  ASSIGN_OR_RETURN(store.index_, store.OpenFile("index", header.examples * sizeof(IndexRecord)));
  RETURN_IF_ERROR(store.CheckIndex());
  return store;
}

absl::Status ExampleStore::CheckIndex() const {
  Hasher hash;
  uint64_t tokens = 0, labels = 0;
  const auto visit = [&](const char* data, int64_t size) {
    hash.Add(data, size);
    for (int64_t at = 0; at < size; at += sizeof(IndexRecord)) {
      IndexRecord record;
      std::memcpy(&record, data + at, sizeof(record));
      if (!SaneRecord(record) || record.first_token != tokens || record.first_label != labels)
        return Corrupt(index_.path, "a wrong record");
      tokens += record.length;
      labels += record.labels & ~kContinuesBit;
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForBlocks(index_.fd, index_.path, index_.size, visit));
  if (hash.Digest() != header_.index_hash || tokens != header_.tokens || labels != header_.labels)
    return Corrupt(index_.path, "wrong checksum");
  return absl::OkStatus();
}

absl::Status ExampleStore::VerifyContent(const std::atomic<bool>* stop) const {
  for (const auto& [file, expected] :
      {std::pair(&tokens_, header_.tokens_hash), std::pair(&labels_, header_.labels_hash)}) {
    Hasher hash;
    const auto visit = [&](const char* data, int64_t size) {
      hash.Add(data, size);
      return CheckStopped(stop, "checking the token cache");
    };
    RETURN_IF_ERROR(ForBlocks(file->fd, file->path, file->size, visit));
    if (hash.Digest() != expected) return Corrupt(file->path, "wrong checksum");
  }
  return absl::OkStatus();
}

absl::Status ExampleStore::Read(int64_t i, Example* example) const {
  CLOZE_CHECK(i >= 0 && i < size());
  IndexRecord record;
  RETURN_IF_ERROR(ReadAt(index_.fd, index_.path, i * sizeof(record), &record, sizeof(record)));
  const uint64_t labels = record.labels & ~kContinuesBit, tokens = header_.tokens,
                 all_labels = header_.labels;
  if (!SaneRecord(record) || record.length > tokens ||
      record.first_token > tokens - record.length || labels > all_labels ||
      record.first_label > all_labels - labels)
    return Corrupt(index_.path, absl::StrCat("wrong record of example ", i));
  const size_t token_bytes = header_.token_bytes, token_size = record.length * token_bytes;
  std::string bytes(token_size + labels * sizeof(LabelRecord), '\0');
  RETURN_IF_ERROR(
      ReadAt(tokens_.fd, tokens_.path, record.first_token * token_bytes, bytes.data(), token_size));
  RETURN_IF_ERROR(ReadAt(labels_.fd, labels_.path, record.first_label * sizeof(LabelRecord),
      bytes.data() + token_size, bytes.size() - token_size));
  bool good = static_cast<uint32_t>(Hash64(bytes.data(), bytes.size(), i)) == record.check;
  example->ids.resize(record.length);
  for (size_t k = 0; k < record.length; ++k) {
    uint32_t id = 0;
    std::memcpy(&id, &bytes[k * token_bytes], token_bytes);
    good = good && id < header_.vocab;
    example->ids[k] = id;
  }
  example->rows.resize(labels);
  example->further.resize(labels);
  example->labels.resize(labels);
  for (size_t k = 0; k < labels; ++k) {
    LabelRecord label;
    std::memcpy(&label, &bytes[token_size + k * sizeof(label)], sizeof(label));
    good = good && label.row + label.further < record.length && label.label < LabelLimit(header_);
    example->rows[k] = label.row;
    example->further[k] = label.further;
    example->labels[k] = label.label;
  }
  example->values.clear();
  example->averages = example->largest = example->causal = false;
  if (good && header_.targets() != Targets::kLabels) good = TakeValues(header_, example);
  example->second = record.second;
  example->continues = (record.labels & kContinuesBit) != 0;
  if (good) return absl::OkStatus();
  return Corrupt(tokens_.path, absl::StrCat("example ", i, " does not fit its checksum"));
}

absl::Status RemoveStore(const std::string& folder) {
  if (::unlink(folder.c_str()) == 0) return absl::OkStatus();  // a link: its target stays
  for (const char* name : kStoreFiles) ::unlink(JoinPath(folder, name).c_str());
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return Errno(Exit::kCannotCreate, "cannot remove the old store", folder);
}

}  // namespace cloze
