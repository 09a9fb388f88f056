#include "encoder/onnx/model_file.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "proto/onnx.pb.h"

namespace cloze {
namespace {

using cloze_onnx::TensorProto;

constexpr int64_t kIrVersion = 8, kAlignment = 4096;

void AddEntry(TensorProto* tensor, const char* key, const std::string& value) {
  auto* entry = tensor->add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

// Moves the values of the tensors to folder/model.onnx_data.
absl::Status WriteData(const std::vector<TensorProto*>& tensors, const std::string& folder) {
  const std::string path = JoinPath(folder, "model.onnx_data");
  return CreateFile(path, [&](const Fd& fd) -> absl::Status {
    int64_t offset = 0;
    for (TensorProto* tensor : tensors) {
      std::string raw = std::move(*tensor->mutable_raw_data());
      tensor->clear_raw_data();
      const int64_t length = static_cast<int64_t>(raw.size());
      raw.resize((raw.size() + kAlignment - 1) / kAlignment * kAlignment);
      RETURN_IF_ERROR(WriteAll(fd, path, raw.data(), static_cast<int64_t>(raw.size())));
      tensor->set_data_location(TensorProto::EXTERNAL);
      AddEntry(tensor, "location", "model.onnx_data");
      AddEntry(tensor, "offset", absl::StrCat(offset));
      AddEntry(tensor, "length", absl::StrCat(length));
      offset += static_cast<int64_t>(raw.size());
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status WriteOnnx(
    OnnxGraph& graph, int64_t opset, int64_t max_bytes, const std::string& folder) {
  cloze_onnx::ModelProto& model = graph.proto();
  model.mutable_graph()->set_name("encoder");
  model.set_ir_version(kIrVersion);
  model.set_producer_name("cloze");
  model.add_opset_import()->set_version(opset);
  std::vector<TensorProto*> tensors;  // matrices and vectors
  int64_t bytes = 0;
  for (TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.data_type() == TensorProto::INT64 || tensor.dims().empty()) continue;
    tensors.push_back(&tensor);
    bytes += static_cast<int64_t>(tensor.raw_data().size());
  }
  if (bytes > max_bytes) RETURN_IF_ERROR(WriteData(tensors, folder));
  return WriteNewFile(JoinPath(folder, "model.onnx"), model.SerializeAsString());
}

}  // namespace cloze
