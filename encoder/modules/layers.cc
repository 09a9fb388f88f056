#include "encoder/modules/layers.h"

#include "absl/algorithm/container.h"
#include "core/ops/rows.h"
#include "encoder/graph/ops.h"

namespace cloze {

Lora::Lora(ParamStore* store, const LoraPlan& plan, ParamKey module, int64_t in, int64_t out,
    uint32_t site)
    : rank_(plan.rank), scale_(plan.scale), dropout_(plan.dropout), site_(site) {
  module.adapter = plan.adapter;
  a_ = store->AddMatrix(KeyOf(module, ParamKind::kLoraA), rank_, in, false, Init::kUniform);
  b_ = store->AddMatrix(KeyOf(module, ParamKind::kLoraB), out, rank_, false, Init::kZero);
}

// Returns dropout(x), or x itself without dropout.
ConstMat Lora::Dropped(const Pass& pass, ConstMat x) const {
  const DropoutSite site = Site(pass);
  if (site.p <= 0) return x;
  Mat dropped = pass.New(x.rows, x.cols);
  Dropout(x, site, dropped);
  return dropped;
}

// Returns s A dropout(x) [n, rank].
Mat Lora::Hidden(const Pass& pass, ConstMat dropped) const {
  Mat h = pass.New(dropped.rows, rank_);
  pass.matmul.Forward(dropped, pass.weight(a_), nullptr, h);
  Axpby(scale_, h, 0, h);
  return h;
}

void Lora::Forward(const Pass& pass, ConstMat x, Mat y) const {
  const Arena::Mark mark = pass.arena.mark();
  pass.matmul.Forward(Hidden(pass, Dropped(pass, x)), pass.weight(b_), nullptr, y, true);
  pass.arena.Rewind(mark);
}

void Lora::Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx) const {
  const bool weights = !x.empty() && requires_grad(pass), data = !dx.empty();
  if (!weights && !data) return;
  const Arena::Mark mark = pass.arena.mark();
  Mat dh = pass.New(dy.rows, rank_);  // s dy B, the gradient of A dropout(x)
  pass.matmul.BackwardData(dy, pass.weight(b_), dh);
  Axpby(scale_, dh, 0, dh);
  if (weights) {
    const Arena::Mark inner = pass.arena.mark();
    const ConstMat dropped = Dropped(pass, x);
    pass.matmul.BackwardWeight(dy, Hidden(pass, dropped), pass.weight_grad(b_));
    pass.matmul.BackwardWeight(dh, dropped, pass.weight_grad(a_));
    pass.arena.Rewind(inner);
  }
  const DropoutSite site = Site(pass);
  if (data && site.p <= 0) pass.matmul.BackwardData(dh, pass.weight(a_), dx, true);
  if (data && site.p > 0) {
    Mat dropped = pass.New(dx.rows, dx.cols);
    pass.matmul.BackwardData(dh, pass.weight(a_), dropped);
    Dropout(dropped, site, dropped);
    Axpby(1, dropped, 1, dx);
  }
  pass.arena.Rewind(mark);
}

Linear::Linear(
    ParamStore* store, const std::vector<ParamKey>& modules, int64_t in, int64_t out, bool bias)
    : modules_(modules), count_(modules.size()), in_(in), out_(modules.size() * out) {
  for (const ParamKey& module : modules) {
    const ParamId id = store->AddMatrix(KeyOf(module, ParamKind::kWeight), out, in, weight_ >= 0);
    store->Edit(id).matmul_only = true;
    if (module.role == Role::kQueryKeyValue) store->Edit(id).matrices = 3;
    if (weight_ < 0) weight_ = id;
  }
  if (!bias) return;
  for (const ParamKey& module : modules) {
    const ParamId id =
        store->AddVector(KeyOf(module, ParamKind::kBias), out, Init::kZero, bias_ >= 0);
    if (bias_ < 0) bias_ = id;
  }
}

void Linear::AddLora(ParamStore* store, const LoraPlan& plan, uint32_t site) {
  const int64_t cols = out_ / count_;
  for (int i = 0; i < count_; ++i) {
    if (plan.wanted(modules_[i]))
      parts_.push_back(
          {plan.adapter, i * cols, cols, Lora(store, plan, modules_[i], in_, cols, site + i)});
  }
}

bool Linear::requires_grad(const Pass& pass) const {
  return pass.requires_grad(weight_) || pass.requires_grad(bias_) ||
         absl::c_any_of(parts_, [&](const LoraPart& part) {
           return part.adapter == pass.adapter && part.lora.requires_grad(pass);
         });
}

void Linear::Forward(const Pass& pass, ConstMat x, Mat y) const {
  pass.matmul.Forward(x, weight(pass), pass.vector(bias_), y);
  for (const LoraPart& part : parts_) {
    if (part.adapter == pass.adapter)
      part.lora.Forward(pass, x, Columns(y, part.column, part.cols));
  }
}

std::optional<WeightAndBias> Linear::ForMlp(const Pass& pass) const {
  const bool lora =
      absl::c_any_of(parts_, [&](const LoraPart& part) { return part.adapter == pass.adapter; });
  const Weight w = weight(pass);
  if (lora || !w.int8) return std::nullopt;
  return WeightAndBias{w, pass.vector(bias_)};
}

void Linear::Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx, bool add_dx) const {
  const bool weights = !x.empty() && pass.requires_grad(weight_), data = !dx.empty();
  const Weight w = weight(pass);
  if (weights && data)
    pass.matmul.Backward(x, w, dy, pass.weight_grad(weight_, count_), dx, add_dx);
  if (weights && !data) pass.matmul.BackwardWeight(dy, x, pass.weight_grad(weight_, count_));
  if (!weights && data) pass.matmul.BackwardData(dy, w, dx, add_dx);
  for (const LoraPart& part : parts_) {
    if (part.adapter == pass.adapter)
      part.lora.Backward(pass, x, Columns(dy, part.column, part.cols), dx);
  }
}

Value Linear::Export(const GraphPass& pass, const Value& x, int module) const {
  CLOZE_CHECK(parts_.empty());
  const Param& w = pass.params.param(weight_ + module);
  const Value product =
      AddProduct(pass.graph, x, w.name, pass.params.value(weight_ + module), pass.int8(w));
  return bias_ < 0 ? product : pass.graph.Add("Add", {product, bias(pass, module)});
}

Norm::Norm(ParamStore* store, const ParamKey& module, int64_t size, float epsilon, bool bias)
    : gain_(store->AddVector(KeyOf(module, ParamKind::kWeight), size, Init::kOne)),
      bias_(bias ? store->AddVector(KeyOf(module, ParamKind::kBias), size, Init::kZero) : -1),
      epsilon_(epsilon) {}

Norm::Saved Norm::Forward(const Pass& pass, ConstMat x, ConstMat residual, const DropoutSite& in,
    const DropoutSite& out, Mat z, Mat y) const {
  const Saved saved = {z, {pass.arena.NewArray<float>(y.rows), pass.arena.NewArray<float>(y.rows)}};
  NormForward(x, residual, params(pass), in, out, z, y, saved.stats);
  return saved;
}

void Norm::Backward(const Pass& pass, const Saved& saved, ConstMat dy, ConstMat dz_in,
    const DropoutSite& in, const DropoutSite& out, float* dx_sum, Mat dz, Mat dx) const {
  NormBackward(dy, saved.z, saved.stats, params(pass), in, out, dz_in,
      {pass.vector_grad(gain_), pass.vector_grad(bias_), dx_sum}, pass.arena, dz, dx);
}

Value Norm::Export(const GraphPass& pass, const Value& z, const Value& name) const {
  std::vector<Value> inputs = {z, pass.vector(gain_)};
  if (bias_ >= 0) inputs.push_back(pass.vector(bias_));
  return pass.graph.Add(
      "LayerNormalization", inputs, {{"axis", int64_t{-1}}, {"epsilon", epsilon_}}, name);
}

}  // namespace cloze
