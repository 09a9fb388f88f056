#include "encoder/linear.h"

namespace cloze {

Linear::Linear(ParamStore* store, const std::vector<std::string>& names, int64_t in, int64_t out)
    : count_(names.size()), out_(names.size() * out) {
  for (const std::string& name : names) {
    const ParamId id = store->AddMatrix(name + ".weight", out, in, weight_ >= 0);
    if (weight_ < 0) weight_ = id;
  }
  for (const std::string& name : names) {
    const ParamId id = store->AddVector(name + ".bias", out, Init::kZero, bias_ >= 0);
    if (bias_ < 0) bias_ = id;
  }
}

void Linear::Forward(const Step& step, ConstMat x, Mat y) const {
  step.matmul.Forward(x, step.weight(weight_, count_), step.vector(bias_), y);
}

void Linear::Backward(const Step& step, ConstMat x, ConstMat dy, Mat dx, bool add_dx) const {
  if (trainable(step) && !dx.empty()) {
    return step.matmul.Backward(x, step.weight(weight_, count_), dy, step.weight_grad(weight_, count_), dx, add_dx);
  }
  BackwardWeight(step, x, dy);
  BackwardData(step, dy, dx, add_dx);
}

void Linear::BackwardData(const Step& step, ConstMat dy, Mat dx, bool add_dx) const {
  if (!dx.empty()) step.matmul.BackwardData(dy, step.weight(weight_, count_), dx, add_dx);
}

void Linear::BackwardWeight(const Step& step, ConstMat x, ConstMat dy) const {
  if (trainable(step)) step.matmul.BackwardWeight(dy, x, step.weight_grad(weight_, count_));
}

}  // namespace cloze
