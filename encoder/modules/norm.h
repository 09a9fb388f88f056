// Layer norm with the residual sum and dropout that surround it: z = residual + dropout(x), y =
// norm(z).
#ifndef CLOZE_ENCODER_MODULES_NORM_H_
#define CLOZE_ENCODER_MODULES_NORM_H_

#include "core/ops/norm.h"
#include "encoder/modules/pass.h"

namespace cloze {

class Norm {
 public:
  struct Saved {
    Mat z;
    NormStats stats;
  };

  Norm() = default;
  // Adds the module's weight and bias [size].
  Norm(ParamStore* store, const ParamKey& module, int64_t size, float epsilon);

  bool requires_grad(const Pass& pass) const {
    return pass.requires_grad(gain_) || pass.requires_grad(bias_);
  }

  // See NormForward. z may be the memory of x.
  Saved Forward(const Pass& pass, ConstMat x, ConstMat residual, const DropoutSite& in,
      const DropoutSite& out, Mat z, Mat y) const;
  // See NormBackward. Adds the column sums of dx to dx_sum, unless it is null.
  void Backward(const Pass& pass, const Saved& saved, ConstMat dy, ConstMat dz_in,
      const DropoutSite& in, const DropoutSite& out, float* dx_sum, Mat dz, Mat dx) const;

 private:
  NormParams params(const Pass& pass) const {
    return {pass.vector(gain_), pass.vector(bias_), epsilon_};
  }

  ParamId gain_ = -1, bias_ = -1;
  float epsilon_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_NORM_H_
