// y = x W^T + b, plus LoRAs.
#ifndef CLOZE_ENCODER_MODULES_LINEAR_H_
#define CLOZE_ENCODER_MODULES_LINEAR_H_

#include <vector>

#include "encoder/modules/lora.h"

namespace cloze {

// One linear layer, or several with the same input, computed as one product: their weights are
// adjacent, each with its own name.
class Linear {
 public:
  Linear() = default;
  // Adds the weight [out, in] and the bias [out] of each module.
  Linear(ParamStore* store, const std::vector<ParamKey>& modules, int64_t in, int64_t out);

  // Adds a LoRA to each layer that the plan selects, with dropout sites from `site` on.
  void AddLora(ParamStore* store, const LoraPlan& plan, uint32_t site);

  int64_t out() const { return out_; }
  // Id of the first module's weight; the weights of the others follow.
  ParamId weight() const { return weight_; }
  // True if it has trainable parameters.
  bool requires_grad(const Pass& pass) const;

  // x [n, in], y [n, modules * out].
  void Forward(const Pass& pass, ConstMat x, Mat y) const;
  // Adds the gradients of the weight and of LoRAs, unless they are frozen or x is empty. The caller
  // adds the gradient of the bias, because it computes the column sums of dy anyway. Overwrites dx
  // [n, in], or adds to it with `add_dx`; dx may be empty.
  void Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx, bool add_dx = false) const;
  // Gradient of the bias [modules * out]; null if frozen.
  float* bias_grad(const Pass& pass) const { return pass.vector_grad(bias_); }

 private:
  struct LoraPart {
    int adapter;
    int64_t column, cols;  // of y
    Lora lora;
  };

  std::vector<ParamKey> modules_;
  ParamId weight_ = -1, bias_ = -1;
  int count_ = 0;
  int64_t in_ = 0, out_ = 0;
  std::vector<LoraPart> parts_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_LINEAR_H_
