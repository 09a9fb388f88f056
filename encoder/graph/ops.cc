#include "encoder/graph/ops.h"

#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/ops/stored_matrix.h"

namespace cloze {
namespace {

// Adds the node that quantizes x to u8. Returns the bytes, their scale and their zero point.
std::array<Value, 3> Quantized(OnnxGraph& graph, const Value& x) {
  const std::array<Value, 3> outputs = {x + "_int8", x + "_scale", x + "_zero"};
  graph.Once(outputs[0], [&] {
    graph.Add("DynamicQuantizeLinear", {x}, {}, outputs[0]);
    graph.AddOutput(outputs[1]);
    graph.AddOutput(outputs[2]);
    return outputs[0];
  });
  return outputs;
}

// Gelu's tanh form: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Value AddGeluTanh(OnnxGraph& graph, const Value& x) {
  const Value square = graph.Add("Mul", {x, x}), cube = graph.Add("Mul", {x, square}),
              term = graph.Add("Mul", {cube, graph.Float(0.044715f)}),
              sum = graph.Add("Add", {x, term}),
              scaled =
                  graph.Add("Mul", {sum, graph.Float(static_cast<float>(std::sqrt(2 / M_PI)))}),
              one = graph.Add("Add", {graph.Add("Tanh", {scaled}), graph.Float(1)});
  return graph.Add("Mul", {graph.Add("Mul", {x, graph.Float(0.5)}), one});
}

}  // namespace

Value AddProduct(OnnxGraph& graph, const Value& x, const std::string& name, ConstMat w, bool int8) {
  if (!int8) return graph.Add("MatMul", {x, graph.Transposed(name, w)});
  const Value scale = name + "_scale";
  graph.Once(scale, [&] {
    const Int8Matrix q = QuantizeMatrix(w);
    graph.Transposed(name, q.q.data(), w.rows, w.cols);
    return graph.Vector(scale, q.scale);
  });
  const auto [bytes, x_scale, zero] = Quantized(graph, x);
  const Value sums = graph.Add("MatMulInteger", {bytes, name, zero}),
              product = graph.Add("Cast", {sums}, {{"to", int64_t{1}}});  // float
  return graph.Add("Mul", {product, graph.Add("Mul", {x_scale, scale})});
}

std::pair<Value, Value> AddHalves(
    OnnxGraph& graph, const Value& x, int64_t size, const Value& first, const Value& second) {
  graph.Add("Split", {x, graph.Integers({size, size})}, {{"axis", int64_t{-1}}}, first);
  graph.AddOutput(second);
  return {first, second};
}

Value AddActivation(OnnxGraph& graph, ActivationKind kind, const Value& x) {
  switch (kind) {
    case ActivationKind::kRelu: return graph.Add("Relu", {x});
    case ActivationKind::kTanh: return graph.Add("Tanh", {x});
    case ActivationKind::kSilu: return graph.Add("Mul", {x, graph.Add("Sigmoid", {x})});
    case ActivationKind::kGeluTanh: return AddGeluTanh(graph, x);
    case ActivationKind::kGelu: break;
  }
  const Value root = graph.Add("Div", {x, graph.Float(std::sqrt(2.0f))}),
              one = graph.Add("Add", {graph.Add("Erf", {root}), graph.Float(1)});
  return graph.Add("Mul", {graph.Add("Mul", {x, one}), graph.Float(0.5)});
}

Value AddRotation(OnnxGraph& graph, const Value& x, const Value& positions, int64_t max_positions,
    int64_t dim, float base) {
  const std::string rotary = absl::StrCat("rotary_", base);
  // Returns [S, dim]: each half of a row has the cosines or the sines.
  const auto rows = [&](const std::string& name, auto function) {
    return graph.Once(name, [&] {
      std::vector<float> table;
      for (int64_t position = 0; position < max_positions; ++position) {
        for (int64_t c = 0; c < dim; ++c) {
          const double angle = position * std::pow(double{base}, -2.0 * (c % (dim / 2)) / dim);
          table.push_back(static_cast<float>(function(angle)));
        }
      }
      const Value all = graph.Matrix(name + "_table", View(table.data(), max_positions, dim));
      return graph.Add("Gather", {all, positions}, {}, name);
    });
  };
  const Value cosines = rows(rotary + "_cos", [](double angle) { return std::cos(angle); }),
              sines = rows(rotary + "_sin", [](double angle) { return std::sin(angle); });
  const auto [first, second] = AddHalves(graph, x, dim / 2, x + "_first", x + "_second");
  const Value turned =
      graph.Add("Concat", {graph.Add("Neg", {second}), first}, {{"axis", int64_t{-1}}});
  return graph.Add("Add", {graph.Add("Mul", {x, cosines}), graph.Add("Mul", {turned, sines})});
}

Value AddDistances(OnnxGraph& graph, const Value& positions) {
  const auto as = [&](int64_t axis) {
    return graph.Add("Unsqueeze", {positions, graph.Integers({axis})});
  };
  return graph.Add("Sub", {as(1), as(0)});
}

Value AddFirst(OnnxGraph& graph, const Value& x) {
  return graph.Add("Gather", {x, graph.Integer(0)}, {{"axis", int64_t{1}}});
}

Value AddMean(OnnxGraph& graph, const Value& x, const Value& tokens) {
  const Value weights = graph.Add("Unsqueeze", {tokens, graph.Integers({2})});
  const auto sum = [&](const Value& v) {
    return graph.Add("ReduceSum", {v, graph.Integers({1})}, {{"keepdims", int64_t{0}}});
  };
  return graph.Add("Div", {sum(graph.Add("Mul", {x, weights})), sum(weights)});
}

Value AddMax(OnnxGraph& graph, const Value& x, const Value& mask) {
  const Value added = graph.Add("Squeeze", {mask, graph.Integers({1})}),  // [B, 1, S]
      columns = graph.Add("Add", {graph.Transpose(x, {0, 2, 1}), added});
  // ReduceMax has another form in opset 18.
  return graph.Add("Squeeze", {graph.Add("GlobalMaxPool", {columns}), graph.Integers({2})});
}

}  // namespace cloze
