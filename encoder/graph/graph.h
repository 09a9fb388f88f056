// Builds ONNX graphs: nodes and constants.
#ifndef CLOZE_ENCODER_GRAPH_GRAPH_H_
#define CLOZE_ENCODER_GRAPH_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/tensor/mat.h"

namespace cloze_onnx {
class ModelProto;
}

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

  OnnxGraph();
  ~OnnxGraph();

  // Adds an input of whole numbers, or an output of floats.
  Value Input(const std::string& name, const std::vector<Dimension>& shape);
  void Output(const Value& value, const std::vector<Dimension>& shape);
  // States the shape of a float value that ONNX Runtime cannot derive, but needs for its fusions.
  void DeclareShape(const Value& value, const std::vector<Dimension>& shape);

  // Adds a node with one output.
  Value Add(const char* type, const std::vector<Value>& inputs,
      const std::vector<Attribute>& attributes = {}, const Value& name = "");
  // Gives the last node another output.
  void AddOutput(const Value& name);
  Value Reshape(const Value& x, const std::vector<int64_t>& shape);
  Value Transpose(const Value& x, const std::vector<int64_t>& order);

  // Constants. Small ones are named by their value, others by `name`; those of one name are shared.
  Value Integer(int64_t value);
  Value Integers(const std::vector<int64_t>& values);
  Value Float(float value);
  Value List(const std::string& name, const std::vector<int64_t>& values);
  Value Vector(const std::string& name, absl::Span<const float> values);
  Value Matrix(const std::string& name, ConstMat m);
  // The transposed matrix, or bytes [rows, cols]. A name is for a matrix or for its transpose.
  Value Transposed(const std::string& name, ConstMat m);
  Value Transposed(const std::string& name, const int8_t* values, int64_t rows, int64_t cols);

  // Returns what `make` returned for the first call with this key.
  Value Once(const std::string& key, absl::FunctionRef<Value()> make);

  cloze_onnx::ModelProto& proto() { return *model_; }

 private:
  Value Constant(const std::string& name, int type, const std::vector<int64_t>& shape,
      absl::FunctionRef<std::string()> bytes);

  std::unique_ptr<cloze_onnx::ModelProto> model_;
  std::map<std::string, Value> once_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_GRAPH_GRAPH_H_
