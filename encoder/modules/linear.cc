#include "encoder/modules/linear.h"

#include <algorithm>

namespace cloze {

Linear::Linear(ParamStore* store, const std::vector<ParamKey>& modules, int64_t in, int64_t out)
    : modules_(modules), count_(modules.size()), in_(in), out_(modules.size() * out) {
  for (const ParamKey& module : modules) {
    const ParamId id = store->AddMatrix(module.Of(Part::kWeight), out, in, weight_ >= 0);
    if (weight_ < 0) weight_ = id;
  }
  for (const ParamKey& module : modules) {
    const ParamId id = store->AddVector(module.Of(Part::kBias), out, Init::kZero, bias_ >= 0);
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
         std::any_of(parts_.begin(), parts_.end(), [&](const LoraPart& part) {
           return part.adapter == pass.adapter && part.lora.requires_grad(pass);
         });
}

void Linear::Forward(const Pass& pass, ConstMat x, Mat y) const {
  pass.matmul.Forward(x, pass.weight(weight_, count_), pass.vector(bias_), y);
  for (const LoraPart& part : parts_) {
    if (part.adapter == pass.adapter)
      part.lora.Forward(pass, x, Columns(y, part.column, part.cols));
  }
}

void Linear::Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx, bool add_dx) const {
  const bool weights = !x.empty() && pass.requires_grad(weight_), data = !dx.empty();
  const Weight w = pass.weight(weight_, count_);
  if (weights && data)
    pass.matmul.Backward(x, w, dy, pass.weight_grad(weight_, count_), dx, add_dx);
  if (weights && !data) pass.matmul.BackwardWeight(dy, x, pass.weight_grad(weight_, count_));
  if (!weights && data) pass.matmul.BackwardData(dy, w, dx, add_dx);
  for (const LoraPart& part : parts_) {
    if (part.adapter == pass.adapter)
      part.lora.Backward(pass, x, Columns(dy, part.column, part.cols), dx);
  }
}

}  // namespace cloze
