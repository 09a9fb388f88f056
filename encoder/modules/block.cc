#include "encoder/modules/block.h"

#include <array>
#include <limits>

#include "core/ops/rotary.h"
#include "core/ops/rows.h"
#include "encoder/graph/ops.h"

namespace cloze {

Block::Block(ParamStore* store, const Architecture& config, ModuleKeys keys, int index)
    : config_(config), index_(index), pre_(config.pre_norm()) {
  const int64_t hidden = config.hidden;
  const bool last = index + 1 == config.layers;
  const auto key = [&](Role role) { return keys(role, index); };
  const ParamKey norm_a = key(pre_ ? Role::kFeedForwardNorm : Role::kAttentionNorm),
                 norm_b = !pre_  ? key(Role::kFeedForwardNorm)
                          : last ? key(Role::kFinalNorm)
                                 : keys(Role::kAttentionNorm, index + 1);
  const auto linear = [&](const std::vector<Role>& roles, int64_t in, int64_t out) {
    std::vector<ParamKey> modules;
    for (const Role role : roles) {
      if (ParamKey module = key(role); !module.name.empty()) modules.push_back(std::move(module));
    }
    return Linear(store, modules, in, out / modules.size(), config.biases);
  };
  const auto norm = [&](const ParamKey& module) {
    return Norm(store, module, hidden, config.norm.epsilon, config.norm.biases);
  };
  qkv_ = linear({Role::kQuery, Role::kKey, Role::kValue, Role::kQueryKeyValue}, hidden, 3 * hidden);
  distances_ = RelativeProjection(store, config, keys, index);
  attention_output_ = linear({Role::kAttentionOutput}, hidden, hidden);
  norm_a_ = norm(norm_a);
  if (config.attention.cross) cross_.emplace(store, config, keys, index);
  intermediate_ = linear({Role::kGate, Role::kIntermediate}, hidden,
      config.mlp.gated ? 2 * config.intermediate : config.intermediate);
  output_ = linear({Role::kOutput}, config.intermediate, hidden);
  norm_b_ = norm(norm_b);
  if (index == 0 && config.relative.convolution > 0) convolution_.emplace(store, config, keys);
}

void Block::AddLora(ParamStore* store, const LoraPlan& plan) {
  uint32_t site = DropoutSiteId(DropoutKind::kLora, index_);
  for (Linear* linear : {&qkv_, &attention_output_, &intermediate_, &output_}) {
    linear->AddLora(store, plan, site);
    site += 4;
  }
}

DropoutSite Block::Site(const Pass& pass, DropoutKind kind) const {
  return pass.Site(kind == DropoutKind::kAttention ? config_.attention.dropout : config_.dropout,
      DropoutSiteId(kind, index_));
}

AttentionShape Block::Shape(const Pass& pass, const RelativePositions& relative) const {
  AttentionShape shape = {pass.batch.cu_seqlens, config_.heads};
  shape.causal = pass.batch.causal;
  if (pass.distances != nullptr) shape.relative = &relative;
  if (config_.attention.causal) shape.visible = kCausal;
  shape.int8 = qkv_.weight(pass).int8;
  if (config_.attention.is_local(index_))
    shape.visible = {config_.attention.window / 2, config_.attention.window / 2};
  return shape;
}

Block::Saved Block::Forward(const Pass& pass, const BlockState& in, const BlockState& out,
    const std::optional<TargetRows>& targets, float* probs) const {
  const int64_t rows = in.y.rows, hidden = config_.hidden;
  Saved s;
  s.targets = targets;
  s.x = in.y;
  s.qkv = pass.New(rows, 3 * hidden);
  qkv_.Forward(pass, in.y, s.qkv);
  if (rotary()) {
    RotaryForward(pass.rotary[config_.attention.is_local(index_)], pass.batch.positions.data(),
        Columns(s.qkv, 0, 2 * hidden));
  }
  RelativePositions relative;
  if (pass.distances != nullptr) {
    s.distances = distances_.Forward(pass, qkv_);
    relative = distances_.Terms(pass, s.distances);
  }
  s.context = s.picked = pass.New(rows, hidden);
  s.lse = pass.arena.NewArray<float>(rows * config_.heads);
  if (pass.decoding != nullptr)
    KeepRows(Columns(s.qkv, hidden, 2 * hidden), pass.decoding->rows, pass.decoding->cache[index_]);
  if (pass.decoding != nullptr && !pass.decoding->seen.empty()) {
    DecodeAttention(Columns(s.qkv, 0, hidden), pass.decoding->cache[index_], pass.decoding->seen,
        pass.decoding->ends, config_.heads, pass.arena, s.context);
  } else {
    AttentionForward(s.qkv, Shape(pass, relative), Site(pass, DropoutKind::kAttention), pass.arena,
        s.context, s.lse, probs);
  }
  if (convolution_.has_value()) {
    CLOZE_CHECK(!targets.has_value() && !pre_);
    const Mat y = pass.New(rows, hidden);
    AfterAttention(pass, in.residual, {y, y}, &s);
    s.convolution = convolution_->Forward(pass, in.y, y, out.y);
  } else if (!targets.has_value()) {
    AfterAttention(pass, in.residual, out, &s);
  } else {
    s.picked = targets->Gather(pass, s.context);
    AfterAttention(targets->Narrow(pass), targets->Gather(pass, in.residual), out, &s);
  }
  return s;
}

void Block::AfterAttention(
    const Pass& pass, ConstMat residual, const BlockState& out, Saved* s) const {
  const int64_t rows = s->picked.rows, hidden = config_.hidden;
  Mat z1 = pass.New(rows, hidden);
  attention_output_.Forward(pass, s->picked, z1);
  s->y1 = pass.New(rows, hidden);
  s->norm_a =
      norm_a_.Forward(pass, z1, residual, Site(pass, DropoutKind::kAttentionOutput), {}, z1, s->y1);
  s->mlp = s->y1;
  if (cross_.has_value()) {
    s->mlp = pass.New(rows, hidden);
    s->cross = cross_->Forward(pass, s->y1, s->mlp);
  }
  Mat z2 = pre_ ? out.residual : pass.New(rows, hidden);
  const auto up = intermediate_.ForMlp(pass), down = output_.ForMlp(pass);
  if (up.has_value() && down.has_value() && !config_.mlp.gated) {
    pass.matmul.ForwardMlp(s->mlp, *up, config_.mlp.activation, *down, z2);
  } else {
    FeedForward(pass, z2, s);
  }
  s->norm_b = norm_b_.Forward(
      pass, z2, pre_ ? z1 : s->mlp, Site(pass, DropoutKind::kFeedForwardOutput), {}, z2, out.y);
}

void Block::FeedForward(const Pass& pass, Mat z2, Saved* s) const {
  s->u = pass.New(z2.rows, intermediate_.out());
  intermediate_.Forward(pass, s->mlp, s->u);
  const Arena::Mark mark = pass.arena.mark();
  Mat act = pass.New(z2.rows, config_.intermediate);
  if (config_.mlp.gated) {
    GatedForward(config_.mlp.activation, s->u, act);
  } else {
    ActivationForward(config_.mlp.activation, s->u, act);
  }
  output_.Forward(pass, act, z2);
  pass.arena.Rewind(mark);
}

void Block::FeedForwardBackward(const Pass& pass, const Saved& s, ConstMat dm, Mat dy1) const {
  const Arena::Mark mark = pass.arena.mark();
  Mat du = pass.New(dm.rows, intermediate_.out()), act = pass.New(dm.rows, config_.intermediate);
  if (config_.mlp.gated) {
    output_.Backward(pass, {}, dm, act);
    GatedBackward(config_.mlp.activation, s.u, act, du);
    AddColumnSums(du, pass.arena, intermediate_.bias_grad(pass));
  } else {
    output_.Backward(pass, {}, dm, du);
    ActivationBackward(
        config_.mlp.activation, s.u, du, intermediate_.bias_grad(pass), pass.arena, act, du);
  }
  output_.Backward(pass, act, dm, {});
  intermediate_.Backward(pass, s.mlp, du, dy1, !pre_);
  pass.arena.Rewind(mark);
}

void Block::AttentionBackward(const Pass& pass, const Saved& s, ConstMat dcontext, Mat dx) const {
  const Arena::Mark mark = pass.arena.mark();
  Mat dqkv = pass.New(s.qkv.rows, s.qkv.cols);
  if (s.targets.has_value()) {
    Mat all = pass.New(s.context.rows, s.context.cols);
    s.targets->Scatter(dcontext, all);
    dcontext = all;
  }
  RelativePositions relative;
  RelativeGrads grads;
  Mat dprojected;
  if (pass.distances != nullptr) {
    relative = distances_.Terms(pass, s.distances);
    grads = distances_.NewGrads(pass, s.distances, &dprojected);
  }
  cloze::AttentionBackward(s.qkv, s.context, dcontext, s.lse, Shape(pass, relative),
      Site(pass, DropoutKind::kAttention), pass.arena, dqkv, grads);
  if (rotary()) {
    RotaryBackward(pass.rotary[config_.attention.is_local(index_)], pass.batch.positions.data(),
        Columns(dqkv, 0, 2 * config_.hidden));
  }
  AddColumnSums(dqkv, pass.arena, qkv_.bias_grad(pass));
  qkv_.Backward(pass, s.x, dqkv, dx, !pre_);
  if (pass.distances != nullptr) distances_.Backward(pass, qkv_, s.distances, dprojected);
  pass.arena.Rewind(mark);
}

// dz: gradient of a residual sum. dx: gradient of the layer output in that sum, behind dropout;
// without dropout, dz itself. Post-norm, the gradient of the layer's input is added to dz only
// after dz was last read as dx.
void Block::Backward(
    const Pass& pass, const Saved& s, const BlockState& d, const BlockState& d_in) const {
  const Arena::Mark mark = pass.arena.mark();
  const Pass narrowed = s.targets.has_value() ? s.targets->Narrow(pass) : pass;
  const bool dropout = pass.training && config_.dropout > 0, need_dx = !d_in.y.empty();
  const int64_t rows = d.y.rows, hidden = config_.hidden;
  const Mat beside = convolution_.has_value() && need_dx ? pass.New(rows, hidden) : Mat();
  if (convolution_.has_value()) convolution_->Backward(pass, s.convolution, d.y, beside);
  Mat dz = pre_ ? d.residual : d.y;
  Mat dx = dropout ? pass.New(rows, hidden) : Mat();
  const auto through = [&](DropoutKind kind, const Norm& norm, const Norm::Saved& saved,
                           const Linear& linear, ConstMat dy) {
    norm.Backward(narrowed, saved, dy, pre_ ? ConstMat(dz) : ConstMat(), Site(narrowed, kind), {},
        linear.bias_grad(pass), dz, dx);
    return dropout ? ConstMat(dx) : ConstMat(dz);
  };
  const bool attention = need_dx || attention_requires_grad(pass);
  const ConstMat dm = through(DropoutKind::kFeedForwardOutput, norm_b_, s.norm_b, output_, d.y);
  if (attention || mlp_requires_grad(pass)) FeedForwardBackward(narrowed, s, dm, d.y);
  if (attention && cross_.has_value()) cross_->Backward(narrowed, s.cross, d.y);
  if (attention || norm_a_.requires_grad(pass)) {
    const ConstMat da =
        through(DropoutKind::kAttentionOutput, norm_a_, s.norm_a, attention_output_, d.y);
    if (s.targets.has_value() && need_dx) s.targets->Scatter(dz, d_in.residual);
    if (attention) {
      Mat dcontext = pass.New(rows, hidden);
      attention_output_.Backward(narrowed, s.picked, da, dcontext);
      AttentionBackward(pass, s, dcontext, d_in.y);
    }
  }
  if (!beside.empty()) Axpby(1, beside, 1, d_in.y);
  pass.arena.Rewind(mark);
}

Value Block::Mask(const GraphPass& pass) const {
  if (!config_.attention.is_local(index_)) return pass.mask;
  OnnxGraph& graph = pass.graph;
  return graph.Once("local_mask", [&] {
    const Value distance = graph.Add("Abs", {AddDistances(graph, pass.positions)}),
                far = graph.Add("Greater", {distance, graph.Integer(config_.attention.window / 2)}),
                lowest = graph.Float(std::numeric_limits<float>::lowest()),
                window = graph.Add("Where", {far, lowest, graph.Float(0)});
    return graph.Add("Min", {pass.mask, window});
  });
}

Value Block::Attention(const GraphPass& pass, const Value& x) const {
  OnnxGraph& graph = pass.graph;
  const int64_t hidden = config_.hidden, heads = config_.heads, dim = hidden / heads;
  std::array<Value, 3> parts;  // queries, keys, values
  const Value fused = qkv_.modules() == 1 ? qkv_.Export(pass, x) : "";
  for (int i = 0; i < 3; ++i) {
    parts[i] = fused.empty() ? qkv_.Export(pass, x, i)
                             : graph.Add("Slice",
                                   {fused, graph.Integers({i * hidden}),
                                       graph.Integers({(i + 1) * hidden}), graph.Integers({2})});
  }
  const auto split = [&](const Value& part, const std::vector<int64_t>& order) {
    return graph.Transpose(graph.Reshape(part, {0, 0, heads, dim}), order);
  };
  const std::vector<int64_t> rows = {0, 2, 1, 3}, columns = {0, 2, 3, 1};
  Value q = split(parts[0], rows), k = split(parts[1], rotary() ? rows : columns),
        v = split(parts[2], rows);
  if (rotary()) {
    const float base = config_.positions.rotary_base[config_.attention.is_local(index_)];
    const auto rotate = [&](const Value& part) {
      return AddRotation(graph, part, pass.positions, config_.positions.count, dim, base);
    };
    q = rotate(q), k = graph.Transpose(rotate(k), {0, 1, 3, 2});
  }
  const Value scores = graph.Add("Add", {distances_.Export(pass, qkv_, q, k), Mask(pass)}),
              probs = graph.Add("Softmax", {scores}, {{"axis", int64_t{-1}}}),
              context = graph.Transpose(graph.Add("MatMul", {probs, v}), rows);
  return attention_output_.Export(pass, graph.Reshape(context, {0, 0, hidden}));
}

Value Block::FeedForward(const GraphPass& pass, const Value& x) const {
  OnnxGraph& graph = pass.graph;
  const int last = intermediate_.modules() - 1;
  Value u = intermediate_.Export(pass, x, last);
  if (!config_.mlp.gated) {
    u = AddActivation(graph, config_.mlp.activation, u);
  } else {
    auto [gate, value] = last > 0
                             ? std::pair(intermediate_.Export(pass, x), u)
                             : AddHalves(graph, u, config_.intermediate, u + "_gate", u + "_value");
    u = graph.Add("Mul", {AddActivation(graph, config_.mlp.activation, gate), value});
  }
  return output_.Export(pass, u);
}

BlockValues Block::Export(const GraphPass& pass, const BlockValues& in) const {
  CLOZE_CHECK(!cross_.has_value());
  OnnxGraph& graph = pass.graph;
  const Value z1 = graph.Add("Add", {Attention(pass, in.y), in.residual}),
              y1 = norm_a_.Export(pass, z1),
              z2 = graph.Add("Add", {FeedForward(pass, y1), pre_ ? z1 : y1}),
              y2 = norm_b_.Export(pass, z2),
              y = convolution_.has_value() ? convolution_->Export(pass, in.y, y2) : y2;
  return {y, pre_ ? z2 : y};
}

}  // namespace cloze
