// Reading a store of examples. Nothing in its files is trusted.
#include "tasks/data/example_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "core/base/hash.h"
#include "tasks/data/store_format.h"

namespace cloze {
namespace {

absl::Status Corrupt(absl::string_view folder, absl::string_view file, absl::string_view what) {
  return Error(Exit::kData, QuotePath(JoinPath(folder, file)), ": ", what,
      "; delete the folder to rebuild it");
}

// Opens a file of the store, which must have exactly `size` bytes.
absl::StatusOr<Fd> OpenFile(const std::string& folder, absl::string_view name, int64_t size) {
  const std::string path = JoinPath(folder, name);
  ASSIGN_OR_RETURN(Fd fd, OpenForRead(path));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Error(Exit::kIo, QuotePath(path), ": cannot stat");
  if (info.st_size != size)
    return Corrupt(folder, name, absl::StrCat(info.st_size, " bytes: expected ", size));
  return fd;
}

absl::Status CheckHeader(const std::string& folder, const StoreHeader& header, int32_t vocab,
    int32_t labels, Targets targets) {
  if (header.magic != kStoreMagic) return Corrupt(folder, "header", "not a store of examples");
  if (header.version != kStoreVersion) {
    return Error(Exit::kMismatch, QuotePath(JoinPath(folder, "header")), ": version ",
        header.version, ", ", kStoreVersion, " expected");
  }
  if (header.self_hash != Hash64(&header, offsetof(StoreHeader, self_hash), kStoreMagic))
    return Corrupt(folder, "header", "wrong checksum");
  const uint32_t num_labels = header.num_labels & ((uint32_t{1} << kTargetsShift) - 1);
  if (header.vocab != vocab || num_labels != labels ||
      header.num_labels >> kTargetsShift != static_cast<uint32_t>(targets)) {
    return Error(Exit::kMismatch, QuotePath(folder), ": made for ", header.vocab, " tokens and ",
        num_labels, " labels, ", vocab, " and ", labels, " expected, or for another kind of them");
  }
  constexpr int64_t kMost = int64_t{1} << 56;  // so that no size overflows
  const bool sane = header.examples > 0 && header.examples < kMost && header.tokens >= 0 &&
                    header.tokens < kMost && header.labels >= 0 && header.labels < kMost &&
                    header.token_bytes == (vocab <= 65536 ? 2 : 4);
  return sane ? absl::OkStatus() : Corrupt(folder, "header", "impossible sizes");
}

// Streams a file's bytes into `visit` in blocks of at most 1 MiB.
template <typename Visit>
absl::Status ForBlocks(const Fd& fd, const std::string& path, int64_t size,
    const std::atomic<bool>* stop, Visit visit) {
  std::vector<char> block(std::min<int64_t>(size, 1 << 20));
  for (int64_t at = 0; at < size; at += block.size()) {
    if (stop != nullptr && stop->load())
      return Error(Exit::kInterrupted, "stopped while checking the token cache");
    const int64_t n = std::min<int64_t>(block.size(), size - at);
    RETURN_IF_ERROR(ReadAt(fd, path, at, block.data(), n));
    RETURN_IF_ERROR(visit(block.data(), n));
  }
  return absl::OkStatus();
}

// Makes the values of an example from its label records; false when it has none.
bool TakeValues(int32_t num_labels, Targets targets, Example* example) {
  if (example->labels.empty()) return false;
  if (targets == Targets::kNumber) {
    example->values = {std::bit_cast<float>(example->labels[0])};
  } else {
    example->values.assign(num_labels, 0);
    for (const int32_t label : example->labels) {
      if (label < num_labels) example->values[label] = 1;
    }
  }
  example->rows = {0};
  example->labels.clear();
  return true;
}

bool SaneRecord(const IndexRecord& record) {
  const uint32_t labels = record.labels & ~kContinuesBit;
  return record.length > 0 && record.length <= kMaxExampleTokens &&
         record.second <= record.length && labels <= kMaxExampleTokens;
}

}  // namespace

absl::StatusOr<ExampleStore> ExampleStore::Open(
    const std::string& folder, int32_t vocab, int32_t labels, Targets targets) {
  ASSIGN_OR_RETURN(const Fd header_fd, OpenFile(folder, "header", sizeof(StoreHeader)));
  StoreHeader header;
  RETURN_IF_ERROR(ReadAt(header_fd, JoinPath(folder, "header"), 0, &header, sizeof(header)));
  RETURN_IF_ERROR(CheckHeader(folder, header, vocab, labels, targets));
  ExampleStore store;
  store.folder_ = folder;
  store.vocab_ = vocab;
  store.num_labels_ = labels;
  store.targets_ = targets;
  store.token_bytes_ = header.token_bytes;
  store.examples_ = header.examples;
  store.tokens_ = header.tokens;
  store.labels_ = header.labels;
  store.tokens_hash_ = header.tokens_hash;
  store.labels_hash_ = header.labels_hash;
  store.stats_ = header.stats;
  ASSIGN_OR_RETURN(
      store.tokens_fd_, OpenFile(folder, "tokens", header.tokens * header.token_bytes));
  ASSIGN_OR_RETURN(
      store.labels_fd_, OpenFile(folder, "labels", header.labels * sizeof(LabelRecord)));
  ASSIGN_OR_RETURN(
      store.index_fd_, OpenFile(folder, "index", header.examples * sizeof(IndexRecord)));
  RETURN_IF_ERROR(store.CheckIndex(header.index_hash));
  return store;
}

absl::Status ExampleStore::CheckIndex(uint64_t expected_hash) const {
  Hasher hash;
  uint64_t tokens = 0, labels = 0;
  const auto visit = [&](const char* data, int64_t size) {
    hash.Add(data, size);
    for (int64_t at = 0; at < size; at += sizeof(IndexRecord)) {
      IndexRecord record;
      std::memcpy(&record, data + at, sizeof(record));
      if (!SaneRecord(record) || record.first_token != tokens || record.first_label != labels)
        return Corrupt(folder_, "index", "a wrong record");
      tokens += record.length;
      labels += record.labels & ~kContinuesBit;
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForBlocks(
      index_fd_, JoinPath(folder_, "index"), examples_ * sizeof(IndexRecord), nullptr, visit));
  if (hash.Digest() != expected_hash || tokens != tokens_ || labels != labels_)
    return Corrupt(folder_, "index", "wrong checksum");
  return absl::OkStatus();
}

absl::Status ExampleStore::VerifyContent(const std::atomic<bool>* stop) const {
  struct {
    const Fd& fd;
    const char* name;
    int64_t size;
    uint64_t hash;
  } files[] = {{tokens_fd_, "tokens", tokens_ * token_bytes_, tokens_hash_},
      {labels_fd_, "labels", labels_ * static_cast<int64_t>(sizeof(LabelRecord)), labels_hash_}};
  for (const auto& file : files) {
    Hasher hash;
    const auto visit = [&](const char* data, int64_t size) {
      return hash.Add(data, size), absl::OkStatus();
    };
    RETURN_IF_ERROR(ForBlocks(file.fd, JoinPath(folder_, file.name), file.size, stop, visit));
    if (hash.Digest() != file.hash) return Corrupt(folder_, file.name, "wrong checksum");
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> ExampleStore::length(int64_t i) const {
  int32_t length = 0;
  RETURN_IF_ERROR(Lengths(i, absl::MakeSpan(&length, 1)));
  return length;
}

absl::Status ExampleStore::Lengths(int64_t begin, absl::Span<int32_t> out) const {
  CLOZE_CHECK(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= examples_);
  const std::string path = JoinPath(folder_, "index");
  IndexRecord records[256];
  for (size_t done = 0; done < out.size();) {
    const size_t n = std::min(out.size() - done, std::size(records));
    RETURN_IF_ERROR(ReadAt(
        index_fd_, path, (begin + done) * sizeof(IndexRecord), records, n * sizeof(IndexRecord)));
    for (size_t i = 0; i < n; ++i) {
      if (!SaneRecord(records[i])) return Corrupt(folder_, "index", "a wrong record");
      out[done + i] = records[i].length;
    }
    done += n;
  }
  return absl::OkStatus();
}

absl::Status ExampleStore::Read(int64_t i, Example* example) const {
  CLOZE_CHECK(i >= 0 && i < examples_);
  IndexRecord record;
  RETURN_IF_ERROR(
      ReadAt(index_fd_, JoinPath(folder_, "index"), i * sizeof(record), &record, sizeof(record)));
  const uint64_t labels = record.labels & ~kContinuesBit;
  if (!SaneRecord(record) || record.length > tokens_ ||
      record.first_token > tokens_ - record.length || labels > labels_ ||
      record.first_label > labels_ - labels) {
    return Corrupt(folder_, "index", absl::StrCat("wrong record of example ", i));
  }
  const size_t token_size = size_t{record.length} * token_bytes_;
  std::string bytes(token_size + labels * sizeof(LabelRecord), '\0');
  RETURN_IF_ERROR(ReadAt(tokens_fd_, JoinPath(folder_, "tokens"), record.first_token * token_bytes_,
      bytes.data(), token_size));
  RETURN_IF_ERROR(
      ReadAt(labels_fd_, JoinPath(folder_, "labels"), record.first_label * sizeof(LabelRecord),
          bytes.data() + token_size, bytes.size() - token_size));
  bool good = static_cast<uint32_t>(Hash64(bytes.data(), bytes.size(), i)) == record.check;
  example->ids.resize(record.length);
  for (size_t k = 0; k < record.length; ++k) {
    uint32_t id = 0;
    std::memcpy(&id, &bytes[k * token_bytes_], token_bytes_);
    good = good && id < static_cast<uint32_t>(vocab_);
    example->ids[k] = id;
  }
  example->rows.resize(labels);
  example->labels.resize(labels);
  for (size_t k = 0; k < labels; ++k) {
    LabelRecord label;
    std::memcpy(&label, &bytes[token_size + k * sizeof(label)], sizeof(label));
    good = good && label.row < record.length && label.label < LabelLimit(num_labels_, targets_);
    example->rows[k] = label.row;
    example->labels[k] = label.label;
  }
  example->values.clear();
  if (good && targets_ != Targets::kLabels) good = TakeValues(num_labels_, targets_, example);
  example->second = record.second;
  example->continues = (record.labels & kContinuesBit) != 0;
  return good ? absl::OkStatus()
              : Corrupt(
                    folder_, "tokens", absl::StrCat("example ", i, " does not fit its checksum"));
}

}  // namespace cloze
