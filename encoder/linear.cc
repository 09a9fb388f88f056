#include "encoder/linear.h"

#include <algorithm>

namespace cloze {

Linear::Linear(ParamStore* store, const std::vector<std::string>& names, int64_t in, int64_t out)
    : names_(names), count_(names.size()), in_(in), out_(names.size() * out) {
  for (const std::string& name : names) {
    const ParamId id = store->AddMatrix(name + ".weight", out, in, weight_ >= 0);
    if (weight_ < 0) weight_ = id;
  }
  for (const std::string& name : names) {
    const ParamId id = store->AddVector(name + ".bias", out, Init::kZero, bias_ >= 0);
    if (bias_ < 0) bias_ = id;
  }
}

void Linear::AddLora(ParamStore* store, const LoraPlan& plan, uint32_t stream) {
  const int64_t cols = out_ / count_;
  for (int i = 0; i < count_; ++i) {
    if (plan.wanted(names_[i]))
      parts_.push_back(
          {plan.adapter, i * cols, cols, Lora(store, plan, names_[i], in_, cols, stream + i)});
  }
}

bool Linear::trained(const Step& step) const {
  return step.trained(weight_) || step.trained(bias_) ||
         std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
           return part.adapter == step.adapter && part.lora.trained(step);
         });
}

void Linear::Forward(const Step& step, ConstMat x, Mat y) const {
  step.matmul.Forward(x, step.weight(weight_, count_), step.vector(bias_), y);
  for (const Part& part : parts_) {
    if (part.adapter == step.adapter)
      part.lora.Forward(step, x, Columns(y, part.column, part.cols));
  }
}

void Linear::Backward(const Step& step, ConstMat x, ConstMat dy, Mat dx, bool add_dx) const {
  const bool weights = !x.empty() && step.trained(weight_), data = !dx.empty();
  const Weight w = step.weight(weight_, count_);
  if (weights && data)
    step.matmul.Backward(x, w, dy, step.weight_grad(weight_, count_), dx, add_dx);
  if (weights && !data) step.matmul.BackwardWeight(dy, x, step.weight_grad(weight_, count_));
  if (!weights && data) step.matmul.BackwardData(dy, w, dx, add_dx);
  for (const Part& part : parts_) {
    if (part.adapter == step.adapter)
      part.lora.Backward(step, x, Columns(dy, part.column, part.cols), dx);
  }
}

}  // namespace cloze
