#include "tasks/inference/vector_index.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/threads.h"
#include "core/tensor/safetensors.h"

namespace cloze {
namespace {

constexpr int64_t kMaxIds = int64_t{1} << 34;  // bytes of NAME.npy.ids.json
constexpr int64_t kMaxValues = int64_t{1} << 40;
constexpr int64_t kMaxCols = 1 << 20;

// Returns the value of a member of the header of a .npy file, up to the next member; "" without it.
std::string NpyMember(absl::string_view header, absl::string_view name) {
  const size_t at = header.find(absl::StrCat("'", name, "':"));
  if (at == absl::string_view::npos) return "";
  header.remove_prefix(at + name.size() + 3);
  return std::string(header.substr(0, header.find_first_of(name == "shape" ? ")" : ",}")));
}

// Parses "(rows, cols".
bool ParseShape(absl::string_view text, int64_t* rows, int64_t* cols) {
  const std::vector<absl::string_view> sizes =
      absl::StrSplit(text, absl::ByAnyChar("(, "), absl::SkipEmpty());
  return sizes.size() == 2 && absl::SimpleAtoi(sizes[0], rows) && absl::SimpleAtoi(sizes[1], cols);
}

}  // namespace

bool IsVectorFile(const std::string& path) {
  return absl::EndsWithIgnoreCase(path, ".npy") || absl::EndsWithIgnoreCase(path, ".safetensors");
}

absl::StatusOr<VectorIndex> VectorIndex::Open(const std::string& path, Similarity similarity) {
  VectorIndex index;
  RETURN_IF_ERROR(
      absl::EndsWithIgnoreCase(path, ".npy") ? index.ReadNpy(path) : index.ReadSafetensors(path));
  RETURN_IF_ERROR(index.Finish(QuotePath(path), similarity));
  return index;
}

absl::StatusOr<VectorIndex> VectorIndex::Of(
    absl::Span<const float> values, int64_t cols, Similarity similarity) {
  VectorIndex index;
  index.cols_ = cols;
  index.rows_ = std::ssize(values) / cols;
  index.data_ = LargeMemory(values.size() * sizeof(float));
  std::copy(values.begin(), values.end(), index.data_.as<float>().begin());
  RETURN_IF_ERROR(index.Finish("vectors", similarity));
  return index;
}

VectorRows VectorIndex::table() const {
  return {data_.get(), rows_, cols_, type_, scales_.empty() ? nullptr : scales_.data()};
}

std::vector<float> VectorIndex::RowsF32(int64_t begin, int64_t n) const {
  std::vector<float> rows(n * cols_);
  WidenRows(table(), begin, n, rows.data());
  return rows;
}

absl::Status VectorIndex::ReadMatrix(const std::string& path, int64_t offset) {
  ASSIGN_OR_RETURN(const Fd fd, OpenForRead(path));
  const int64_t bytes = rows_ * cols_ * SizeOf(type_);
  data_ = LargeMemory(bytes);
  return ReadAt(fd, path, offset, data_.get(), bytes);
}

absl::Status VectorIndex::ReadNpy(const std::string& path) {
  constexpr int64_t kStart = 12;  // of the longer form: 6 bytes, version, length of the header
  const auto wrong = [&](const auto&... what) {
    return Error(Exit::kData, QuotePath(path), ": ", what...);
  };
  ASSIGN_OR_RETURN(const Fd fd, OpenForRead(path));
  ASSIGN_OR_RETURN(const int64_t size, FileSize(path));
  unsigned char start[kStart] = {};
  if (size < kStart) return wrong("not a .npy file: shorter than its header");
  RETURN_IF_ERROR(ReadAt(fd, path, 0, start, kStart));
  if (std::memcmp(start, "\x93NUMPY", 6) != 0 || start[6] < 1 || start[6] > 3)
    return wrong("not a .npy file of version 1, 2 or 3");
  const bool two = start[6] == 1;  // bytes of the length
  const int64_t begin = two ? 10 : 12, length = start[8] | start[9] << 8 |
                                                (two ? 0 : start[10] << 16) |
                                                (two ? 0 : int64_t{start[11]} << 24);
  if (length > 1 << 16 || begin + length > size) return wrong("its header does not fit the file");
  std::string header(length, ' ');
  RETURN_IF_ERROR(ReadAt(fd, path, begin, header.data(), length));
  const std::string type = NpyMember(header, "descr");
  if (!absl::StrContains(type, "'<f4'"))
    return wrong("elements of type", Quote(type), ": expected '<f4', float32");
  if (!absl::StrContains(NpyMember(header, "fortran_order"), "False"))
    return wrong("fortran_order: expected False");
  const std::string shape = NpyMember(header, "shape");
  if (!ParseShape(shape, &rows_, &cols_) || rows_ < 0 || cols_ < 1 || cols_ > kMaxCols ||
      rows_ > kMaxValues / cols_)
    return wrong("shape", Quote(shape), "): expected two dimensions, (texts, dimensions)");
  if (begin + length + rows_ * cols_ * int64_t{sizeof(float)} != size)
    return wrong("its size does not fit the shape", shape, ")");
  RETURN_IF_ERROR(ReadMatrix(path, begin + length));
  const std::string ids = path + ".ids.json";
  if (!PathExists(ids)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string list, ReadFile(ids, kMaxIds));
  return SetIds(list, ids);
}

absl::Status VectorIndex::ReadSafetensors(const std::string& path) {
  ASSIGN_OR_RETURN(const SafetensorsReader reader, SafetensorsReader::Open(path));
  const TensorInfo* const vectors = reader.Find("vectors");
  if (vectors == nullptr || vectors->shape.size() != 2 || vectors->shape[1] < 1)
    return Error(Exit::kData, QuotePath(path),
        ": no matrix \"vectors\": expected a file of `cloze encode` with one vector per text");
  rows_ = vectors->shape[0], cols_ = vectors->shape[1];
  type_ = vectors->type == FileType::kBf16 ? DType::kBf16
          : vectors->type == FileType::kI8 ? DType::kS8
                                           : DType::kF32;
  if (vectors->type == FileType::kBf16 || vectors->type == FileType::kI8) {
    RETURN_IF_ERROR(ReadMatrix(path, vectors->offset));
    if (type_ == DType::kS8) {
      ASSIGN_OR_RETURN(scales_, reader.ReadScales(*vectors, 0, rows_));
    }
  } else {
    data_ = LargeMemory(rows_ * cols_ * int64_t{sizeof(float)});
    const absl::Span<float> all = data_.as<float>().first(rows_ * cols_);
    RETURN_IF_ERROR(reader.ReadF32("vectors", all));
  }
  const auto ids = reader.metadata().find("ids");
  if (ids == reader.metadata().end()) return absl::OkStatus();
  return SetIds(ids->second, absl::StrCat(path, ": ids"));
}

absl::Status VectorIndex::SetIds(const std::string& list, const std::string& where) {
  const std::string object = absl::StrCat("{\"ids\": ", list, "}");
  ASSIGN_OR_RETURN(const Json json, ParseJson(object, where, rows_ + 1000));
  const Json& ids = json["ids"];
  if (!ids.is_array() || std::ssize(ids) != rows_)
    return Error(
        Exit::kData, QuotePath(where), ": expected a list of ", rows_, " ids, one for each vector");
  for (const Json& id : ids) ids_.push_back(ToJsonLine(id));
  return absl::OkStatus();
}

absl::Status VectorIndex::Finish(const std::string& where, Similarity similarity) {
  if (rows_ == 0) return Error(Exit::kData, where, ": no vectors");
  std::vector<float> lengths(rows_);
  RowLengths(table(), lengths.data());
  for (int64_t r = 0; r < rows_; ++r) {
    if (!std::isfinite(lengths[r]))
      return Error(Exit::kData, where, ": vector ", r + 1, " of ", rows_,
          " has a value that is NaN, infinite or too large");
  }
  if (similarity == Similarity::kDot) return absl::OkStatus();
  const auto inverse = [&](int64_t r) { return lengths[r] > 0 ? 1 / lengths[r] : 0; };
  if (type_ == DType::kF32) {
    ParallelChunks(rows_, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (float& x : data_.as<float>().subspan(r * cols_, cols_)) x *= inverse(r);
    });
    return absl::OkStatus();
  }
  if (scales_.empty()) scales_.assign(rows_, 1);
  for (int64_t r = 0; r < rows_; ++r) scales_[r] *= inverse(r);
  return absl::OkStatus();
}

}  // namespace cloze
