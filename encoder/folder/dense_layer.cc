#include "encoder/folder/dense_layer.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/tensor/safetensors.h"
#include "encoder/folder/model_folder.h"

namespace cloze {
namespace {

constexpr int32_t kMaxColumns = 1 << 16;

struct NamedActivation {
  const char* name;
  float (*function)(float);
};
constexpr NamedActivation kActivations[] = {
    {"torch.nn.modules.linear.Identity", [](float x) { return x; }},
    {"torch.nn.modules.activation.Tanh", [](float x) { return std::tanh(x); }},
    {"torch.nn.modules.activation.ReLU", [](float x) { return std::max(x, 0.0f); }},
    {"torch.nn.modules.activation.Sigmoid", [](float x) { return 1 / (1 + std::exp(-x)); }}};

}  // namespace

std::vector<float> DenseLayer::Forward(absl::Span<const float> x) const {
  CLOZE_CHECK(std::ssize(x) == inputs);
  std::vector<float> y(outputs);
  for (int64_t o = 0; o < outputs; ++o) {
    double sum = bias.empty() ? 0 : bias[o];
    for (int64_t i = 0; i < inputs; ++i) sum += double{weight[o * inputs + i]} * x[i];
    y[o] = activation(static_cast<float>(sum));
  }
  return y;
}

absl::StatusOr<DenseLayer> ReadDenseLayer(const std::string& folder) {
  const std::string path = JoinPath(folder, "config.json");
  ASSIGN_OR_RETURN(const Json config, ReadJson(path));
  JsonFields fields(config, path);
  fields.AllowOnly({"in_features", "out_features", "bias", "activation_function",
      "module_input_name", "module_output_name"});
  for (const char* name : {"module_input_name", "module_output_name"})
    fields.AllowValues(name, {nullptr, "sentence_embedding"});
  DenseLayer layer;
  int32_t inputs = 0, outputs = 0;
  fields.Integer("in_features", true, 1, kMaxColumns, &inputs);
  fields.Integer("out_features", true, 1, kMaxColumns, &outputs);
  layer.inputs = inputs, layer.outputs = outputs;
  const bool has_bias = fields.Bool("bias", true);
  const std::string name = fields.String("activation_function");
  for (const NamedActivation& known : kActivations)
    if (name == known.name) layer.activation = known.function;
  if (layer.activation == nullptr)
    fields.Fail("activation_function",
        JsonString(name) + ": expected that of Identity, Tanh, ReLU or Sigmoid");
  if (!fields.status().ok()) return Error(Exit::kMismatch, fields.status().message());
  ASSIGN_OR_RETURN(const SafetensorsReader file, SafetensorsReader::OpenFolder(folder));
  const auto check = [&](const char* name, const std::vector<int64_t>& shape) -> absl::Status {
    const TensorInfo* const tensor = file.Find(name);
    if (tensor == nullptr || absl::c_equal(tensor->shape, shape)) return absl::OkStatus();
    return Error(Exit::kMismatch, QuotePath(file.path()), ": ", name, ": shape ",
        ShapeString(tensor->shape), ": expected ", ShapeString(shape));
  };
  RETURN_IF_ERROR(check("linear.weight", {layer.outputs, layer.inputs}));
  RETURN_IF_ERROR(check("linear.bias", {layer.outputs}));
  if (!has_bias && file.Find("linear.bias") != nullptr)
    return Error(Exit::kMismatch, QuotePath(file.path()),
        ": linear.bias: expected none, as config.json says bias false");
  layer.weight.resize(layer.inputs * layer.outputs);
  RETURN_IF_ERROR(file.ReadF32("linear.weight", absl::MakeSpan(layer.weight)));
  if (has_bias) layer.bias.resize(layer.outputs);
  if (has_bias) RETURN_IF_ERROR(file.ReadF32("linear.bias", absl::MakeSpan(layer.bias)));
  return layer;
}

}  // namespace cloze
