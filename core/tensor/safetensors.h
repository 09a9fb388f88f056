// Reading safetensors: a JSON header, then the data of named tensors. Stricter than the reference
// implementation, because no file is trusted.
#ifndef CLOZE_CORE_TENSOR_SAFETENSORS_H_
#define CLOZE_CORE_TENSOR_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace cloze {

// Element types of the format.
enum class FileType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64
};
int64_t SizeOf(FileType type);
absl::string_view NameOf(FileType type);

// The place of a tensor in a file. Its size in bytes fits the shape and the file.
struct TensorInfo {
  std::string name;
  FileType type = FileType::kF32;
  std::vector<int64_t> shape;
  int64_t offset = 0, bytes = 0;  // from the start of the file
  int64_t elements() const { return bytes / SizeOf(type); }
};

// Returns "[2, 3]".
std::string ShapeString(absl::Span<const int64_t> shape);

// Limits of every file, also of those we write.
struct SafetensorsLimits {
  static constexpr int64_t kHeader = 100'000'000, kIndex = 16 << 20, kTensors = 10'000,
                           kName = 1024, kRank = 8, kValues = 1'000'000,
                           kDimension = int64_t{1} << 31;
};

// The content of a header; tensors are sorted by offset.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
};

// Parses `json`, the header of a file with `data_size` bytes of data from `data_begin`.
// kData, with the tensor's name, for anything odd: leading blanks, duplicate names, unknown types,
// sizes that do not fit, holes, overlaps, bytes left over, limits exceeded. Members of a tensor
// other than dtype, shape and data_offsets are ignored.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view json, int64_t data_begin, int64_t data_size);

// Whether values may be NaN or infinite.
enum class Values { kFinite, kAny };

// One open file. Uses pread, so a file that shrinks meanwhile is an error and not a signal.
class SafetensorsReader {
 public:
  // kNoInput when the file is missing, kData when it is not a sound safetensors file.
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  // Returns nullptr when there is none.
  const TensorInfo* Find(absl::string_view name) const;

  // Reads a tensor of type F32, F16, BF16 or F64 into `out`. kData when it is missing, has another
  // type or not out.size() elements, or holds a NaN or an infinity (a double too large for f32
  // included) and `values` forbids them.
  absl::Status ReadF32(
      absl::string_view name, absl::Span<float> out, Values values = Values::kFinite) const;
  // Reads out.size() elements from `first`. Requires that the tensor has them.
  absl::Status ReadPartF32(absl::string_view name, int64_t first, absl::Span<float> out,
      Values values = Values::kFinite) const;
  // Reads a tensor of type I64 or I32. kData also when a number does not fit.
  absl::Status ReadI64(absl::string_view name, absl::Span<int64_t> out) const;
  absl::Status ReadI32(absl::string_view name, absl::Span<int32_t> out) const;

 private:
  absl::StatusOr<const TensorInfo*> Need(absl::string_view name, int64_t elements) const;
  absl::Status Wrong(const TensorInfo& tensor, absl::string_view what) const;

  std::string path_;
  Fd fd_;
  SafetensorsHeader header_;
  std::unordered_map<std::string, size_t> index_;
};

// The tensors of a model folder: model.safetensors, or the shards listed in
// model.safetensors.index.json.
class TensorFolder {
 public:
  // kNoInput when the folder has neither file. kData when the index names a shard outside the
  // folder, or index and shards disagree.
  static absl::StatusOr<TensorFolder> Open(const std::string& folder);

  // Returns all tensors, file by file.
  std::vector<const TensorInfo*> tensors() const;
  // Returns nullptr when there is none.
  const TensorInfo* Find(absl::string_view name) const;
  // Like SafetensorsReader.
  absl::Status ReadF32(
      absl::string_view name, absl::Span<float> out, Values values = Values::kFinite) const;
  absl::Status ReadPartF32(absl::string_view name, int64_t first, absl::Span<float> out,
      Values values = Values::kFinite) const;

 private:
  absl::Status OpenShards(const std::string& folder, const std::string& index_path);
  absl::StatusOr<const SafetensorsReader*> FileOf(absl::string_view name) const;

  std::string folder_;
  std::vector<SafetensorsReader> files_;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_SAFETENSORS_H_
