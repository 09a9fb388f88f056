// Tokenized examples on disk, for all tasks. Writer and reader use constant memory.
//
// A store is a folder of four files, little endian:
//   tokens   ids, u16 when the vocabulary has at most 65536 tokens, else u32
//   labels   {row u16, further u16, label u32}; Targets defines what a label is
//   index    per example {first token u64, first label u64, length u32, second u32, labels u32,
//            check u32}
//   header   magic, version, sizes, statistics, XXH3 of the other files, XXH3 of itself;
//            written last
// The top bit of `labels` in the index marks an example that continues the previous one. `check` is
// the XXH3 of the example's tokens and labels.
#ifndef CLOZE_TASKS_DATA_EXAMPLE_STORE_H_
#define CLOZE_TASKS_DATA_EXAMPLE_STORE_H_

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/hash.h"
#include "core/base/status.h"

namespace cloze {

// Format of the store; part of every cache key.
inline constexpr int32_t kStoreVersion = 1;
inline constexpr const char* kStoreFiles[] = {"header", "index", "labels", "tokens"};

// The targets of an example. kLabels: one label at each of some rows. kSet: any number of labels at
// row 0, stored as one record each after a record with the number of labels of the task. kNumber: a
// number at row 0, stored as the bits of the record's label.
enum class Targets : uint32_t { kLabels = 0, kSet = 1, kNumber = 2 };

// One sequence as the model sees it, special tokens included.
struct Example {
  std::vector<int32_t> ids;
  int32_t second = 0;         // index of the first token of type 1; ids.size() when there is none
  std::vector<int32_t> rows;  // indexes of the tokens that carry a label
  // Tagging: for each row, the pieces of its word besides the one at the row; else may be empty.
  std::vector<int32_t> further;
  bool averages = false;        // labels[i] is for the mean of rows[i] ... rows[i] + further[i]
  std::vector<int32_t> labels;  // of `rows`; empty where there are values
  std::vector<float> values;    // kSet: 1 or 0 for each label; kNumber: the number
  bool largest = false;         // with `averages`: the largest of each column, in place of the mean
  bool causal = false;          // tokens see no later ones; not stored
  bool continues = false;       // another window of the previous example's sentence
  // Belongs to the same example as the previous sequence and must get into its batch; not stored.
  bool joined = false;
};

// Statistics of a store.
struct DataStats {
  int64_t documents = 0;        // documents, texts or sentences read
  int64_t empty_documents = 0;  // documents without a token
  int64_t examples = 0;
  int64_t tokens = 0;       // in the store
  int64_t text_tokens = 0;  // tokens in the store that are not special
  int64_t bytes = 0;  // of UTF-8 of the texts of text_tokens; with max_examples an estimate for
                      // the last document
  int64_t words = 0;  // tagging only
  int64_t empty_words = 0;     // words without pieces, encoded as <unk>
  int64_t unknown_tokens = 0;  // text tokens that are <unk>
  int64_t truncated = 0;       // texts (tagging: words) that were cut
  int64_t cut_tokens = 0;      // tokens that were cut off
  int64_t invalid_bytes = 0;   // bytes of the texts that are not UTF-8
};

// The records of the files.
static_assert(std::endian::native == std::endian::little, "stores are little endian");
inline constexpr uint64_t kStoreMagic = 0x31305358455A4C43;  // the bytes "CLZEXS01"
inline constexpr uint32_t kContinuesBit = uint32_t{1} << 31;

struct StoreHeader {
  uint64_t magic;
  uint32_t version, vocab, num_labels, token_bytes;  // Targets in the top 4 bits of num_labels
  int64_t examples, tokens, labels;
  uint64_t index_hash, tokens_hash, labels_hash;
  DataStats stats;
  uint64_t self_hash;  // of all fields before

  Targets targets() const { return static_cast<Targets>(num_labels >> 28); }
  uint32_t label_count() const { return num_labels & ((uint32_t{1} << 28) - 1); }
};
static_assert(sizeof(StoreHeader) == 24 + 48 + sizeof(DataStats) + 8, "no padding");

struct IndexRecord {
  uint64_t first_token, first_label;
  uint32_t length, second, labels, check;
};
static_assert(sizeof(IndexRecord) == 32, "no padding");

inline constexpr int64_t kMaxLabelledTokens = 65536;  // of an example with labels for its rows

struct LabelRecord {
  uint16_t row, further;  // row + further < kMaxLabelledTokens
  uint32_t label;
};

// Returns the name of a store in `folder` that is named by its content as well.
std::string NameByContent(const std::string& folder, const StoreHeader& header);

// Writes a store, which appears under its name (AtomicFolder) when it is complete and on disk.
class ExampleStoreWriter {
 public:
  // labels: number of labels, 0 when examples carry none.
  static absl::StatusOr<std::unique_ptr<ExampleStoreWriter>> Create(
      const std::string& folder, int32_t vocab, int32_t labels, Targets targets = Targets::kLabels);

  absl::Status Add(const Example& example);
  int64_t size() const { return header_.examples; }
  // Completes the store and fills in examples and tokens of `stats`. A store that another process
  // has finished meanwhile stays. by_content: changes its folder to NameByContent.
  absl::Status Finish(DataStats stats, bool by_content = false);
  const std::string& folder() const { return folder_; }

 private:
  // A new file, and the hash of what was written to it.
  struct Output {
    absl::Status Append(const void* data, size_t size);
    absl::Status Flush();

    std::string path, buffer;
    Fd fd;
    Hasher hash;
  };
  absl::Status CommitByContent();
  ExampleStoreWriter(std::string folder, AtomicFolder files, const StoreHeader& header)
      : folder_(std::move(folder)), files_(std::move(files)), header_(header) {}

  std::string folder_;
  AtomicFolder files_;
  StoreHeader header_;
  Output tokens_, labels_, index_;
};

// A store, open for reading. Const methods are thread-safe. Errors are of kData and name the file:
// a store is a cache and can be deleted.
class ExampleStore {
 public:
  // Checks header, sizes and the whole index; kMismatch when the store is for another vocabulary or
  // other labels.
  static absl::StatusOr<ExampleStore> Open(
      const std::string& folder, int32_t vocab, int32_t labels, Targets targets = Targets::kLabels);

  // Reads all tokens and labels and compares their checksums.
  absl::Status VerifyContent(const std::atomic<bool>* stop = nullptr) const;

  int64_t size() const { return header_.examples; }
  int64_t tokens() const { return header_.tokens; }
  const DataStats& stats() const { return header_.stats; }
  const StoreHeader& header() const { return header_; }
  const std::string& folder() const { return folder_; }

  // Reads example i, 0 <= i < size(); every id is < vocab, every label < labels, every row <
  // ids.size().
  absl::Status Read(int64_t i, Example* example) const;

 private:
  struct Input {
    std::string path;
    int64_t size = 0;
    Fd fd;
  };
  ExampleStore() = default;
  // Opens a file of the store, which must have exactly `size` bytes.
  absl::StatusOr<Input> OpenFile(absl::string_view name, int64_t size) const;
  absl::Status CheckIndex() const;

  std::string folder_;
  StoreHeader header_ = {};
  Input tokens_, labels_, index_;
};

// Removes a store's four files and its folder, or a link in its place; kCannotCreate when the
// folder holds something else.
absl::Status RemoveStore(const std::string& folder);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_EXAMPLE_STORE_H_
