// y = x W^T + b, and what LoRAs add to it.
#ifndef CLOZE_ENCODER_MODULES_LINEAR_H_
#define CLOZE_ENCODER_MODULES_LINEAR_H_

#include <vector>

#include "encoder/modules/lora.h"

namespace cloze {

// Several layers with the same input can be joined into one product: their weights are adjacent row
// blocks, each under its own name.
class Linear {
 public:
  Linear() = default;
  // Adds the weight [out, in] and the bias [out] of each module.
  Linear(ParamStore* store, const std::vector<ParamKey>& modules, int64_t in, int64_t out);

  // Adds a LoRA to each of the layers that the plan wants; their places of dropout are `stream` and
  // the following.
  void AddLora(ParamStore* store, const LoraPlan& plan, uint32_t stream);

  int64_t out() const { return out_; }
  // Weight of the first module; those of the other modules have the next ids.
  ParamId weight() const { return weight_; }
  // Does anything of it learn?
  bool trained(const Pass& pass) const;

  // x [n, in], y [n, modules * out].
  void Forward(const Pass& pass, ConstMat x, Mat y) const;
  // Adds the gradients of the weight and of LoRAs unless they are frozen or x is empty; the bias's
  // is the caller's, who has dy's column sums from another pass: bias_grad(). dx [n, in] is
  // overwritten, or added to with `add_dx`; empty: not needed.
  void Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx, bool add_dx = false) const;
  // [modules * out] or null when frozen.
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
