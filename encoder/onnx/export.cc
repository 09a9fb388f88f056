#include "encoder/onnx/export.h"

#include <limits>
#include <utility>

#include "core/base/text.h"
#include "encoder/graph/ops.h"
#include "encoder/onnx/model_file.h"

namespace cloze {
namespace {

GraphPass AddInputs(const Model& model, bool int8, OnnxGraph& graph) {
  GraphPass pass = {model.params(), graph};
  pass.int8 = [&model, int8](
                  const Param& param) { return int8 && IsInt8Layer(param, model.config()); };
  const auto input = [&](const char* name) {
    return graph.Input(name, {kBatchSize, kSequenceLength});
  };
  pass.ids = input("input_ids");
  const Value mask = input("attention_mask");
  if (model.config().embeddings.token_types > 1) pass.types = input("token_type_ids");
  const Value shape = graph.Add("Shape", {pass.ids}),
              length = graph.Add("Gather", {shape, graph.Integer(1)}, {{"axis", int64_t{0}}});
  pass.positions =
      graph.Add("Range", {graph.Integer(0), length, graph.Integer(1)}, {}, "positions");
  pass.tokens = graph.Add("Cast", {mask}, {{"to", int64_t{1}}});  // float
  const Value one = graph.Float(1),
              tokens = graph.Add("Unsqueeze", {pass.tokens, graph.Integers({1, 2})}),
              padding = graph.Add("Sub", {one, tokens}),
              lowest = graph.Float(std::numeric_limits<float>::lowest());
  pass.mask = graph.Add("Mul", {padding, lowest});
  return pass;
}

void AddLogits(const Model& model, const GraphPass& pass, const Value& hidden) {
  OnnxGraph& graph = pass.graph;
  const HeadType& type = TypeOf(model.config().head);
  // Adds an output for the values [B, S, 1] of each token.
  const auto column = [&](const Value& x, const char* name) {
    graph.Output(
        graph.Add("Squeeze", {x, graph.Integers({2})}, {}, name), {kBatchSize, kSequenceLength});
  };
  const Value logits = model.head().Export(pass, hidden, type.outputs > 0 ? "" : "logits");
  if (type.outputs == 2) {
    const auto [start, end] = AddHalves(graph, logits, 1, "starts", "ends");
    column(start, "start_logits");
    column(end, "end_logits");
  } else if (type.outputs == 1) {
    column(logits, "logits");
  } else if (type.per_text) {
    graph.Output(logits, {kBatchSize, model.head().labels()});
  } else {
    graph.Output(logits, {kBatchSize, kSequenceLength, model.head().labels()});
  }
}

// Returns [B, H] for the hidden states [B, S, H].
Value AddPool(const GraphPass& pass, const Value& hidden, OnnxPool pool) {
  OnnxGraph& graph = pass.graph;
  if (pool == OnnxPool::kClass) return AddFirst(graph, hidden);
  if (pool == OnnxPool::kMean) return AddMean(graph, hidden, pass.tokens);
  return AddMax(graph, hidden, pass.mask);
}

void AddHidden(
    const OnnxOptions& options, const GraphPass& pass, int64_t size, const Value& hidden) {
  OnnxGraph& graph = pass.graph;
  graph.Output(graph.Add("Identity", {hidden}, {}, "last_hidden_state"),
      {kBatchSize, kSequenceLength, size});
  if (options.pool == OnnxPool::kNone) return;
  Value vector = AddPool(pass, hidden, options.pool);
  if (options.normalize) {  // ONNX Runtime 1.23 has no LpNormalization of opset 22
    const Value squares = graph.Add("Mul", {vector, vector}),
                sum = graph.Add("ReduceSum", {squares, graph.Integers({-1})}),
                length = graph.Add("Max", {graph.Add("Sqrt", {sum}), graph.Float(1e-30f)});
    vector = graph.Add("Div", {vector, length});
  }
  graph.Output(graph.Add("Identity", {vector}, {}, "sentence_embedding"), {kBatchSize, size});
}

}  // namespace

absl::Status CheckExportable(const ModelConfig& config, const std::string& folder) {
  if (!config.attention.causal) return absl::OkStatus();
  return Error(Exit::kMismatch, QuotePath(folder), ": is ",
      config.encoder == nullptr ? "a decoder" : "an encoder-decoder",
      ": expected an encoder (`cloze generate` runs it)");
}

absl::Status ExportOnnx(const Model& model, const OnnxOptions& options, const std::string& folder) {
  OnnxGraph graph;
  const GraphPass pass = AddInputs(model, options.int8, graph);
  const Value hidden = model.backbone().encoder()->Export(pass);
  if (model.config().head == HeadKind::kNone) {
    AddHidden(options, pass, model.config().hidden, hidden);
  } else {
    AddLogits(model, pass, hidden);
  }
  return WriteOnnx(graph, options.opset, options.external_data ? 0 : 1'800'000'000, folder);
}

}  // namespace cloze
