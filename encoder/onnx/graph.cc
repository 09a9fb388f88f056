#include "encoder/onnx/graph.h"

#include <bit>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace cloze {
namespace {

using cloze_onnx::AttributeProto;
using cloze_onnx::TensorProto;

constexpr int64_t kIrVersion = 8, kAlignment = 4096;

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

void Set(const OnnxGraph::Attribute& attribute, AttributeProto* proto) {
  proto->set_name(attribute.name);
  if (const auto* i = std::get_if<int64_t>(&attribute.value)) {
    proto->set_type(AttributeProto::INT);
    proto->set_i(*i);
  } else if (const auto* f = std::get_if<float>(&attribute.value)) {
    proto->set_type(AttributeProto::FLOAT);
    proto->set_f(*f);
  } else {
    const auto& ints = std::get<std::vector<int64_t>>(attribute.value);
    proto->set_type(AttributeProto::INTS);
    proto->mutable_ints()->Assign(ints.begin(), ints.end());
  }
}

void AddEntry(TensorProto* tensor, const char* key, const std::string& value) {
  auto* entry = tensor->add_external_data();
  entry->set_key(key);
  entry->set_value(value);
}

}  // namespace

void OnnxGraph::SetShape(cloze_onnx::ValueInfoProto* info, int type, const std::string& name,
    const std::vector<Dimension>& shape) {
  info->set_name(name);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  for (const Dimension& dimension : shape) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (const auto* number = std::get_if<int64_t>(&dimension)) {
      dim->set_dim_value(*number);
    } else {
      dim->set_dim_param(std::get<std::string>(dimension));
    }
  }
}

Value OnnxGraph::Input(const std::string& name, const std::vector<Dimension>& shape) {
  SetShape(graph_->add_input(), TensorProto::INT64, name, shape);
  return name;
}

void OnnxGraph::Output(const Value& value, const std::vector<Dimension>& shape) {
  SetShape(graph_->add_output(), TensorProto::FLOAT, value, shape);
}

void OnnxGraph::DeclareShape(const Value& value, const std::vector<Dimension>& shape) {
  SetShape(graph_->add_value_info(), TensorProto::FLOAT, value, shape);
}

Value OnnxGraph::Add(const char* type, const std::vector<Value>& inputs,
    const std::vector<Attribute>& attributes, const Value& name) {
  auto* node = graph_->add_node();
  node->set_op_type(type);
  node->set_name(absl::StrCat(type, "_", graph_->node_size()));
  for (const Value& input : inputs) node->add_input(input);
  for (const Attribute& attribute : attributes) Set(attribute, node->add_attribute());
  node->add_output(name.empty() ? absl::StrCat("v", graph_->node_size()) : name);
  return node->output(0);
}

std::pair<Value, Value> OnnxGraph::Halve(
    const Value& input, int64_t size, const Value& first, const Value& second) {
  Add("Split", {input, Integers({size, size})}, {{"axis", int64_t{-1}}}, first);
  graph_->mutable_node(graph_->node_size() - 1)->add_output(second);
  return {first, second};
}

std::array<Value, 3> OnnxGraph::Quantize(const Value& x) {
  std::array<Value, 3> outputs = {x + "_int8", x + "_scale", x + "_zero"};
  Add("DynamicQuantizeLinear", {x}, {}, outputs[0]);
  auto* node = graph_->mutable_node(graph_->node_size() - 1);
  node->add_output(outputs[1]);
  node->add_output(outputs[2]);
  return outputs;
}

bool OnnxGraph::Has(const std::string& name) const {
  return absl::c_any_of(
      graph_->initializer(), [&](const TensorProto& constant) { return constant.name() == name; });
}

TensorProto* OnnxGraph::Constant(const std::string& name, int type) {
  TensorProto* tensor = graph_->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  return tensor;
}

Value OnnxGraph::Integers(const std::vector<int64_t>& values, bool scalar) {
  std::string name = absl::StrCat(scalar ? "integer_" : "integers_", absl::StrJoin(values, "_"));
  return Has(name) ? name : List(name, values, scalar);
}

Value OnnxGraph::List(const std::string& name, const std::vector<int64_t>& values, bool scalar) {
  TensorProto* tensor = Constant(name, TensorProto::INT64);
  if (!scalar) tensor->add_dims(static_cast<int64_t>(values.size()));
  tensor->set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return name;
}

Value OnnxGraph::Float(float value) {
  std::string name = absl::StrCat("float_", Shortest(value));
  if (!Has(name)) Constant(name, TensorProto::FLOAT)->set_raw_data(&value, sizeof(value));
  return name;
}

Value OnnxGraph::Matrix(const std::string& name, ConstMat m, bool transposed) {
  TensorProto* tensor = Constant(name, TensorProto::FLOAT);
  const int64_t rows = transposed ? m.cols : m.rows, cols = transposed ? m.rows : m.cols;
  tensor->add_dims(rows);
  tensor->add_dims(cols);
  std::string* raw = tensor->mutable_raw_data();
  raw->resize(rows * cols * sizeof(float));
  auto* out = reinterpret_cast<float*>(raw->data());
  for (int64_t r = 0; r < m.rows; ++r) {
    for (int64_t c = 0; c < m.cols; ++c)
      out[transposed ? c * cols + r : r * cols + c] = m.f32(r)[c];
  }
  bytes_ += static_cast<int64_t>(raw->size());
  return name;
}

Value OnnxGraph::Bytes(const std::string& name, const int8_t* values, int64_t rows, int64_t cols) {
  TensorProto* tensor = Constant(name, TensorProto::INT8);
  tensor->add_dims(cols);
  tensor->add_dims(rows);
  std::string* raw = tensor->mutable_raw_data();
  raw->resize(rows * cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c)
      (*raw)[c * rows + r] = static_cast<char>(values[r * cols + c]);
  }
  bytes_ += rows * cols;
  return name;
}

Value OnnxGraph::Vector(const std::string& name, const float* values, int64_t size) {
  TensorProto* tensor = Constant(name, TensorProto::FLOAT);
  tensor->add_dims(size);
  tensor->set_raw_data(values, size * sizeof(float));
  bytes_ += size * static_cast<int64_t>(sizeof(float));
  return name;
}

absl::Status OnnxGraph::Write(const std::string& folder, int64_t opset, int64_t most) {
  graph_->set_name("encoder");
  model_.set_ir_version(kIrVersion);
  model_.set_producer_name("cloze");
  model_.add_opset_import()->set_version(opset);
  if (bytes_ > most) {
    const std::string path = JoinPath(folder, "model.onnx_data");
    RETURN_IF_ERROR(CreateFile(path, [&](const Fd& fd) -> absl::Status {
      int64_t offset = 0;
      for (TensorProto& tensor : *graph_->mutable_initializer()) {
        if (tensor.data_type() == TensorProto::INT64 || tensor.dims().empty()) continue;
        std::string raw = std::move(*tensor.mutable_raw_data());
        tensor.clear_raw_data();
        const int64_t length = static_cast<int64_t>(raw.size());
        raw.resize((raw.size() + kAlignment - 1) / kAlignment * kAlignment);
        RETURN_IF_ERROR(WriteAll(fd, path, raw.data(), static_cast<int64_t>(raw.size())));
        tensor.set_data_location(TensorProto::EXTERNAL);
        AddEntry(&tensor, "location", "model.onnx_data");
        AddEntry(&tensor, "offset", absl::StrCat(offset));
        AddEntry(&tensor, "length", absl::StrCat(length));
        offset += static_cast<int64_t>(raw.size());
      }
      return absl::OkStatus();
    }));
  }
  return WriteNewFile(JoinPath(folder, "model.onnx"), model_.SerializeAsString());
}

}  // namespace cloze
