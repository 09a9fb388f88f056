// The JSON header of safetensors.
#include <algorithm>
#include <tuple>

#include "absl/strings/str_join.h"
#include "core/base/json.h"
#include "core/tensor/safetensors.h"

namespace cloze {
namespace {

struct TypeName {
  absl::string_view name;
  int64_t size;
};
// In the order of FileType.
constexpr TypeName kTypes[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I32", 4},
    {"I64", 8}, {"I8", 1}, {"BOOL", 1}, {"U8", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I16", 2},
    {"U16", 2}, {"U32", 4}, {"U64", 8}};

template <typename... Parts>
absl::Status Bad(absl::string_view name, const Parts&... what) {
  return Error(Exit::kData, "header: tensor ", Quote(name), ": ", what...);
}

// Reads an array of at most `most` whole numbers that are not negative.
absl::Status ReadNumbers(const std::string& name, const char* member, const Json& entry,
    size_t most, std::vector<uint64_t>* numbers) {
  const Json& array = JsonMember(entry, member);
  if (!array.is_array()) return Bad(name, member, ": expected an array");
  if (array.size() > most) return Bad(name, member, ": too many numbers");
  for (const Json& number : array) {
    if (!number.is_number_unsigned()) {
      return Bad(name, member, ": ", Quote(number.dump(-1, ' ', true)),
          ": expected a whole number that is not negative");
    }
    numbers->push_back(number.get<uint64_t>());
  }
  return absl::OkStatus();
}

absl::Status ReadType(const std::string& name, const Json& type, FileType* out) {
  if (!type.is_string()) return Bad(name, "no dtype");
  const std::string& text = type.get_ref<const std::string&>();
  const auto* const known = std::find_if(std::begin(kTypes), std::end(kTypes),
      [&](const TypeName& t) { return t.name == absl::string_view(text); });
  if (known == std::end(kTypes)) return Bad(name, "unknown dtype ", Quote(text));
  *out = static_cast<FileType>(known - kTypes);
  return absl::OkStatus();
}

// Reads one tensor and checks it by itself.
absl::Status ReadTensor(const std::string& name, const Json& entry, int64_t data_begin,
    int64_t data_size, TensorInfo* info) {
  info->name = name;
  if (name.empty()) return Bad(name, "empty name");
  if (name.size() > SafetensorsLimits::kName) {
    return Bad(
        name, "name of ", name.size(), " bytes: expected at most ", SafetensorsLimits::kName);
  }
  if (!entry.is_object()) return Bad(name, "expected an object");
  std::vector<uint64_t> shape, offsets;
  RETURN_IF_ERROR(ReadType(name, JsonMember(entry, "dtype"), &info->type));
  RETURN_IF_ERROR(ReadNumbers(name, "shape", entry, SafetensorsLimits::kRank, &shape));
  RETURN_IF_ERROR(ReadNumbers(name, "data_offsets", entry, 2, &offsets));
  if (offsets.size() != 2) return Bad(name, "data_offsets: expected two numbers");
  uint64_t bytes = SizeOf(info->type);
  for (const uint64_t dimension : shape) {
    if (dimension > SafetensorsLimits::kDimension)
      return Bad(name, "dimension ", dimension, " is too large");
    if (__builtin_mul_overflow(bytes, dimension, &bytes))
      return Bad(name, "the size of its shape overflows");
    info->shape.push_back(static_cast<int64_t>(dimension));
  }
  const uint64_t begin = offsets[0], end = offsets[1];
  if (begin > end || end > static_cast<uint64_t>(data_size)) {
    return Bad(name, "data_offsets [", begin, ", ", end, "], but the file has ", data_size,
        " bytes of data (incomplete copy or download?)");
  }
  if (end - begin != bytes) {
    return Bad(name, end - begin, " bytes: expected ", bytes, " for ", NameOf(info->type),
        ShapeString(info->shape));
  }
  info->offset = data_begin + static_cast<int64_t>(begin);
  info->bytes = static_cast<int64_t>(bytes);
  return absl::OkStatus();
}

absl::Status ReadMetadata(const Json& json, Metadata* metadata) {
  if (!json.is_object()) return Bad("__metadata__", "expected an object");
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) return Bad("__metadata__", Quote(name), ": expected a string");
    (*metadata)[name] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Sorts the tensors by their place and requires that they fill the data without holes.
absl::Status CheckLayout(int64_t data_begin, int64_t data_size, std::vector<TensorInfo>* tensors) {
  std::sort(tensors->begin(), tensors->end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  int64_t end = data_begin;
  for (const TensorInfo& tensor : *tensors) {
    if (tensor.offset != end)
      return Bad(tensor.name,
          tensor.offset < end ? "overlaps another tensor" : "there is a hole before it");
    end += tensor.bytes;
  }
  if (end == data_begin + data_size) return absl::OkStatus();
  return Error(Exit::kData, "header: ", data_begin + data_size - end,
      " bytes at the end belong to no tensor");
}

}  // namespace

int64_t SizeOf(FileType type) { return kTypes[static_cast<int>(type)].size; }

absl::string_view NameOf(FileType type) { return kTypes[static_cast<int>(type)].name; }

std::string ShapeString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status ParseSafetensorsHeader(absl::string_view json, int64_t data_begin, int64_t data_size,
    std::vector<TensorInfo>* tensors, Metadata* metadata) {
  if (json.empty() || json[0] != '{') return Error(Exit::kData, "header: does not start with '{'");
  ASSIGN_OR_RETURN(const Json root, ParseJson(json, "header", SafetensorsLimits::kValues));
  for (const auto& [name, entry] : root.items()) {
    if (name == "__metadata__") {
      RETURN_IF_ERROR(ReadMetadata(entry, metadata));
    } else if (static_cast<int64_t>(tensors->size()) == SafetensorsLimits::kTensors) {
      return Error(Exit::kData, "header: more than ", SafetensorsLimits::kTensors, " tensors");
    } else {
      RETURN_IF_ERROR(ReadTensor(name, entry, data_begin, data_size, &tensors->emplace_back()));
    }
  }
  return CheckLayout(data_begin, data_size, tensors);
}

}  // namespace cloze
