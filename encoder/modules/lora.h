// LoRA: a low-rank update of a frozen linear layer (Hu et al. 2021).
#ifndef CLOZE_ENCODER_MODULES_LORA_H_
#define CLOZE_ENCODER_MODULES_LORA_H_

#include <functional>

#include "encoder/modules/pass.h"
#include "proto/task.pb.h"

namespace cloze {

// The linear layers with a LoRA, and its parameters.
struct LoraPlan {
  LoraSpec spec;
  std::function<bool(const ParamKey& module)> wanted;
  int adapter = 0;  // the value of Pass::adapter that selects it
};

// Returns s in y = W x + s B A x.
float LoraScale(const LoraSpec& spec);
// True if modules with this role get a LoRA; by default queries and values.
bool IsTarget(const LoraSpec& spec, Role role);

// y += s B A dropout(x). A [rank, in] starts as Kaiming-uniform (a = sqrt(5)) and B [out, rank] as
// zero, as in PEFT.
class Lora {
 public:
  // Adds A and B of the linear layer `module`, in this order. `site`: see Pass::Site.
  Lora(ParamStore* store, const LoraPlan& plan, const ParamKey& module, int64_t in, int64_t out,
      uint32_t site);

  bool requires_grad(const Pass& pass) const { return pass.requires_grad(a_); }

  // x [n, in]. Adds to y [n, out].
  void Forward(const Pass& pass, ConstMat x, Mat y) const;
  // dy [n, out]. Adds the gradients of A and B, unless they are frozen or x is empty. Adds to dx
  // [n, in], unless it is empty.
  void Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx) const;

 private:
  DropoutSite Site(const Pass& pass) const { return pass.Site(dropout_, site_); }
  ConstMat Dropped(const Pass& pass, ConstMat x) const;
  Mat Gradient(const Pass& pass, ConstMat dy) const;
  void AddData(const Pass& pass, ConstMat dh, Mat dx) const;
  void AddWeights(const Pass& pass, ConstMat x, ConstMat dy, ConstMat dh) const;

  ParamId a_, b_;
  int64_t rank_;
  float scale_, dropout_;
  uint32_t site_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_LORA_H_
