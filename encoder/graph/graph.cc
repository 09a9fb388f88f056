#include "encoder/graph/graph.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/text.h"
#include "core/ops/stored_matrix.h"
#include "proto/onnx.pb.h"

namespace cloze {
namespace {

using cloze_onnx::AttributeProto;
using cloze_onnx::TensorProto;
using cloze_onnx::ValueInfoProto;

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");

void SetAttribute(const OnnxGraph::Attribute& attribute, AttributeProto* proto) {
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

void SetShape(ValueInfoProto* info, int type, const Value& value,
    const std::vector<OnnxGraph::Dimension>& shape) {
  info->set_name(value);
  auto* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  for (const OnnxGraph::Dimension& dimension : shape) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (const auto* number = std::get_if<int64_t>(&dimension)) {
      dim->set_dim_value(*number);
    } else {
      dim->set_dim_param(std::get<std::string>(dimension));
    }
  }
}

template <typename T>
std::string BytesOf(absl::Span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

OnnxGraph::OnnxGraph() : model_(std::make_unique<cloze_onnx::ModelProto>()) {}
OnnxGraph::~OnnxGraph() = default;

Value OnnxGraph::Input(const std::string& name, const std::vector<Dimension>& shape) {
  SetShape(model_->mutable_graph()->add_input(), TensorProto::INT64, name, shape);
  return name;
}

void OnnxGraph::Output(const Value& value, const std::vector<Dimension>& shape) {
  SetShape(model_->mutable_graph()->add_output(), TensorProto::FLOAT, value, shape);
}

void OnnxGraph::DeclareShape(const Value& value, const std::vector<Dimension>& shape) {
  SetShape(model_->mutable_graph()->add_value_info(), TensorProto::FLOAT, value, shape);
}

Value OnnxGraph::Add(const char* type, const std::vector<Value>& inputs,
    const std::vector<Attribute>& attributes, const Value& name) {
  cloze_onnx::GraphProto& graph = *model_->mutable_graph();
  auto* node = graph.add_node();
  node->set_op_type(type);
  node->set_name(absl::StrCat(type, "_", graph.node_size()));
  for (const Value& input : inputs) node->add_input(input);
  for (const Attribute& attribute : attributes) SetAttribute(attribute, node->add_attribute());
  node->add_output(name.empty() ? absl::StrCat("v", graph.node_size()) : name);
  return node->output(0);
}

void OnnxGraph::AddOutput(const Value& name) {
  model_->mutable_graph()->mutable_node()->rbegin()->add_output(name);
}

Value OnnxGraph::Reshape(const Value& x, const std::vector<int64_t>& shape) {
  return Add("Reshape", {x, Integers(shape)});
}

Value OnnxGraph::Transpose(const Value& x, const std::vector<int64_t>& order) {
  return Add("Transpose", {x}, {{"perm", order}});
}

Value OnnxGraph::Constant(const std::string& name, int type, const std::vector<int64_t>& shape,
    absl::FunctionRef<std::string()> bytes) {
  return Once(name, [&] {
    TensorProto* tensor = model_->mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (const int64_t dim : shape) tensor->add_dims(dim);
    *tensor->mutable_raw_data() = bytes();
    return name;
  });
}

Value OnnxGraph::Integer(int64_t value) {
  return Constant(absl::StrCat("integer_", value), TensorProto::INT64, {},
      [&] { return BytesOf(absl::MakeConstSpan(&value, 1)); });
}

Value OnnxGraph::Integers(const std::vector<int64_t>& values) {
  return List(absl::StrCat("integers_", absl::StrJoin(values, "_")), values);
}

Value OnnxGraph::List(const std::string& name, const std::vector<int64_t>& values) {
  return Constant(name, TensorProto::INT64, {static_cast<int64_t>(values.size())},
      [&] { return BytesOf(absl::MakeConstSpan(values)); });
}

Value OnnxGraph::Float(float value) {
  return Constant(absl::StrCat("float_", Shortest(value)), TensorProto::FLOAT, {},
      [&] { return BytesOf(absl::MakeConstSpan(&value, 1)); });
}

Value OnnxGraph::Vector(const std::string& name, absl::Span<const float> values) {
  return Constant(name, TensorProto::FLOAT, {static_cast<int64_t>(values.size())},
      [&] { return BytesOf(values); });
}

Value OnnxGraph::Matrix(const std::string& name, ConstMat m) {
  return Constant(name, TensorProto::FLOAT, {m.rows, m.cols},
      [&] { return BytesOf(absl::MakeConstSpan(m.f32(), m.rows * m.cols)); });
}

Value OnnxGraph::Transposed(const std::string& name, ConstMat m) {
  return Constant(name, TensorProto::FLOAT, {m.cols, m.rows},
      [&] { return BytesOf<float>(cloze::Transposed(m.f32(), m.rows, m.cols)); });
}

Value OnnxGraph::Transposed(
    const std::string& name, const int8_t* values, int64_t rows, int64_t cols) {
  return Constant(name, TensorProto::INT8, {cols, rows},
      [&] { return BytesOf<int8_t>(cloze::Transposed(values, rows, cols)); });
}

Value OnnxGraph::Once(const std::string& key, absl::FunctionRef<Value()> make) {
  const auto earlier = once_.find(key);
  return earlier != once_.end() ? earlier->second : once_[key] = make();
}

}  // namespace cloze
