// A safetensors file: header, tensors of all types, finite or not.
#include <algorithm>
#include <vector>

#include "core/tensor/safetensors.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cloze;
  const fuzz::File file({reinterpret_cast<const char*>(data), size});
  const auto reader = SafetensorsReader::Open(file.path());
  fuzz::CheckError(reader.status());
  if (!reader.ok()) return 0;
  int64_t total = 0;
  for (const TensorInfo& tensor : reader->tensors()) {
    total += tensor.bytes;
    CLOZE_CHECK(reader->Find(tensor.name) == &tensor && tensor.offset >= 8 &&
                tensor.offset + tensor.bytes <= static_cast<int64_t>(size));
    std::vector<float> floats(tensor.elements());
    std::vector<int32_t> ints(tensor.elements());
    const absl::Status finite = reader->ReadF32(tensor.name, absl::MakeSpan(floats));
    fuzz::CheckError(finite);
    if (finite.ok())
      CLOZE_CHECK(std::all_of(floats.begin(), floats.end(), [](float x) { return x - x == 0; }));
    fuzz::CheckError(reader->ReadI32(tensor.name, absl::MakeSpan(ints)));
  }
  CLOZE_CHECK(total < static_cast<int64_t>(size));
  return 0;
}
