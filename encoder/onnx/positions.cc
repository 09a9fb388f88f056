#include "encoder/onnx/positions.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "encoder/modules/relative.h"

namespace cloze {

void AddRotations(const std::string& name, const ModelConfig& config, float base,
    const Value& range, OnnxGraph* graph) {
  const int64_t dim = config.hidden / config.heads;
  std::vector<float> table[2];
  for (int64_t position = 0; position < config.max_positions; ++position) {
    for (int64_t c = 0; c < dim; ++c) {
      const double angle = position * std::pow(double{base}, -2.0 * (c % (dim / 2)) / dim);
      table[0].push_back(static_cast<float>(std::cos(angle)));
      table[1].push_back(static_cast<float>(std::sin(angle)));
    }
  }
  for (const int i : {0, 1}) {
    const std::string part = absl::StrCat(name, i == 0 ? "_cos" : "_sin");
    const Value all =
        graph->Matrix(part + "_table", View(table[i].data(), config.max_positions, dim));
    graph->Add("Gather", {all, range}, {}, part);
  }
}

Value AddPositionRows(
    const ModelConfig& config, const Value& ids, const Value& range, OnnxGraph* graph) {
  if (!config.family->positions_after_pad)
    return graph->Add("Add", {range, graph->Integers({config.position_offset}, true)});
  const Value row = graph->Integers({config.pad_id}, true),
              token = graph->Add("Cast", {graph->Add("Not", {graph->Add("Equal", {ids, row})})},
                  {{"to", int64_t{7}}}),  // int64
      count = graph->Add("CumSum", {token, graph->Integers({1}, true)});
  return graph->Add("Add", {graph->Add("Mul", {count, token}), row});
}

Value AddDistances(const Value& range, OnnxGraph* graph) {
  const auto as = [&](int64_t axis) {
    return graph->Add("Unsqueeze", {range, graph->Integers({axis})});
  };
  return graph->Add("Sub", {as(1), as(0)});
}

Value AddDistanceRows(const ModelConfig& config, const Value& range, OnnxGraph* graph) {
  std::vector<int64_t> rows;
  const int64_t most = config.max_positions - 1;
  for (int64_t distance = -most; distance <= most; ++distance)
    rows.push_back(BucketOf(config.relative, distance));
  const Value table = graph->List("rows_of_distances", rows),
              index =
                  graph->Add("Add", {AddDistances(range, graph), graph->Integers({most}, true)});
  return graph->Add("Gather", {table, index});
}

}  // namespace cloze
