#include "encoder/modules/lora.h"

#include <algorithm>
#include <cmath>

#include "core/ops/rows.h"

namespace cloze {
namespace {

Role RoleOf(LoraSpec::Target target) {
  switch (target) {
    case LoraSpec::QUERY: return Role::kQuery;
    case LoraSpec::KEY: return Role::kKey;
    case LoraSpec::VALUE: return Role::kValue;
    case LoraSpec::ATTENTION_OUTPUT: return Role::kAttentionOutput;
    case LoraSpec::INTERMEDIATE: return Role::kIntermediate;
    case LoraSpec::OUTPUT: return Role::kOutput;
  }
  CLOZE_CHECK(false);
}

ParamKey WithAdapter(ParamKey module, int adapter) {
  module.adapter = adapter;
  return module;
}

}  // namespace

float LoraScale(const LoraSpec& spec) {
  const float rank = static_cast<float>(spec.rank());
  return spec.alpha() / (spec.rslora() ? std::sqrt(rank) : rank);
}

bool IsTarget(const LoraSpec& spec, Role role) {
  if (spec.targets().empty()) return role == Role::kQuery || role == Role::kValue;
  return std::any_of(spec.targets().begin(), spec.targets().end(),
      [&](int target) { return RoleOf(static_cast<LoraSpec::Target>(target)) == role; });
}

Lora::Lora(ParamStore* store, const LoraPlan& plan, const ParamKey& module, int64_t in, int64_t out,
    uint32_t site)
    : a_(store->AddMatrix(WithAdapter(module, plan.adapter).Of(Part::kLoraA), plan.spec.rank(), in,
          false, Init::kUniform)),
      b_(store->AddMatrix(WithAdapter(module, plan.adapter).Of(Part::kLoraB), out, plan.spec.rank(),
          false, Init::kZero)),
      rank_(plan.spec.rank()), scale_(LoraScale(plan.spec)), dropout_(plan.spec.dropout()),
      site_(site) {}

// Returns dropout(x), or x itself without dropout.
ConstMat Lora::Dropped(const Pass& pass, ConstMat x) const {
  const DropoutSite site = Site(pass);
  if (site.p <= 0) return x;
  Mat dropped = pass.New(x.rows, x.cols);
  Dropout(x, site, dropped);
  return dropped;
}

// Returns s dy B [n, rank], the gradient of A dropout(x).
Mat Lora::Gradient(const Pass& pass, ConstMat dy) const {
  Mat dh = pass.New(dy.rows, rank_);
  pass.matmul.BackwardData(dy, pass.weight(b_), dh);
  Axpby(scale_, dh, 0, dh);
  return dh;
}

void Lora::Forward(const Pass& pass, ConstMat x, Mat y) const {
  const Arena::Mark mark = pass.arena.mark();
  Mat h = pass.New(x.rows, rank_);
  pass.matmul.Forward(Dropped(pass, x), pass.weight(a_), nullptr, h);
  Axpby(scale_, h, 0, h);
  pass.matmul.Forward(h, pass.weight(b_), nullptr, y, true);
  pass.arena.Rewind(mark);
}

void Lora::Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx) const {
  const bool weights = !x.empty() && requires_grad(pass), data = !dx.empty();
  if (!weights && !data) return;
  const Arena::Mark mark = pass.arena.mark();
  const Mat dh = Gradient(pass, dy);
  if (weights) AddWeights(pass, x, dy, dh);
  if (data) AddData(pass, dh, dx);
  pass.arena.Rewind(mark);
}

void Lora::AddData(const Pass& pass, ConstMat dh, Mat dx) const {
  const Arena::Mark mark = pass.arena.mark();
  const DropoutSite site = Site(pass);
  if (site.p <= 0) {
    pass.matmul.BackwardData(dh, pass.weight(a_), dx, true);
  } else {
    Mat dropped = pass.New(dx.rows, dx.cols);
    pass.matmul.BackwardData(dh, pass.weight(a_), dropped);
    Dropout(dropped, site, dropped);
    Axpby(1, dropped, 1, dx);
  }
  pass.arena.Rewind(mark);
}

void Lora::AddWeights(const Pass& pass, ConstMat x, ConstMat dy, ConstMat dh) const {
  const Arena::Mark mark = pass.arena.mark();
  const ConstMat dropped = Dropped(pass, x);
  Mat h = pass.New(x.rows, rank_);
  pass.matmul.Forward(dropped, pass.weight(a_), nullptr, h);
  Axpby(scale_, h, 0, h);
  pass.matmul.BackwardWeight(dy, h, pass.weight_grad(b_));
  pass.matmul.BackwardWeight(dh, dropped, pass.weight_grad(a_));
  pass.arena.Rewind(mark);
}

}  // namespace cloze
