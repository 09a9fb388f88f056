// Reading safetensors: one file, and folders of shards.
#include "core/tensor/safetensors.h"

#include <limits.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <set>

#include "core/base/json.h"
#include "core/tensor/half.h"

namespace cloze {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr int64_t kChunk = 1 << 18;  // elements

// Reads a tensor of elements T in chunks and converts them.
template <typename T, typename Out, typename Convert>
absl::Status ReadConverted(
    const Fd& fd, absl::string_view path, const TensorInfo& tensor, Out* out, Convert convert) {
  const int64_t n = tensor.elements();
  const auto buffer = std::make_unique<T[]>(std::min(n, kChunk));
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    RETURN_IF_ERROR(ReadAt(fd, path, tensor.offset + i * static_cast<int64_t>(sizeof(T)),
        buffer.get(), count * static_cast<int64_t>(sizeof(T))));
    std::transform(buffer.get(), buffer.get() + count, out + i, convert);
  }
  return absl::OkStatus();
}

// Tests the exponent bits of many values at once, which the compiler vectorizes.
bool AllFinite(absl::Span<const float> values) {
  constexpr uint32_t kExponent = 0x7F800000;
  constexpr size_t kAtOnce = 256;
  size_t i = 0;
  for (; i + kAtOnce <= values.size(); i += kAtOnce) {
    uint32_t bits[kAtOnce], odd = 0;
    std::memcpy(bits, values.data() + i, sizeof(bits));
    for (size_t j = 0; j < kAtOnce; ++j) odd |= (bits[j] & kExponent) == kExponent;
    if (odd != 0) return false;
  }
  return std::all_of(values.begin() + i, values.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(const std::string& path) {
  SafetensorsReader reader;
  reader.path_ = path;
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  ASSIGN_OR_RETURN(reader.fd_, OpenForRead(path));
  const auto bad = [&](absl::string_view what) {
    return Error(Exit::kData, QuotePath(path), ": not a safetensors file: ", what);
  };
  if (size < 8) return bad(absl::StrCat(size, " bytes: expected at least 8"));
  uint64_t length = 0;
  RETURN_IF_ERROR(ReadAt(reader.fd_, path, 0, &length, 8));
  if (length > SafetensorsLimits::kHeader)
    return bad(absl::StrCat(
        "header of ", length, " bytes, at most ", SafetensorsLimits::kHeader, " are allowed"));
  if (length > static_cast<uint64_t>(size - 8))
    return bad(absl::StrCat("header of ", length, " bytes, the file has ", size));
  std::string json(length, '\0');
  RETURN_IF_ERROR(ReadAt(reader.fd_, path, 8, json.data(), json.size()));
  const int64_t begin = 8 + static_cast<int64_t>(length);
  auto header = ParseSafetensorsHeader(json, begin, size - begin);
  if (!header.ok()) return Annotate(header.status(), QuotePath(path));
  reader.header_ = *std::move(header);
  for (size_t i = 0; i < reader.tensors().size(); ++i) reader.index_[reader.tensors()[i].name] = i;
  return reader;
}

const TensorInfo* SafetensorsReader::Find(absl::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors()[found->second];
}

absl::Status SafetensorsReader::Wrong(const TensorInfo& tensor, absl::string_view what) const {
  return Error(Exit::kData, QuotePath(path_), ": tensor ", Quote(tensor.name), ": ", what);
}

absl::StatusOr<const TensorInfo*> SafetensorsReader::Need(
    absl::string_view name, int64_t elements) const {
  const TensorInfo* tensor = Find(name);
  if (tensor == nullptr) return Error(Exit::kData, QuotePath(path_), ": no tensor ", Quote(name));
  if (tensor->elements() != elements)
    return Wrong(*tensor,
        absl::StrCat("shape ", ShapeString(tensor->shape), ": expected ", elements, " elements"));
  return tensor;
}

absl::Status SafetensorsReader::ReadF32(
    absl::string_view name, absl::Span<float> out, Values values) const {
  RETURN_IF_ERROR(Need(name, out.size()).status());
  return ReadPartF32(name, 0, out, values);
}

absl::Status SafetensorsReader::ReadPartF32(
    absl::string_view name, int64_t first, absl::Span<float> out, Values values) const {
  const TensorInfo* tensor = Find(name);
  CLOZE_CHECK(tensor != nullptr && first >= 0 &&
              first + static_cast<int64_t>(out.size()) <= tensor->elements());
  TensorInfo part = *tensor;
  part.offset += first * SizeOf(part.type);
  part.bytes = out.size() * SizeOf(part.type);
  switch (part.type) {
    case FileType::kF32:
      RETURN_IF_ERROR(ReadAt(fd_, path_, part.offset, out.data(), part.bytes));
      break;
    case FileType::kF16:
      RETURN_IF_ERROR(ReadConverted<uint16_t>(fd_, path_, part, out.data(), HalfToFloat));
      break;
    case FileType::kBf16:
      RETURN_IF_ERROR(ReadConverted<uint16_t>(
          fd_, path_, part, out.data(), [](uint16_t x) { return Bf16ToFloat({x}); }));
      break;
    case FileType::kF64:
      RETURN_IF_ERROR(ReadConverted<double>(fd_, path_, part, out.data(), [](double x) {
        constexpr double kMax = std::numeric_limits<float>::max();
        return x > kMax ? HUGE_VALF : x < -kMax ? -HUGE_VALF : static_cast<float>(x);
      }));
      break;
    default:
      return Wrong(
          *tensor, absl::StrCat("type ", NameOf(tensor->type), ": expected F32, F16, BF16 or F64"));
  }
  if (values == Values::kAny || AllFinite(out)) return absl::OkStatus();
  const auto odd = std::find_if(out.begin(), out.end(), [](float x) { return !std::isfinite(x); });
  return Wrong(*tensor, absl::StrCat("element ", first + (odd - out.begin()), " is ",
                            std::isnan(*odd) ? "NaN" : "infinite or too large",
                            "; the file is damaged or training diverged"));
}

absl::Status SafetensorsReader::ReadI64(absl::string_view name, absl::Span<int64_t> out) const {
  ASSIGN_OR_RETURN(const TensorInfo* tensor, Need(name, out.size()));
  if (tensor->type == FileType::kI64)
    return ReadAt(fd_, path_, tensor->offset, out.data(), tensor->bytes);
  if (tensor->type == FileType::kI32)
    return ReadConverted<int32_t>(
        fd_, path_, *tensor, out.data(), [](int32_t x) { return int64_t{x}; });
  return Wrong(*tensor, absl::StrCat("type ", NameOf(tensor->type), ": expected I64 or I32"));
}

absl::Status SafetensorsReader::ReadI32(absl::string_view name, absl::Span<int32_t> out) const {
  ASSIGN_OR_RETURN(const TensorInfo* tensor, Need(name, out.size()));
  if (tensor->type == FileType::kI32)
    return ReadAt(fd_, path_, tensor->offset, out.data(), tensor->bytes);
  if (tensor->type != FileType::kI64)
    return Wrong(*tensor, absl::StrCat("type ", NameOf(tensor->type), ": expected I64 or I32"));
  int64_t low = 0, high = 0;
  RETURN_IF_ERROR(ReadConverted<int64_t>(fd_, path_, *tensor, out.data(), [&](int64_t x) {
    low = std::min(low, x), high = std::max(high, x);
    return static_cast<int32_t>(x);
  }));
  const bool fits =
      low >= std::numeric_limits<int32_t>::min() && high <= std::numeric_limits<int32_t>::max();
  return fits ? absl::OkStatus() : Wrong(*tensor, "a number does not fit into 32 bits");
}

absl::StatusOr<TensorFolder> TensorFolder::Open(const std::string& folder) {
  TensorFolder result;
  result.folder_ = folder;
  const std::string single = JoinPath(folder, "model.safetensors"),
                    index = JoinPath(folder, "model.safetensors.index.json");
  if (PathExists(single)) {
    ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(single));
    result.files_.push_back(std::move(reader));
    return result;
  }
  if (PathExists(index)) {
    RETURN_IF_ERROR(result.OpenShards(folder, index));
    return result;
  }
  const bool pickle = PathExists(JoinPath(folder, "pytorch_model.bin"));
  return Error(Exit::kNoInput, QuotePath(folder), ": no model.safetensors",
      pickle ? "; pytorch_model.bin is a program, not data, and is "
               "never read: save the model as safetensors first"
             : "");
}

absl::Status TensorFolder::OpenShards(const std::string& folder, const std::string& index_path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path, SafetensorsLimits::kIndex));
  ASSIGN_OR_RETURN(const Json index, ParseJson(text, index_path));
  const auto bad = [&](absl::string_view what) {
    return Error(Exit::kData, QuotePath(index_path), ": weight_map: ", what);
  };
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object())
    return bad("expected an object of tensor names and file names");
  std::set<std::string> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string()) return bad(absl::StrCat(Quote(name), ": expected a file name"));
    const std::string file = shard.get<std::string>();
    if (file.empty() || file[0] == '.' || file.size() > NAME_MAX ||
        file.find_first_of(std::string("/\\\0", 3)) != std::string::npos) {
      return bad(absl::StrCat(
          Quote(name), ": ", Quote(file), " is not the plain name of a file in this folder"));
    }
    shards.insert(file);
  }
  if (shards.size() > SafetensorsLimits::kTensors) return bad("too many files");
  size_t found = 0;
  for (const std::string& shard : shards) {
    ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(JoinPath(folder, shard)));
    for (const TensorInfo& tensor : reader.tensors()) {
      const auto entry = map->find(tensor.name);
      if (entry == map->end())
        return bad(absl::StrCat(
            Quote(shard), " has tensor ", Quote(tensor.name), " that the index does not name"));
      if (*entry != shard)
        return bad(absl::StrCat("tensor ", Quote(tensor.name), " is in ", Quote(shard),
            ", not only in the file that the index names"));
      ++found;
    }
    files_.push_back(std::move(reader));
  }
  if (found == map->size()) return absl::OkStatus();
  for (const auto& [name, shard] : map->items()) {
    if (Find(name) == nullptr)
      return bad(
          absl::StrCat("tensor ", Quote(name), " is missing in ", Quote(shard.get<std::string>())));
  }
  return absl::OkStatus();
}

std::vector<const TensorInfo*> TensorFolder::tensors() const {
  std::vector<const TensorInfo*> all;
  for (const SafetensorsReader& file : files_) {
    for (const TensorInfo& tensor : file.tensors()) all.push_back(&tensor);
  }
  return all;
}

const TensorInfo* TensorFolder::Find(absl::string_view name) const {
  for (const SafetensorsReader& file : files_) {
    if (const TensorInfo* tensor = file.Find(name)) return tensor;
  }
  return nullptr;
}

absl::StatusOr<const SafetensorsReader*> TensorFolder::FileOf(absl::string_view name) const {
  for (const SafetensorsReader& file : files_) {
    if (file.Find(name) != nullptr) return &file;
  }
  return Error(Exit::kData, QuotePath(folder_), ": no tensor ", Quote(name));
}

absl::Status TensorFolder::ReadF32(
    absl::string_view name, absl::Span<float> out, Values values) const {
  ASSIGN_OR_RETURN(const SafetensorsReader* file, FileOf(name));
  return file->ReadF32(name, out, values);
}

absl::Status TensorFolder::ReadPartF32(
    absl::string_view name, int64_t first, absl::Span<float> out, Values values) const {
  ASSIGN_OR_RETURN(const SafetensorsReader* file, FileOf(name));
  return file->ReadPartF32(name, first, out, values);
}

}  // namespace cloze
