#include "encoder/norm.h"

namespace cloze {

Norm::Norm(ParamStore* store, const std::string& name, int64_t size, float epsilon)
    : gain_(store->AddVector(name + ".weight", size, Init::kOne)),
      bias_(store->AddVector(name + ".bias", size, Init::kZero)), epsilon_(epsilon) {}

Norm::Saved Norm::Forward(const Step& step, ConstMat x, ConstMat residual, const DropoutSite& in,
    const DropoutSite& out, Mat z, Mat y) const {
  const Saved saved = {z, {step.arena.NewArray<float>(y.rows), step.arena.NewArray<float>(y.rows)}};
  NormForward(x, residual, params(step), in, out, z, y, saved.stats);
  return saved;
}

void Norm::Backward(const Step& step, const Saved& saved, ConstMat dy, ConstMat dz_in,
    const DropoutSite& in, const DropoutSite& out, float* dx_sum, Mat dz, Mat dx) const {
  NormBackward(dy, saved.z, saved.stats, params(step), in, out, dz_in,
      {step.vector_grad(gain_), step.vector_grad(bias_), dx_sum}, step.arena, dz, dx);
}

}  // namespace cloze
