// The JSON header of safetensors, parsed event by event: no tree is built, duplicates are seen,
// depth is bounded.
#include <algorithm>
#include <set>
#include <tuple>

#include "core/tensor/safetensors.h"
#include "nlohmann/json.hpp"

namespace cloze {
namespace {

struct TypeName {
  FileType type;
  absl::string_view name;
  int64_t size;
};
constexpr TypeName kTypes[] = {{FileType::kBool, "BOOL", 1}, {FileType::kU8, "U8", 1},
    {FileType::kI8, "I8", 1}, {FileType::kF8E4M3, "F8_E4M3", 1}, {FileType::kF8E5M2, "F8_E5M2", 1},
    {FileType::kI16, "I16", 2}, {FileType::kU16, "U16", 2}, {FileType::kF16, "F16", 2},
    {FileType::kBf16, "BF16", 2}, {FileType::kI32, "I32", 4}, {FileType::kU32, "U32", 4},
    {FileType::kF32, "F32", 4}, {FileType::kI64, "I64", 8}, {FileType::kU64, "U64", 8},
    {FileType::kF64, "F64", 8}};

// Events of the JSON parser, which stops when one returns false; error() then says why. Levels: 1
// the header, 2 a tensor or the metadata, 3 an array of numbers; a value that is passed over may go
// down to kMaxDepth.
class HeaderSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  struct Entry {
    TensorInfo info;
    std::vector<uint64_t> shape, offsets;
    bool has_type = false;
  };

  std::vector<Entry>& entries() { return entries_; }
  std::map<std::string, std::string>& metadata() { return metadata_; }
  const std::string& error() const { return error_; }

  bool null() override { return Scalar("null"); }
  bool boolean(bool) override { return Scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return Scalar("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return Scalar("a number with a fraction");
  }
  bool binary(binary_t&) override { return Scalar("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (level_ != 3 || skipping_) return Scalar("a number");
    if (numbers_->size() == (numbers_ == &entries_.back().offsets ? 2 : SafetensorsLimits::kRank))
      return Fail("too many numbers in an array");
    numbers_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (skipping_ || level_ != 2) return Scalar("a string");
    if (in_metadata_) {
      metadata_[member_] = value;
      return true;
    }
    if (member_ != "dtype") return Scalar("a string");
    for (const TypeName& type : kTypes) {
      if (type.name == absl::string_view(value)) {
        entries_.back().info.type = type.type;
        return entries_.back().has_type = true;
      }
    }
    return Fail(absl::StrCat("unknown dtype ", Quote(value)));
  }

  bool start_object(std::size_t) override {
    if (level_ >= kMaxDepth) return Fail("nested too deeply");
    if (!skipping_ && level_ > 1) return Fail("an object where none is expected");
    ++level_;
    return true;
  }

  bool end_object() override {
    if (--level_ == skip_level_) skipping_ = false;
    return true;
  }

  bool start_array(std::size_t) override {
    if (level_ >= kMaxDepth) return Fail("nested too deeply");
    if (!skipping_) {
      if (level_ != 2 || in_metadata_ || (member_ != "shape" && member_ != "data_offsets"))
        return Fail("an array where none is expected");
      numbers_ = member_ == "shape" ? &entries_.back().shape : &entries_.back().offsets;
    }
    ++level_;
    return true;
  }

  bool end_array() override { return end_object(); }

  bool key(string_t& value) override {
    if (skipping_) return true;
    if (level_ == 1) return BeginEntry(value);
    member_ = value;
    if (!members_.insert(value).second)
      return Fail(absl::StrCat("member ", Quote(value), " comes twice"));
    if (static_cast<int64_t>(members_.size()) > SafetensorsLimits::kTensors)
      return Fail("too many members");
    if (in_metadata_ || value == "dtype" || value == "shape" || value == "data_offsets")
      return true;
    skipping_ = true;
    skip_level_ = level_;
    return true;
  }

  bool parse_error(
      std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    if (error_.empty()) error_ = absl::StrCat("not valid JSON at byte ", position);
    return false;
  }

 private:
  static constexpr int kMaxDepth = 64;

  bool BeginEntry(const std::string& name) {
    members_.clear();
    in_metadata_ = name == "__metadata__";
    name_ = name;
    if (name.empty()) return Fail("empty name");
    if (name.size() > SafetensorsLimits::kName)
      return Fail(absl::StrCat(
          "name of ", name.size(), " bytes, at most ", SafetensorsLimits::kName, " are allowed"));
    if (!names_.insert(name).second) return Fail("the name comes twice");
    if (in_metadata_) return true;
    if (static_cast<int64_t>(entries_.size()) == SafetensorsLimits::kTensors) {
      return Fail(absl::StrCat("more than ", SafetensorsLimits::kTensors, " tensors"));
    }
    entries_.emplace_back().info.name = name;
    return true;
  }

  // A value that is neither object nor array, where only a member that is passed over may have it.
  bool Scalar(absl::string_view what) {
    if (!skipping_) {
      const std::string where = level_ < 2 ? "" : absl::StrCat(" in ", Quote(member_));
      return Fail(absl::StrCat(what, where,
          level_ < 2     ? ", an object expected"
          : in_metadata_ ? ", a string expected"
                         : " is not expected there"));
    }
    if (level_ == skip_level_) skipping_ = false;
    return true;
  }

  bool Fail(absl::string_view what) {
    error_ = name_.empty() ? std::string(what) : absl::StrCat("tensor ", Quote(name_), ": ", what);
    return false;
  }

  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
  std::set<std::string> names_, members_;
  std::vector<uint64_t>* numbers_ = nullptr;
  std::string error_, name_, member_;
  int level_ = 0, skip_level_ = -1;
  bool in_metadata_ = false, skipping_ = false;
};

absl::Status Bad(absl::string_view name, absl::string_view what) {
  return Error(Exit::kData, absl::StrCat("header: tensor ", Quote(name), ": ", what));
}

// Checks one entry by itself and fills in its place.
absl::Status Place(HeaderSax::Entry& entry, int64_t data_begin, int64_t data_size) {
  TensorInfo& info = entry.info;
  if (!entry.has_type) return Bad(info.name, "no dtype");
  if (entry.offsets.size() != 2) return Bad(info.name, "data_offsets needs two numbers");
  uint64_t bytes = SizeOf(info.type);
  for (const uint64_t dimension : entry.shape) {
    if (dimension > SafetensorsLimits::kDimension)
      return Bad(info.name, absl::StrCat("dimension ", dimension, " is too large"));
    if (__builtin_mul_overflow(bytes, dimension, &bytes))
      return Bad(info.name, "the size of its shape overflows");
    info.shape.push_back(static_cast<int64_t>(dimension));
  }
  const uint64_t begin = entry.offsets[0], end = entry.offsets[1];
  if (begin > end || end > static_cast<uint64_t>(data_size)) {
    return Bad(info.name, absl::StrCat("data_offsets [", begin, ", ", end, "], the file has ",
                              data_size, " bytes of data"));
  }
  if (end - begin != bytes) {
    return Bad(info.name, absl::StrCat(end - begin, " bytes, ", bytes, " expected by ",
                              NameOf(info.type), ShapeString(info.shape)));
  }
  info.offset = data_begin + static_cast<int64_t>(begin);
  info.bytes = static_cast<int64_t>(bytes);
  return absl::OkStatus();
}

}  // namespace

int64_t SizeOf(FileType type) { return kTypes[static_cast<int>(type)].size; }

absl::string_view NameOf(FileType type) { return kTypes[static_cast<int>(type)].name; }

std::string ShapeString(absl::Span<const int64_t> shape) {
  std::string out = "[";
  for (const int64_t n : shape) absl::StrAppend(&out, out.size() > 1 ? ", " : "", n);
  return out + "]";
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view json, int64_t data_begin, int64_t data_size) {
  if (json.empty() || json[0] != '{') return Error(Exit::kData, "header: does not start with '{'");
  if (json.find('\0') != absl::string_view::npos)
    return Error(Exit::kData, "header: has a zero byte");
  HeaderSax sax;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &sax))
    return Error(Exit::kData, absl::StrCat("header: ", sax.error()));
  SafetensorsHeader header;
  header.metadata = std::move(sax.metadata());
  for (HeaderSax::Entry& entry : sax.entries()) {
    RETURN_IF_ERROR(Place(entry, data_begin, data_size));
    header.tensors.push_back(std::move(entry.info));
  }
  std::sort(
      header.tensors.begin(), header.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
        return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
      });
  int64_t end = data_begin;
  for (const TensorInfo& tensor : header.tensors) {
    if (tensor.offset != end)
      return Bad(tensor.name,
          tensor.offset < end ? "overlaps another tensor" : "there is a hole before it");
    end += tensor.bytes;
  }
  if (end != data_begin + data_size)
    return Error(Exit::kData, absl::StrCat("header: ", data_begin + data_size - end,
                                  " bytes at the end belong to no tensor"));
  return header;
}

}  // namespace cloze
