// Reading safetensors: one file, or a folder of shards.
#include "core/tensor/safetensors.h"

#include <limits.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "core/base/json.h"
#include "core/base/text.h"

namespace cloze {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

}  // namespace

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(const std::string& path) {
  SafetensorsReader reader;
  reader.path_ = path;
  RETURN_IF_ERROR(reader.Add(path));
  return reader;
}

absl::StatusOr<SafetensorsReader> SafetensorsReader::OpenFolder(const std::string& folder) {
  SafetensorsReader reader;
  reader.path_ = folder;
  const std::string single = JoinPath(folder, "model.safetensors"), index = single + ".index.json";
  const bool whole = PathExists(single), pickle = PathExists(JoinPath(folder, "pytorch_model.bin"));
  if (!whole && !PathExists(index)) {
    return Error(Exit::kNoInput, QuotePath(folder), ": no model.safetensors",
        pickle ? "; pytorch_model.bin is a program, not data, and is "
                 "never read: save the model as safetensors first"
               : "");
  }
  RETURN_IF_ERROR(whole ? reader.Add(single) : reader.AddShards(index));
  return reader;
}

absl::Status SafetensorsReader::Add(const std::string& path) {
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  ASSIGN_OR_RETURN(Fd fd, OpenForRead(path));
  const auto bad = [&](const auto&... what) {
    return Error(Exit::kData, QuotePath(path), ": not a safetensors file: ", what...);
  };
  std::string start(std::min<int64_t>(size, 64), '\0');
  RETURN_IF_ERROR(ReadAt(fd, path, 0, start.data(), static_cast<int64_t>(start.size())));
  if (absl::StartsWith(start, "version https://git-lfs"))
    return bad("is ", OtherFormat(start),
        ": expected the weights themselves (fetch them with git lfs pull)");
  if (size < 8) return bad(size, " bytes: expected at least 8");
  uint64_t length = 0;
  RETURN_IF_ERROR(ReadAt(fd, path, 0, &length, 8));
  if (length > SafetensorsLimits::kHeader)
    return bad("header of ", length, " bytes: expected at most ", SafetensorsLimits::kHeader);
  if (length > static_cast<uint64_t>(size - 8))
    return bad("header of ", length, " bytes, the file has ", size);
  std::string json(length, '\0');
  RETURN_IF_ERROR(ReadAt(fd, path, 8, json.data(), json.size()));
  const int64_t begin = 8 + static_cast<int64_t>(length);
  std::vector<TensorInfo> tensors;
  RETURN_IF_ERROR(Annotate(
      ParseSafetensorsHeader(json, begin, size - begin, &tensors, &metadata_), QuotePath(path)));
  for (TensorInfo& tensor : tensors) {
    tensor.file = files_.size();
    index_.emplace(tensor.name, tensors_.size());
    tensors_.push_back(std::move(tensor));
  }
  files_.push_back({path, std::move(fd)});
  return absl::OkStatus();
}

absl::Status SafetensorsReader::AddShards(const std::string& index_path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path, SafetensorsLimits::kIndex));
  ASSIGN_OR_RETURN(const Json index, ParseJson(text, index_path));
  const auto bad = [&](const auto&... what) {
    return Error(Exit::kData, QuotePath(index_path), ": weight_map: ", what...);
  };
  const Json& map = JsonMember(index, "weight_map");
  if (!map.is_object()) return bad("expected an object of tensor names and file names");
  std::set<std::string> shards;
  for (const auto& [name, shard] : map.items()) {
    if (!shard.is_string()) return bad(Quote(name), ": expected a file name");
    const std::string file = shard.get<std::string>();
    if (file.empty() || file[0] == '.' || file.size() > NAME_MAX ||
        file.find_first_of(std::string("/\\\0", 3)) != std::string::npos) {
      return bad(Quote(name), ": ", Quote(file), " is not the plain name of a file in this folder");
    }
    shards.insert(file);
  }
  if (shards.size() > SafetensorsLimits::kTensors) return bad("too many files");
  for (const std::string& shard : shards) {
    size_t known = tensors_.size();
    RETURN_IF_ERROR(Add(JoinPath(path_, shard)));
    for (; known < tensors_.size(); ++known) {
      const std::string& name = tensors_[known].name;
      const auto entry = map.find(name);
      if (entry == map.end())
        return bad(Quote(shard), " has tensor ", Quote(name), " that the index does not name");
      if (*entry != shard)
        return bad("tensor ", Quote(name), " is in ", Quote(shard), ": expected it in ",
            Quote(entry->get<std::string>()), ", as the index says");
    }
  }
  for (const auto& [name, shard] : map.items()) {
    if (Find(name) == nullptr)
      return bad("tensor ", Quote(name), " is missing in ", Quote(shard.get<std::string>()));
  }
  return absl::OkStatus();
}

const TensorInfo* SafetensorsReader::Find(absl::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

absl::Status SafetensorsReader::Wrong(const TensorInfo& tensor, absl::string_view what) const {
  return Error(Exit::kData, QuotePath(files_[tensor.file].path), ": tensor ", Quote(tensor.name),
      ": ", what);
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

// Reads out.size() elements T from `first` in chunks and converts them.
template <typename T, typename Out, typename Convert>
absl::Status SafetensorsReader::ReadConverted(
    const TensorInfo& tensor, int64_t first, absl::Span<Out> out, Convert convert) const {
  constexpr size_t kChunk = 1 << 18;  // elements
  const File& file = files_[tensor.file];
  std::vector<T> buffer(std::min(out.size(), kChunk));
  for (size_t i = 0; i < out.size(); i += kChunk) {
    const size_t count = std::min(kChunk, out.size() - i);
    RETURN_IF_ERROR(ReadAt(file.fd, file.path, tensor.offset + (first + i) * sizeof(T),
        buffer.data(), count * sizeof(T)));
    std::transform(buffer.begin(), buffer.begin() + count, out.begin() + i, convert);
  }
  return absl::OkStatus();
}

absl::Status SafetensorsReader::ReadF32(absl::string_view name, absl::Span<float> out) const {
  RETURN_IF_ERROR(Need(name, out.size()).status());
  return ReadPartF32(name, 0, out);
}

absl::Status SafetensorsReader::ReadPartF32(
    absl::string_view name, int64_t first, absl::Span<float> out) const {
  const TensorInfo* tensor = Find(name);
  CLOZE_CHECK(tensor != nullptr && first >= 0 &&
              first + static_cast<int64_t>(out.size()) <= tensor->elements());
  switch (tensor->type) {
    case FileType::kF32:
      RETURN_IF_ERROR(ReadAt(files_[tensor->file].fd, files_[tensor->file].path,
          tensor->offset + first * 4, out.data(), out.size() * 4));
      break;
    case FileType::kF16:
      RETURN_IF_ERROR(ReadConverted<uint16_t>(*tensor, first, out, HalfToFloat));
      break;
    case FileType::kBf16:
      RETURN_IF_ERROR(ReadConverted<Bf16>(*tensor, first, out, Bf16ToFloat));
      break;
    case FileType::kF64:
      RETURN_IF_ERROR(ReadConverted<double>(*tensor, first, out, [](double x) {
        constexpr double kMax = std::numeric_limits<float>::max();
        return x > kMax ? HUGE_VALF : x < -kMax ? -HUGE_VALF : static_cast<float>(x);
      }));
      break;
    case FileType::kI8: RETURN_IF_ERROR(ReadScaled(*tensor, first, out)); break;
    default:
      return Wrong(*tensor, absl::StrCat("type ", NameOf(tensor->type),
                                ": expected F32, F16, BF16, F64, or I8 with scales"));
  }
  if (AllFinite(out)) return absl::OkStatus();
  const auto odd = absl::c_find_if(out, [](float x) { return !std::isfinite(x); });
  return Wrong(*tensor, absl::StrCat("element ", first + (odd - out.begin()), " is ",
                            std::isnan(*odd) ? "NaN" : "infinite or too large",
                            "; the file is damaged or training diverged"));
}

absl::StatusOr<std::vector<float>> SafetensorsReader::ReadScales(
    const TensorInfo& tensor, int64_t first, int64_t count) const {
  const std::string name = tensor.name + "_scale";
  const TensorInfo* scale = Find(name);
  const int64_t rows = tensor.shape[0];
  if (scale == nullptr || scale->type == FileType::kI8 ||
      scale->shape != std::vector<int64_t>{rows, 1}) {
    return Wrong(tensor, absl::StrCat("type I8: expected floating-point scales ", Quote(name),
                             " of shape ", ShapeString({rows, 1}), ", found ",
                             scale == nullptr ? "none" : ShapeString(scale->shape)));
  }
  std::vector<float> scales(count);
  RETURN_IF_ERROR(ReadPartF32(name, first, absl::MakeSpan(scales)));
  const auto odd = absl::c_find_if(scales, [](float scale) { return scale < 0; });
  if (odd == scales.end()) return scales;
  return Wrong(*scale, absl::StrCat("element ", first + (odd - scales.begin()), " is ", *odd,
                           ": expected a scale, at least 0"));
}

absl::Status SafetensorsReader::ReadScaled(
    const TensorInfo& tensor, int64_t first, absl::Span<float> out) const {
  if (tensor.shape.size() != 2 || tensor.shape[1] == 0)
    return Wrong(tensor,
        absl::StrCat("I8 of shape ", ShapeString(tensor.shape), ": expected 2-D, not empty"));
  const int64_t cols = tensor.shape[1];
  CLOZE_CHECK(first % cols == 0 && out.size() % cols == 0);
  ASSIGN_OR_RETURN(
      const std::vector<float> scales, ReadScales(tensor, first / cols, out.size() / cols));
  RETURN_IF_ERROR(
      ReadConverted<int8_t>(tensor, first, out, [](int8_t q) { return static_cast<float>(q); }));
  for (size_t r = 0; r < scales.size(); ++r)
    for (float& x : out.subspan(r * cols, cols)) x *= scales[r];
  return absl::OkStatus();
}

absl::Status SafetensorsReader::ReadI32(absl::string_view name, absl::Span<int32_t> out) const {
  ASSIGN_OR_RETURN(const TensorInfo* tensor, Need(name, out.size()));
  if (tensor->type == FileType::kI32)
    return ReadConverted<int32_t>(*tensor, 0, out, [](int32_t x) { return x; });
  if (tensor->type != FileType::kI64)
    return Wrong(*tensor, absl::StrCat("type ", NameOf(tensor->type), ": expected I64 or I32"));
  bool fits = true;
  RETURN_IF_ERROR(ReadConverted<int64_t>(*tensor, 0, out, [&](int64_t x) {
    fits &= x == static_cast<int32_t>(x);
    return static_cast<int32_t>(x);
  }));
  return fits ? absl::OkStatus() : Wrong(*tensor, "a number does not fit into 32 bits");
}

LazyRows::LazyRows(SafetensorsReader files, std::string name, Mat table)
    : files_(std::move(files)), name_(std::move(name)), table_(table), there_(table.rows) {
  CLOZE_CHECK(table.stride == table.cols);
}

absl::Status LazyRows::ReadRun(int64_t begin, int64_t end) {
  const absl::Span<float> out(table_.f32(begin), (end - begin) * table_.cols);
  RETURN_IF_ERROR(files_.ReadPartF32(name_, begin * table_.cols, out));
  std::fill(there_.begin() + begin, there_.begin() + end, true);
  return absl::OkStatus();
}

absl::Status LazyRows::Read(absl::Span<const int32_t> rows) {
  if (table_.empty()) return absl::OkStatus();
  for (const int32_t row : rows) {
    if (!there_[row]) RETURN_IF_ERROR(ReadRun(row, row + 1));
  }
  return absl::OkStatus();
}

absl::Status LazyRows::ReadAll() {
  for (auto begin = there_.begin();
       (begin = std::find(begin, there_.end(), false)) != there_.end();) {
    const auto end = std::find(begin, there_.end(), true);
    RETURN_IF_ERROR(ReadRun(begin - there_.begin(), end - there_.begin()));
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace cloze
