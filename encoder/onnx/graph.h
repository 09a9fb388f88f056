// Builds ONNX graphs: nodes, constants, and the files that hold them.
#ifndef CLOZE_ENCODER_ONNX_GRAPH_H_
#define CLOZE_ENCODER_ONNX_GRAPH_H_

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/mat.h"
#include "proto/onnx.pb.h"

namespace cloze {

// The name of a value: an input or an output of nodes.
using Value = std::string;

class OnnxGraph {
 public:
  struct Attribute {
    std::string name;
    std::variant<int64_t, float, std::vector<int64_t>> value;
  };
  // A dimension: a number, or the name of one that varies.
  using Dimension = std::variant<int64_t, std::string>;

  // Adds an input of whole numbers, or an output of floats.
  Value Input(const std::string& name, const std::vector<Dimension>& shape);
  void Output(const Value& value, const std::vector<Dimension>& shape);
  // States the shape of a float value that ONNX Runtime cannot derive, but needs for its fusions.
  void DeclareShape(const Value& value, const std::vector<Dimension>& shape);

  // Adds a node with one output; "" as an input: none.
  Value Add(const char* type, const std::vector<Value>& inputs,
      const std::vector<Attribute>& attributes = {}, const Value& name = "");
  // Adds a node that halves the last dimension, 2 * size; `first` and `second` name the halves.
  std::pair<Value, Value> Halve(
      const Value& input, int64_t size, const Value& first, const Value& second);

  // Adds the node that quantizes x to u8. Returns the bytes, their scale and their zero point.
  std::array<Value, 3> Quantize(const Value& x);

  // Constants. Equal small ones are shared.
  Value Integers(const std::vector<int64_t>& values, bool scalar = false);
  // A list with the given name, which must be unique.
  Value List(const std::string& name, const std::vector<int64_t>& values, bool scalar = false);
  Value Float(float value);
  // The matrix as it is, or transposed; `name` must be unique.
  Value Matrix(const std::string& name, ConstMat m, bool transposed = false);
  // The bytes [rows, cols], transposed.
  Value Bytes(const std::string& name, const int8_t* values, int64_t rows, int64_t cols);
  Value Vector(const std::string& name, const float* values, int64_t size);

  // Writes folder/model.onnx. If matrices and vectors are larger than `most` bytes, they go to
  // folder/model.onnx_data, because protobuf cannot hold more than 2 GB.
  absl::Status Write(const std::string& folder, int64_t opset, int64_t most = 1'800'000'000);

 private:
  // Returns true if there is a constant of that name.
  bool Has(const std::string& name) const;
  cloze_onnx::TensorProto* Constant(const std::string& name, int type);
  static void SetShape(cloze_onnx::ValueInfoProto* info, int type, const std::string& name,
      const std::vector<Dimension>& shape);

  cloze_onnx::ModelProto model_;
  cloze_onnx::GraphProto* graph_ = model_.mutable_graph();
  int64_t bytes_ = 0;  // of the constants
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_ONNX_GRAPH_H_
