// Safetensors: a JSON header, then the data of named tensors. Reading is stricter than in the
// reference implementation, because no file is trusted.
#ifndef CLOZE_CORE_TENSOR_SAFETENSORS_H_
#define CLOZE_CORE_TENSOR_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file.h"
#include "core/base/hash_map.h"
#include "core/base/status.h"
#include "core/tensor/mat.h"

namespace cloze {

// Element types that can be read. The other types of the format have values after these.
enum class FileType : uint8_t { kF32, kF16, kBf16, kF64, kI32, kI64, kI8 };
int64_t SizeOf(FileType type);
absl::string_view NameOf(FileType type);

// The place of a tensor in a file. Its size in bytes fits the shape and the file.
struct TensorInfo {
  std::string name;
  FileType type = FileType::kF32;
  std::vector<int64_t> shape;
  int64_t offset = 0, bytes = 0;  // from the start of the file
  size_t file = 0;                // number of the file
  int64_t elements() const { return bytes / SizeOf(type); }
};

// Returns "[2, 3]".
std::string ShapeString(absl::Span<const int64_t> shape);

// Limits of the files that we read. SafetensorsStream writes more tensors, for other programs.
struct SafetensorsLimits {
  static constexpr int64_t kHeader = 100'000'000, kIndex = 16 << 20, kTensors = 10'000,
                           kName = 1024, kRank = 8, kValues = 1'000'000,
                           kDimension = int64_t{1} << 31;
};

using Metadata = std::map<std::string, std::string>;

// Parses `json`, the header of a file with `data_size` bytes of data from `data_begin`, into
// *tensors, sorted by offset, and *metadata. kData, with the tensor's name, for anything odd:
// leading spaces, duplicate names, unknown types, sizes that do not fit, holes, overlaps, bytes
// left over, limits exceeded. Members of a tensor other than dtype, shape and data_offsets are
// ignored.
absl::Status ParseSafetensorsHeader(absl::string_view json, int64_t data_begin, int64_t data_size,
    std::vector<TensorInfo>* tensors, Metadata* metadata);

// An open file, or the files of a model folder. Uses pread, so a file that shrinks meanwhile is an
// error and not a signal.
class SafetensorsReader {
 public:
  // Opens one file. kNoInput when it is missing, kData when it is not a sound safetensors file.
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);
  // Opens model.safetensors, or the shards listed in model.safetensors.index.json. kNoInput when
  // the folder has neither. kData when the index names a shard outside the folder, or index and
  // shards disagree.
  static absl::StatusOr<SafetensorsReader> OpenFolder(const std::string& folder);

  // Returns the path of the file or folder.
  const std::string& path() const { return path_; }
  // Returns the tensors by file and offset. Their addresses are stable, also when this is moved.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  // Returns nullptr when there is none.
  const TensorInfo* Find(absl::string_view name) const;

  // Returns a tensor; kData when it is missing or does not have this number of elements.
  absl::StatusOr<const TensorInfo*> Need(absl::string_view name, int64_t elements) const;
  // Reads a tensor of type F32, F16, BF16 or F64 into `out`; or of type I8 [rows, cols], times the
  // scale of its row in the tensor `name`_scale [rows, 1]. kData when it is missing, has another
  // type or not out.size() elements, or holds a NaN or an infinity (also a double too large for
  // f32).
  absl::Status ReadF32(absl::string_view name, absl::Span<float> out) const;
  // Reads out.size() elements from element `first` on. Requires that the tensor has them and that,
  // in a tensor of type I8, they are whole rows.
  absl::Status ReadPartF32(absl::string_view name, int64_t first, absl::Span<float> out) const;
  // Reads the scales of rows [first, first + rows) of a 2-D tensor of type I8. kData when they are
  // missing, or one is negative, NaN or infinite.
  absl::StatusOr<std::vector<float>> ReadScales(
      const TensorInfo& tensor, int64_t first, int64_t rows) const;
  // Reads a tensor of type I64 or I32. kData also when a number does not fit.
  absl::Status ReadI32(absl::string_view name, absl::Span<int32_t> out) const;

 private:
  struct File {
    std::string path;
    Fd fd;
  };
  absl::Status Add(const std::string& path);
  absl::Status AddShards(const std::string& index_path);
  absl::Status ReadScaled(const TensorInfo& tensor, int64_t first, absl::Span<float> out) const;
  absl::Status Wrong(const TensorInfo& tensor, absl::string_view what) const;
  template <typename T, typename Out, typename Convert>
  absl::Status ReadConverted(
      const TensorInfo& tensor, int64_t first, absl::Span<Out> out, Convert convert) const;

  std::string path_;
  std::vector<File> files_;
  std::vector<TensorInfo> tensors_;
  Metadata metadata_;
  HashMap<std::string, size_t> index_;
};

// Rows of a stored matrix, read on first use: a few texts need few rows of an embedding table, and
// reading only those saves most of the time and memory at the start. Not thread-safe.
class LazyRows {
 public:
  // Creates an object without rows to read.
  LazyRows() = default;
  // Reads rows of the tensor `name` in `files`, a float type, into `table` [rows, cols] f32, which
  // has the same shape and must outlive this.
  LazyRows(SafetensorsReader files, std::string name, Mat table);

  // Reads those of `rows` (indices, may repeat) that have not been read yet. kData if a value is
  // not finite or the file has become shorter, kIo if it cannot be read.
  absl::Status Read(absl::Span<const int32_t> rows);
  absl::Status ReadAll();

 private:
  absl::Status ReadRun(int64_t begin, int64_t end);

  SafetensorsReader files_;
  std::string name_;
  Mat table_;
  std::vector<bool> there_;  // [rows] true if the row has been read
};

// One tensor to write. `data` points to its elements, which must outlive the call. For F32, `next`
// may replace `data`: it is called while the tensor is written and returns the elements in parts.
struct TensorData {
  std::string name;
  std::vector<int64_t> shape;
  FileType type = FileType::kF32;
  const void* data = nullptr;
  std::function<absl::Span<const float>()> next = nullptr;
};

// Metadata that transformers requires.
inline Metadata DefaultMetadata() { return {{"format", "pt"}}; }

// Creates `path`, which must not exist, writes it and fsyncs it; the caller fsyncs the folder.
// Wider types come first, so that data are aligned. kInternal when a float is not finite or a name
// is empty, too long or given twice; kCannotCreate and kIo. Leaves no file after an error.
absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorData>& tensors,
    const Metadata& metadata = DefaultMetadata());

// Like WriteSafetensors, but replaces `path` atomically.
absl::Status ReplaceSafetensors(const std::string& path, const std::vector<TensorData>& tensors,
    const Metadata& metadata = DefaultMetadata());

// Writes f32 tensors whose number is not known beforehand, in constant memory except for their
// names. `path` appears with Finish(), whole and on disk; without Finish() nothing is left.
class SafetensorsStream {
 public:
  static constexpr size_t kMaxTensors = 1'000'000;  // keeps the header below 100 MB

  // kCannotCreate when `path` exists and `replace` is false, or when its folder is not writable.
  static absl::StatusOr<SafetensorsStream> Create(const std::string& path, bool replace = false);

  // Adds a tensor. If it has the name of the tensor added last and the same shape except for the
  // first dimension, appends its rows to that one. kLimit for too many tensors, kData when the name
  // was used before.
  absl::Status Add(
      const std::string& name, absl::Span<const int64_t> shape, absl::Span<const float> data);

  absl::Status Finish(const Metadata& metadata = DefaultMetadata());

 private:
  std::string path_;
  bool replace_ = false;
  Fd data_;  // a file without a name
  std::vector<TensorInfo> tensors_;
  std::set<std::string> names_;
  int64_t size_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_SAFETENSORS_H_
