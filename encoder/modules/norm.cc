#include "encoder/modules/norm.h"

namespace cloze {

Norm::Norm(ParamStore* store, const ParamKey& module, int64_t size, float epsilon)
    : gain_(store->AddVector(module.Of(Part::kWeight), size, Init::kOne)),
      bias_(store->AddVector(module.Of(Part::kBias), size, Init::kZero)), epsilon_(epsilon) {}

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

}  // namespace cloze
