// Writing safetensors.
#ifndef CLOZE_CORE_TENSOR_SAFETENSORS_WRITER_H_
#define CLOZE_CORE_TENSOR_SAFETENSORS_WRITER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/tensor/safetensors.h"

namespace cloze {

// One tensor to write; `data` points to its elements, which outlive the call.
struct TensorData {
  std::string name;
  std::vector<int64_t> shape;
  FileType type = FileType::kF32;
  const void* data = nullptr;
};

using Metadata = std::map<std::string, std::string>;

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
  // Keeps the header below the 100 MB that readers allow. (Model folders may have 10,000 tensors,
  // the limit of our reader.)
  static constexpr size_t kMostTensors = 1'000'000;

  // kCannotCreate when `path` exists or its folder is not writable.
  static absl::StatusOr<SafetensorsStream> Create(
      const std::string& path, Metadata metadata = DefaultMetadata());

  // Adds a tensor. If it has the name of the tensor added last and the same shape except for the
  // first dimension, appends its rows to that one. kLimit for too many tensors, kData when the name
  // was used before.
  absl::Status Add(
      const std::string& name, absl::Span<const int64_t> shape, absl::Span<const float> data);

  absl::Status Finish();

 private:
  std::string path_;
  Metadata metadata_;
  Fd data_;  // a file without a name
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, size_t> names_;
  int64_t size_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_SAFETENSORS_WRITER_H_
