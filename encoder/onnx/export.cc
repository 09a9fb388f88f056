#include "encoder/onnx/export.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "encoder/folder/model_folder.h"
#include "encoder/onnx/positions.h"

namespace cloze {
namespace {

const char kBatch[] = "batch_size", kLength[] = "sequence_length";

// Adds the nodes of a model. Shapes are those of values: B sequences of S tokens, H hidden.
class Exporter {
 public:
  Exporter(const Model& model, bool int8) : model_(model), config_(model.config()), int8_(int8) {}

  OnnxGraph Run(OnnxPool pool, bool normalize) {
    Inputs();
    Head(Blocks(Embeddings()), pool, normalize);
    return std::move(graph_);
  }

 private:
  // Returns the parameter of a module, or -1.
  ParamId Find(Role role, int layer, Part part) const {
    if (config_.family->Name(role, std::max(layer, 0)).empty() && role != Role::kHeadOutput)
      return -1;
    return model_.params().Find(config_.Key(role, layer).Of(part).name);
  }
  const std::string& NameOf(ParamId id) const { return model_.params().param(id).name; }

  Value Vector(ParamId id) {
    const ConstMat v = model_.params().value(id);
    return once_.insert(NameOf(id)).second ? graph_.Vector(NameOf(id), v.f32(0), v.cols)
                                           : NameOf(id);
  }
  // A weight [out, in] as it is, or transposed. A name is used for one of the two.
  Value Weight(ParamId id, bool transposed) {
    return once_.insert(NameOf(id)).second
               ? graph_.Matrix(NameOf(id), model_.params().value(id), transposed)
               : NameOf(id);
  }

  Value Unary(const char* type, const Value& x) { return graph_.Add(type, {x}); }
  Value Binary(const char* type, const Value& x, const Value& y) {
    return graph_.Add(type, {x, y});
  }

  // x [..., in] times the transposed weight [out, in]. ONNX Runtime fuses these nodes.
  Value Product(const Value& x, ParamId id) {
    if (!int8_ || !IsInt8Layer(model_.params().param(id), config_))
      return Binary("MatMul", x, Weight(id, true));
    const Value scale = NameOf(id) + "_scale";
    if (once_.insert(NameOf(id)).second) {
      const ConstMat w = model_.params().value(id);
      const Int8Matrix q = QuantizeMatrix(w);
      graph_.Bytes(NameOf(id), q.q.data(), w.rows, w.cols);
      graph_.Vector(scale, q.scale.data(), w.rows);
    }
    if (quantized_.count(x) == 0) quantized_[x] = graph_.Quantize(x);
    const auto& [bytes, x_scale, zero] = quantized_[x];
    const Value sums = graph_.Add("MatMulInteger", {bytes, NameOf(id), zero});
    return Binary(
        "Mul", graph_.Add("Cast", {sums}, {{"to", int64_t{1}}}), Binary("Mul", x_scale, scale));
  }
  // x [..., in] -> [..., out].
  Value Linear(const Value& x, Role role, int layer) {
    const Value product = Product(x, Find(role, layer, Part::kWeight));
    const ParamId bias = Find(role, layer, Part::kBias);
    return bias < 0 ? product : Binary("Add", product, Vector(bias));
  }
  Value Norm(const Value& x, Role role, int layer, const Value& name = "") {
    std::vector<Value> inputs = {x, Vector(Find(role, layer, Part::kWeight))};
    if (const ParamId bias = Find(role, layer, Part::kBias); bias >= 0)
      inputs.push_back(Vector(bias));
    return graph_.Add("LayerNormalization", inputs,
        {{"axis", int64_t{-1}}, {"epsilon", config_.norm_epsilon}}, name);
  }

  Value Activation(ActivationKind kind, const Value& x) {
    switch (kind) {
      case ActivationKind::kRelu: return Unary("Relu", x);
      case ActivationKind::kTanh: return Unary("Tanh", x);
      case ActivationKind::kSilu: return Binary("Mul", x, Unary("Sigmoid", x));
      case ActivationKind::kGelu: {
        const Value erf = Unary("Erf", Binary("Div", x, graph_.Float(std::sqrt(2.0f))));
        const Value one = Binary("Add", erf, graph_.Float(1));
        return Binary("Mul", Binary("Mul", x, one), graph_.Float(0.5));
      }
      case ActivationKind::kGeluTanh: {
        const Value cube = Binary("Mul", x, Binary("Mul", x, x));
        const Value sum = Binary("Add", x, Binary("Mul", cube, graph_.Float(0.044715f)));
        const Value tanh = Unary(
            "Tanh", Binary("Mul", sum, graph_.Float(static_cast<float>(std::sqrt(2 / M_PI)))));
        const Value one = Binary("Add", tanh, graph_.Float(1));
        return Binary("Mul", Binary("Mul", x, graph_.Float(0.5)), one);
      }
    }
    return x;
  }

  void Inputs() {
    ids_ = graph_.Input("input_ids", {kBatch, kLength});
    attention_mask_ = graph_.Input("attention_mask", {kBatch, kLength});
    if (config_.token_types > 1) types_ = graph_.Input("token_type_ids", {kBatch, kLength});
    const Value length = graph_.Add(
        "Gather", {Unary("Shape", ids_), graph_.Integers({1}, true)}, {{"axis", int64_t{0}}});
    range_ = graph_.Add(
        "Range", {graph_.Integers({0}, true), length, graph_.Integers({1}, true)}, {}, "positions");
    tokens_ = graph_.Add("Cast", {attention_mask_}, {{"to", int64_t{1}}});
    const Value hidden =
        Binary("Sub", graph_.Float(1), graph_.Add("Unsqueeze", {tokens_, graph_.Integers({1, 2})}));
    mask_ = Binary("Mul", hidden, graph_.Float(std::numeric_limits<float>::lowest()));
  }

  Value Embeddings() {
    const auto gather = [&](Role role, const Value& rows, const Value& name = "") {
      return graph_.Add("Gather", {Weight(Find(role, -1, Part::kWeight), false), rows}, {}, name);
    };
    const int64_t size = config_.embedding_size();
    Value x = gather(Role::kWordEmbeddings, ids_);
    if (config_.token_types > 0) {
      const Value types =
          config_.token_types > 1 ? types_ : Binary("Mul", ids_, graph_.Integers({0}, true));
      x = Binary("Add", x, gather(Role::kTokenTypeEmbeddings, types));
    }
    if (config_.positions == Positions::kLearned || config_.positions == Positions::kSinusoidal) {
      const Value positions =
          gather(Role::kPositionEmbeddings, AddPositionRows(config_, ids_, range_, &graph_));
      if (!config_.family->positions_after_pad) graph_.DeclareShape(positions, {kLength, size});
      x = Binary("Add", x, positions);
    }
    x = Norm(x, Role::kEmbeddingsNorm, -1, "embeddings");
    graph_.DeclareShape(x, {kBatch, kLength, size});
    return config_.projects_embeddings() ? Linear(x, Role::kEmbeddingsProjection, -1) : x;
  }

  // [B, S, H] -> [B, heads, S, H / heads], or with `keys` [B, heads, H / heads, S].
  Value SplitHeads(const Value& x, bool keys) {
    const int64_t dim = config_.hidden / config_.heads;
    const Value heads = graph_.Add("Reshape", {x, graph_.Integers({0, 0, config_.heads, dim})});
    const std::vector<int64_t> order =
        keys ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3};
    return graph_.Add("Transpose", {heads}, {{"perm", order}});
  }

  // Rotates x [B, heads, S, dim].
  Value Rotate(const Value& x, float base) {
    const std::string name = absl::StrCat("rotary_", base);
    if (once_.insert(name).second) AddRotations(name, config_, base, range_, &graph_);
    const auto [first, second] =
        graph_.Halve(x, config_.hidden / config_.heads / 2, x + "_first", x + "_second");
    const Value turned =
        graph_.Add("Concat", {Unary("Neg", second), first}, {{"axis", int64_t{-1}}});
    return Binary("Add", Binary("Mul", x, name + "_cos"), Binary("Mul", turned, name + "_sin"));
  }

  // The mask of a layer [B, 1, 1 or S, S], which is added to scores.
  Value Mask(int layer) {
    if (!config_.is_local(layer)) return mask_;
    if (local_mask_.empty()) {
      const Value far = Binary("Greater", Unary("Abs", AddDistances(range_, &graph_)),
          graph_.Integers({config_.window / 2}, true));
      const Value hidden = graph_.Add(
          "Where", {far, graph_.Float(std::numeric_limits<float>::lowest()), graph_.Float(0)});
      local_mask_ = Binary("Min", mask_, hidden);
    }
    return local_mask_;
  }

  Value Attention(const Value& x, int layer) {
    Value q, k, v;
    if (const ParamId fused = Find(Role::kQueryKeyValue, layer, Part::kWeight); fused >= 0) {
      const Value qkv = Linear(x, Role::kQueryKeyValue, layer);
      const auto part = [&](int64_t i) {
        return graph_.Add(
            "Slice", {qkv, graph_.Integers({i * config_.hidden}),
                         graph_.Integers({(i + 1) * config_.hidden}), graph_.Integers({2})});
      };
      q = part(0), k = part(1), v = part(2);
    } else {
      q = Linear(x, Role::kQuery, layer), k = Linear(x, Role::kKey, layer),
      v = Linear(x, Role::kValue, layer);
    }
    const bool rotary = config_.positions == Positions::kRotary;
    q = SplitHeads(q, false), k = SplitHeads(k, !rotary), v = SplitHeads(v, false);
    if (rotary) {
      const float base = config_.is_local(layer) ? config_.rotary_base[1] : config_.rotary_base[0];
      q = Rotate(q, base);
      k = graph_.Add("Transpose", {Rotate(k, base)}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    }
    const RelativeConfig& relative = config_.relative;
    const int products = 1 + relative.query_terms + relative.key_terms;
    const int head_size = config_.hidden / config_.heads;
    const float scale = std::sqrt(static_cast<float>(products * head_size));
    Value scores = WithDistances(Binary("MatMul", q, k), q, k, layer);
    scores = Binary("Div", scores, graph_.Float(scale));
    if (relative.buckets > 0) scores = Binary("Add", scores, distances_);
    const Value probabilities =
        graph_.Add("Softmax", {Binary("Add", scores, Mask(layer))}, {{"axis", int64_t{-1}}});
    const Value context = graph_.Add("Transpose", {Binary("MatMul", probabilities, v)},
        {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    return Linear(graph_.Add("Reshape", {context, graph_.Integers({0, 0, config_.hidden})}),
        Role::kAttentionOutput, layer);
  }

  // Sets rows_ [S, S], the row of the table for query i and key j, and distances_: the biases
  // [heads, S, S], or the vectors [2 span, H].
  void Distances() {
    rows_ = AddDistanceRows(config_, range_, &graph_);
    const Value table = Weight(Find(Role::kRelativePositions, -1, Part::kWeight), false);
    if (config_.relative.buckets > 0) {
      distances_ = graph_.Add(
          "Transpose", {Binary("Gather", table, rows_)}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
    } else {
      distances_ = config_.relative.norm ? Norm(table, Role::kRelativeNorm, -1) : table;
    }
  }

  // Adds the products of queries [B, heads, S, dim] and of keys [B, heads, dim, S] with vectors of
  // distances to `scores` [B, heads, S, S].
  Value WithDistances(const Value& scores, const Value& queries, const Value& keys, int layer) {
    const RelativeConfig& relative = config_.relative;
    if (relative.any() && rows_.empty()) Distances();
    const std::vector<int64_t> swap = {0, 1, 3, 2};
    // Multiplies x [B, heads, S, dim] by all projected vectors, and picks for each pair of tokens
    // the product with the vector of their distance.
    const auto pick = [&](const Value& x, Role shared, Role own, const Value& rows) {
      const Value vectors = Linear(distances_, relative.shared ? shared : own, layer);
      const Value split = graph_.Add("Reshape",
          {vectors, graph_.Integers({0, config_.heads, config_.hidden / config_.heads})});
      const Value product = Binary(
          "MatMul", x, graph_.Add("Transpose", {split}, {{"perm", std::vector<int64_t>{1, 2, 0}}}));
      return graph_.Add("GatherElements", {product, Binary("Expand", rows, Unary("Shape", scores))},
          {{"axis", int64_t{-1}}});
    };
    Value sum = scores;
    if (relative.query_terms)
      sum = Binary("Add", sum, pick(queries, Role::kKey, Role::kPositionKey, rows_));
    if (!relative.key_terms) return sum;
    const Value picked = pick(graph_.Add("Transpose", {keys}, {{"perm", swap}}), Role::kQuery,
        Role::kPositionQuery, Unary("Transpose", rows_));
    return Binary("Add", sum, graph_.Add("Transpose", {picked}, {{"perm", swap}}));
  }

  // The convolution over the tokens of `embeddings`, added to x, the output of block 0.
  Value Convolve(const Value& embeddings, const Value& x) {
    const int64_t size = config_.relative.convolution, hidden = config_.hidden;
    const std::vector<int64_t> swap = {0, 2, 1};
    const auto swapped = [&](const Value& v) {
      return graph_.Add("Transpose", {v}, {{"perm", swap}});
    };
    const Value tokens = graph_.Add("Unsqueeze", {tokens_, graph_.Integers({2})});
    const Value weight =
        graph_.Add("Reshape", {Weight(Find(Role::kConvolution, 0, Part::kWeight), false),
                                  graph_.Integers({hidden, hidden, size})});
    const Value y = graph_.Add("Conv",
        {swapped(Binary("Mul", embeddings, tokens)), weight,
            Vector(Find(Role::kConvolution, 0, Part::kBias))},
        {{"pads", std::vector<int64_t>{size / 2, size / 2}}});
    const Value act = Activation(config_.relative.convolution_activation, swapped(y));
    return Norm(Binary("Add", x, act), Role::kConvolutionNorm, 0);
  }

  Value FeedForward(const Value& x, int layer) {
    Value u = Linear(x, Role::kIntermediate, layer);
    if (!config_.family->gated) {
      u = Activation(config_.activation, u);
    } else if (Find(Role::kGate, layer, Part::kWeight) >= 0) {
      u = Binary("Mul", Activation(config_.activation, Linear(x, Role::kGate, layer)), u);
    } else {
      const auto [gate, value] = graph_.Halve(u, config_.intermediate, u + "_gate", u + "_value");
      u = Binary("Mul", Activation(config_.activation, gate), value);
    }
    return Linear(u, Role::kOutput, layer);
  }

  Value Blocks(Value x) {
    const Value embeddings = x;
    for (int layer = 0; layer < config_.layers; ++layer) {
      if (config_.pre_norm()) {
        const bool norm = layer > 0 || config_.family->first_norm;
        x = Binary("Add", Attention(norm ? Norm(x, Role::kAttentionNorm, layer) : x, layer), x);
        x = Binary("Add", FeedForward(Norm(x, Role::kFeedForwardNorm, layer), layer), x);
      } else {
        x = Norm(Binary("Add", Attention(x, layer), x), Role::kAttentionNorm, layer);
        x = Norm(Binary("Add", FeedForward(x, layer), x), Role::kFeedForwardNorm, layer);
      }
      if (layer == 0 && config_.relative.convolution > 0) x = Convolve(embeddings, x);
    }
    return config_.pre_norm() ? Norm(x, Role::kFinalNorm, config_.layers - 1) : x;
  }

  // [B, S, H] -> [B, H]: the first token.
  Value First(const Value& x) {
    return graph_.Add("Gather", {x, graph_.Integers({0}, true)}, {{"axis", int64_t{1}}});
  }
  // [B, S, H] -> [B, H]: the mean of the tokens.
  Value Mean(const Value& x) {
    const Value weights = graph_.Add("Unsqueeze", {tokens_, graph_.Integers({2})});
    const auto sum = [&](const Value& v) {
      return graph_.Add("ReduceSum", {v, graph_.Integers({1})}, {{"keepdims", int64_t{0}}});
    };
    return Binary("Div", sum(Binary("Mul", x, weights)), sum(weights));
  }

  // [B, S, H] -> [B, H]: the largest values of the tokens. ReduceMax has another form in opset 18.
  Value Max(const Value& x) {
    const Value hidden = graph_.Add("Squeeze", {mask_, graph_.Integers({1})}),  // [B, 1, S]
        columns = graph_.Add("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    return graph_.Add(
        "Squeeze", {Unary("GlobalMaxPool", Binary("Add", columns, hidden)), graph_.Integers({2})});
  }

  void Head(const Value& hidden, OnnxPool pool, bool normalize) {
    if (config_.head == HeadKind::kNone) return Encoder(hidden, pool, normalize);
    Value x = !TypeOf(config_.head).per_text ? hidden
              : config_.mean_pooling         ? Mean(hidden)
                                             : First(hidden);
    const int layer = config_.layers;
    const HeadLayout layout = LayoutOf(config_);
    if (layout.dense.has_value())
      x = Activation(layout.activation, Linear(x, *layout.dense, layer));
    if (layout.norm) x = Norm(x, Role::kTransformNorm, layer);
    Output(x, layout.output);
  }

  void Output(const Value& x, Role output) {
    const int layer = config_.layers;
    Value logits;
    if (TypeOf(config_.head).tied) {
      const ParamId rows = config_.untied ? Find(Role::kDecoder, layer, Part::kWeight)
                                          : Find(Role::kWordEmbeddings, -1, Part::kWeight);
      const Value words =
          graph_.Add("Transpose", {Weight(rows, false)}, {{"perm", std::vector<int64_t>{1, 0}}});
      logits = graph_.Add("Add",
          {Binary("MatMul", x, words), Vector(Find(Role::kDecoderBias, layer, Part::kBias))}, {},
          "logits");
      return graph_.Output(logits, {kBatch, kLength, int64_t{config_.vocab}});
    }
    const Value product = Binary("MatMul", x, Weight(Find(output, layer, Part::kWeight), true));
    const Value bias = Vector(Find(output, layer, Part::kBias));
    const int64_t labels = model_.head().labels();
    if (TypeOf(config_.head).outputs == 2) {
      const auto [start, end] = graph_.Halve(Binary("Add", product, bias), 1, "starts", "ends");
      for (const auto& [name, part] : {std::pair("start_logits", start), {"end_logits", end}})
        graph_.Output(
            graph_.Add("Squeeze", {part, graph_.Integers({2})}, {}, name), {kBatch, kLength});
      return;
    }
    if (TypeOf(config_.head).outputs == 1) {
      logits =
          graph_.Add("Squeeze", {Binary("Add", product, bias), graph_.Integers({2})}, {}, "logits");
      return graph_.Output(logits, {kBatch, kLength});
    }
    logits = graph_.Add("Add", {product, bias}, {}, "logits");
    if (TypeOf(config_.head).per_text) {
      graph_.Output(logits, {kBatch, labels});
    } else {
      graph_.Output(logits, {kBatch, kLength, labels});
    }
  }

  void Encoder(const Value& hidden, OnnxPool pool, bool normalize) {
    graph_.Output(graph_.Add("Identity", {hidden}, {}, "last_hidden_state"),
        {kBatch, kLength, int64_t{config_.hidden}});
    if (pool == OnnxPool::kNone) return;
    Value vector = pool == OnnxPool::kMean  ? Mean(hidden)
                   : pool == OnnxPool::kMax ? Max(hidden)
                                            : First(hidden);
    if (normalize) {  // ONNX Runtime 1.23 has no LpNormalization of opset 22
      const Value squares =
          graph_.Add("ReduceSum", {Binary("Mul", vector, vector), graph_.Integers({-1})});
      vector = Binary("Div", vector, Binary("Max", Unary("Sqrt", squares), graph_.Float(1e-30f)));
    }
    graph_.Output(graph_.Add("Identity", {vector}, {}, "sentence_embedding"),
        {kBatch, int64_t{config_.hidden}});
  }

  const Model& model_;
  const ModelConfig& config_;
  const bool int8_;
  OnnxGraph graph_;
  std::map<Value, std::array<Value, 3>> quantized_;
  std::set<std::string> once_;  // names of constants that the graph has
  Value ids_, attention_mask_, types_, range_, tokens_, mask_, local_mask_, rows_, distances_;
};

}  // namespace

OnnxGraph ExportOnnx(const Model& model, OnnxPool pool, bool normalize, bool int8) {
  return Exporter(model, int8).Run(pool, normalize);
}

}  // namespace cloze
