#include "encoder/modules/convolution.h"

#include "core/ops/rows.h"
#include "core/ops/unfold.h"
#include "encoder/graph/ops.h"

namespace cloze {

Convolution::Convolution(ParamStore* store, const Architecture& config, ModuleKeys keys)
    : size_(config.relative.convolution), dropout_(config.dropout),
      activation_(config.relative.convolution_activation) {
  const ParamId weight = store->size();
  layer_ = Linear(store, {keys(Role::kConvolution, 0)},
      int64_t{config.relative.convolution} * config.hidden, config.hidden);
  store->Edit(weight).kernel_width = size_;
  norm_ = Norm(store, keys(Role::kConvolutionNorm, 0), config.hidden, config.norm.epsilon);
}

// This site number lies between those of block 0's MLP output and of its LoRAs, and is free.
DropoutSite Convolution::Site(const Pass& pass) const {
  return pass.Site(dropout_, DropoutSiteId(DropoutKind::kFeedForwardOutput) + 1);
}

Convolution::Saved Convolution::Forward(const Pass& pass, ConstMat x, Mat residual, Mat y) const {
  Saved s = {x, pass.New(x.rows, x.cols), {}};
  const Arena::Mark mark = pass.arena.mark();
  const Mat columns = pass.New(x.rows, size_ * x.cols);
  UnfoldRows(x, pass.batch.cu_seqlens, size_, columns);
  layer_.Forward(pass, columns, s.u);
  pass.arena.Rewind(mark);
  Dropout(s.u, Site(pass), s.u);
  ActivationForward(activation_, s.u, y);
  s.norm = norm_.Forward(pass, y, residual, {}, {}, residual, y);
  return s;
}

void Convolution::Backward(const Pass& pass, const Saved& s, Mat d, Mat dx) const {
  const Arena::Mark mark = pass.arena.mark();
  norm_.Backward(pass, s.norm, d, {}, {}, {}, nullptr, d, {});
  const Mat du = pass.New(d.rows, d.cols);
  const Arena::Mark shared = pass.arena.mark();
  ActivationBackward(activation_, s.u, d, nullptr, pass.arena, pass.New(d.rows, d.cols), du);
  pass.arena.Rewind(shared);
  Dropout(du, Site(pass), du);
  ZeroRowsFrom(du, pass.batch.tokens());
  AddColumnSums(du, pass.arena, layer_.bias_grad(pass));
  const Mat columns = pass.New(d.rows, size_ * d.cols);
  UnfoldRows(s.x, pass.batch.cu_seqlens, size_, columns);
  layer_.Backward(pass, columns, du, {});
  if (!dx.empty()) {
    layer_.Backward(pass, {}, du, columns);
    UnfoldRowsBackward(columns, pass.batch.cu_seqlens, size_, dx);
  }
  pass.arena.Rewind(mark);
}

Value Convolution::Export(const GraphPass& pass, const Value& x, const Value& residual) const {
  OnnxGraph& graph = pass.graph;
  const int64_t hidden = layer_.out();
  const Value tokens = graph.Add("Unsqueeze", {pass.tokens, graph.Integers({2})}),
              weight = graph.Reshape(layer_.weight(pass), {hidden, hidden, size_}),
              rows = graph.Transpose(graph.Add("Mul", {x, tokens}), {0, 2, 1}),
              columns = graph.Add("Conv", {rows, weight, layer_.bias(pass)},
                  {{"pads", std::vector<int64_t>{size_ / 2, size_ / 2}}}),
              act = AddActivation(graph, activation_, graph.Transpose(columns, {0, 2, 1}));
  return norm_.Export(pass, graph.Add("Add", {residual, act}));
}

}  // namespace cloze
