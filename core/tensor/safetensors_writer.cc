// Writing safetensors that we and Hugging Face read.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <functional>

#include "absl/algorithm/container.h"
#include "core/base/json.h"
#include "core/tensor/safetensors.h"

namespace cloze {
namespace {

int64_t Elements(absl::Span<const int64_t> shape) {
  return absl::c_accumulate(shape, int64_t{1}, std::multiplies<>());
}

// Length and JSON, padded with spaces so that data start at a multiple of 8. Offsets of `tensors`
// count from the start of the data.
absl::StatusOr<std::string> FormatHeader(
    const std::string& path, const std::vector<TensorInfo>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const TensorInfo& t : tensors) {
    header[t.name] = {{"dtype", std::string(NameOf(t.type))}, {"shape", t.shape},
        {"data_offsets", {t.offset, t.offset + t.bytes}}};
  }
  std::string json = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  json.resize(RoundUp(json.size(), 8), ' ');
  const uint64_t length = json.size();
  if (length > SafetensorsLimits::kHeader) {
    return Error(Exit::kLimit, QuotePath(path), ": header of ", length, " bytes: expected at most ",
        SafetensorsLimits::kHeader, " (split the input, or shorten its ids)");
  }
  return std::string(reinterpret_cast<const char*>(&length), 8) + json;
}

// `data`: the elements from `first`.
absl::Status CheckFinite(absl::string_view name, int64_t first, absl::Span<const float> data) {
  const auto odd = absl::c_find_if(data, [](float x) { return !std::isfinite(x); });
  if (odd == data.end()) return absl::OkStatus();
  return Error(Exit::kInternal, "tensor ", Quote(name), ": element ", first + (odd - data.begin()),
      " is ", std::isnan(*odd) ? "NaN" : "infinite", "; not written");
}

absl::Status CheckName(const std::string& name) {
  if (!name.empty() && name.size() <= SafetensorsLimits::kName && name != "__metadata__")
    return absl::OkStatus();
  return Error(Exit::kInternal, "tensor ", Quote(name), ": not a name that a file can have");
}

}  // namespace

absl::Status WriteSafetensors(
    const std::string& path, const std::vector<TensorData>& tensors, const Metadata& metadata) {
  std::vector<TensorData> sorted = tensors;
  absl::c_stable_sort(sorted,
      [](const TensorData& a, const TensorData& b) { return SizeOf(a.type) > SizeOf(b.type); });
  std::vector<TensorInfo> infos;
  std::set<std::string> names;
  int64_t offset = 0;
  for (const TensorData& t : sorted) {
    RETURN_IF_ERROR(CheckName(t.name));
    if (!names.insert(t.name).second)
      return Error(Exit::kInternal, "tensor ", Quote(t.name), ": written twice");
    infos.push_back({t.name, t.type, t.shape, offset, Elements(t.shape) * SizeOf(t.type)});
    offset += infos.back().bytes;
  }
  ASSIGN_OR_RETURN(const std::string header, FormatHeader(path, infos, metadata));
  return CreateFile(path, [&](const Fd& fd) {
    RETURN_IF_ERROR(WriteAll(fd, path, header.data(), header.size()));
    for (size_t i = 0; i < sorted.size(); ++i) {
      const TensorData& t = sorted[i];
      if (t.type != FileType::kF32) {
        RETURN_IF_ERROR(WriteAll(fd, path, t.data, infos[i].bytes));
        continue;
      }
      const int64_t n = infos[i].elements();
      absl::Span<const float> part(static_cast<const float*>(t.data), t.next == nullptr ? n : 0);
      for (int64_t done = 0; done < n; done += part.size()) {
        if (t.next != nullptr) part = t.next();
        RETURN_IF_ERROR(CheckFinite(t.name, done, part));
        RETURN_IF_ERROR(WriteAll(fd, path, part.data(), part.size() * sizeof(float)));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status ReplaceSafetensors(
    const std::string& path, const std::vector<TensorData>& tensors, const Metadata& metadata) {
  return ReplaceFile(path,
      [&](const std::string& temporary) { return WriteSafetensors(temporary, tensors, metadata); });
}

absl::StatusOr<SafetensorsStream> SafetensorsStream::Create(const std::string& path, bool replace) {
  if (PathExists(path) && (!replace || IsDirectory(path)))
    return Error(Exit::kCannotCreate, QuotePath(path), ": exists already");
  SafetensorsStream stream;
  stream.path_ = path;
  stream.replace_ = replace;
  const std::string temporary = absl::StrCat(TemporaryName(path), ".data");
  stream.data_ =
      Fd(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!stream.data_.ok()) return Errno(ExitOfCreate(errno), "cannot create", temporary);
  ::unlink(temporary.c_str());  // goes away with the process, whatever happens
  return stream;
}

absl::Status SafetensorsStream::Add(
    const std::string& name, absl::Span<const int64_t> shape, absl::Span<const float> data) {
  CLOZE_CHECK(Elements(shape) == static_cast<int64_t>(data.size()) &&
              shape.size() <= SafetensorsLimits::kRank);
  const int64_t bytes = static_cast<int64_t>(data.size()) * 4;
  TensorInfo* last = tensors_.empty() ? nullptr : &tensors_.back();
  if (last != nullptr && last->name == name && !shape.empty() && !last->shape.empty() &&
      absl::c_equal(shape.subspan(1), absl::MakeSpan(last->shape).subspan(1))) {
    last->shape[0] += shape[0];
    last->bytes += bytes;
  } else {
    RETURN_IF_ERROR(CheckName(name));
    if (tensors_.size() == kMaxTensors) {
      return Error(
          Exit::kLimit, QuotePath(path_), ": more than ", kMaxTensors, " tensors; split the input");
    }
    if (!names_.insert(name).second)
      return Error(Exit::kData, QuotePath(path_), ": two tensors would be called ", Quote(name));
    tensors_.push_back({name, FileType::kF32, {shape.begin(), shape.end()}, size_, bytes});
  }
  RETURN_IF_ERROR(CheckFinite(name, 0, data));
  size_ += bytes;
  return WriteAll(data_, path_, data.data(), bytes);
}

absl::Status SafetensorsStream::Finish(const Metadata& metadata) {
  ASSIGN_OR_RETURN(const std::string header, FormatHeader(path_, tensors_, metadata));
  return ReplaceFile(
      path_,
      [&](const std::string& temporary) {
        return CreateFile(temporary, [&](const Fd& fd) -> absl::Status {
          RETURN_IF_ERROR(WriteAll(fd, temporary, header.data(), header.size()));
          return ForBlocks(data_, path_, size_, [&](const char* block, int64_t bytes) {
            return WriteAll(fd, temporary, block, bytes);
          });
        });
      },
      replace_);
}

}  // namespace cloze
