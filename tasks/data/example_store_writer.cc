// Writing a store of examples.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/create.h"
#include "core/base/hash.h"
#include "tasks/data/example_store.h"
#include "tasks/data/store_format.h"

namespace cloze {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

// The labels or values of an example as they are stored.
std::vector<LabelRecord> RecordsOf(const Example& example, Targets targets, int32_t num_labels) {
  std::vector<LabelRecord> records;
  if (targets == Targets::kLabels) {
    CLOZE_CHECK(
        example.rows.size() == example.labels.size() && example.rows.size() <= example.ids.size());
    for (size_t i = 0; i < example.rows.size(); ++i)
      records.push_back(
          {static_cast<uint32_t>(example.rows[i]), static_cast<uint32_t>(example.labels[i])});
  } else if (targets == Targets::kNumber) {
    CLOZE_CHECK(example.values.size() == 1);
    records.push_back({0, std::bit_cast<uint32_t>(example.values[0])});
  } else {
    CLOZE_CHECK(static_cast<int32_t>(example.values.size()) == num_labels);
    records.push_back({0, static_cast<uint32_t>(num_labels)});
    for (int32_t label = 0; label < num_labels; ++label) {
      if (example.values[label] > 0) records.push_back({0, static_cast<uint32_t>(label)});
    }
  }
  return records;
}

}  // namespace

// A new file that is appended to, and its hash.
struct ExampleStoreWriter::Output {
  std::string path, buffer;
  Fd fd;
  Hasher hash;

  absl::Status Open() {
    fd = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    return fd.ok() ? absl::OkStatus() : Errno(ExitOfCreate(errno), "cannot create", path);
  }
  absl::Status Append(const void* data, size_t size) {
    buffer.append(static_cast<const char*>(data), size);
    return buffer.size() >= kBufferBytes ? Flush() : absl::OkStatus();
  }
  absl::Status Flush() {
    hash.Add(buffer.data(), buffer.size());
    RETURN_IF_ERROR(WriteAll(fd, path, buffer.data(), buffer.size()));
    buffer.clear();
    return absl::OkStatus();
  }
  absl::Status Finish() {
    RETURN_IF_ERROR(Flush());
    if (::fsync(fd.get()) != 0) return Errno(Exit::kIo, "cannot fsync", path);
    return fd.Close(path);
  }
};

ExampleStoreWriter::ExampleStoreWriter() = default;

ExampleStoreWriter::~ExampleStoreWriter() = default;

absl::StatusOr<std::unique_ptr<ExampleStoreWriter>> ExampleStoreWriter::Create(
    const std::string& folder, int32_t vocab, int32_t labels, Targets targets) {
  std::unique_ptr<ExampleStoreWriter> writer(new ExampleStoreWriter);
  RETURN_IF_ERROR(MakeDirectories(DirectoryOf(folder)));
  ASSIGN_OR_RETURN(AtomicFolder atomic, AtomicFolder::Create(folder));
  writer->folder_ = folder;
  writer->files_ = std::make_unique<AtomicFolder>(std::move(atomic));
  writer->vocab_ = vocab;
  writer->num_labels_ = labels;
  writer->targets_ = targets;
  writer->token_bytes_ = vocab <= 65536 ? 2 : 4;
  struct {
    std::unique_ptr<Output>* output;
    const char* name;
  } outputs[] = {{&writer->tokens_out_, "tokens"}, {&writer->labels_out_, "labels"},
      {&writer->index_out_, "index"}};
  for (auto& [output, name] : outputs) {
    *output = std::make_unique<Output>();
    (*output)->path = JoinPath(writer->files_->path(), name);
    RETURN_IF_ERROR((*output)->Open());
  }
  return writer;
}

absl::Status ExampleStoreWriter::Add(const Example& example) {
  const size_t n = example.ids.size();
  CLOZE_CHECK(n > 0 && n <= kMaxExampleTokens && example.second >= 0 && example.second <= n);
  const std::vector<LabelRecord> labels = RecordsOf(example, targets_, num_labels_);
  scratch_.resize(n * token_bytes_);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t id = example.ids[i];
    CLOZE_CHECK(id < static_cast<uint32_t>(vocab_));
    std::memcpy(&scratch_[i * token_bytes_], &id, token_bytes_);
  }
  for (const LabelRecord& record : labels) {
    CLOZE_CHECK(record.row < n && record.label < LabelLimit(num_labels_, targets_));
    scratch_.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  const size_t token_size = n * token_bytes_;
  IndexRecord record = {};
  record.first_token = tokens_;
  record.first_label = labels_;
  record.length = n;
  record.second = example.second;
  record.labels = labels.size() | (example.continues ? kContinuesBit : 0);
  record.check = static_cast<uint32_t>(Hash64(scratch_.data(), scratch_.size(), examples_));
  RETURN_IF_ERROR(tokens_out_->Append(scratch_.data(), token_size));
  RETURN_IF_ERROR(labels_out_->Append(scratch_.data() + token_size, scratch_.size() - token_size));
  RETURN_IF_ERROR(index_out_->Append(&record, sizeof(record)));
  ++examples_;
  tokens_ += n;
  labels_ += labels.size();
  return absl::OkStatus();
}

absl::Status ExampleStoreWriter::Finish(DataStats stats) {
  for (Output* output : {tokens_out_.get(), labels_out_.get(), index_out_.get()})
    RETURN_IF_ERROR(output->Finish());
  StoreHeader header = {};
  header.magic = kStoreMagic;
  header.version = kStoreVersion;
  header.vocab = vocab_;
  header.num_labels = num_labels_ | static_cast<uint32_t>(targets_) << kTargetsShift;
  header.token_bytes = token_bytes_;
  header.examples = stats.examples = examples_;
  header.tokens = stats.tokens = tokens_;
  header.labels = labels_;
  header.index_hash = index_out_->hash.Digest();
  header.tokens_hash = tokens_out_->hash.Digest();
  header.labels_hash = labels_out_->hash.Digest();
  header.stats = stats;
  header.self_hash = Hash64(&header, offsetof(StoreHeader, self_hash), kStoreMagic);
  RETURN_IF_ERROR(WriteNewFile(JoinPath(files_->path(), "header"),
      absl::string_view(reinterpret_cast<const char*>(&header), sizeof(header))));
  const absl::Status status = files_->Commit();
  files_.reset();
  const bool other = ExitOf(status) == Exit::kCannotCreate && IsDirectory(folder_);
  return other ? absl::OkStatus() : status;  // another process built the same store
}

absl::Status RemoveStore(const std::string& folder) {
  if (::unlink(folder.c_str()) == 0) return absl::OkStatus();  // a link: its target stays
  for (const char* name : kStoreFiles) ::unlink(JoinPath(folder, name).c_str());
  if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return Errno(Exit::kCannotCreate, "cannot remove the old store", folder);
}

}  // namespace cloze
