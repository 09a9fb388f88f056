// Layers of the modules: y = x W^T + b, its low-rank updates, and layer norm.
#ifndef CLOZE_ENCODER_MODULES_LAYERS_H_
#define CLOZE_ENCODER_MODULES_LAYERS_H_

#include <functional>
#include <optional>
#include <vector>

#include "core/ops/norm.h"
#include "encoder/modules/graph_pass.h"
#include "encoder/modules/pass.h"
#include "encoder/modules/roles.h"

namespace cloze {

// Returns the key of a module of the model that is built: its name in folders, which is empty if
// the model lacks the module, and its place. `layer`: see ParamKey.
using ModuleKeys = absl::FunctionRef<ParamKey(Role role, int layer)>;

// The linear layers with a LoRA, and its parameters.
struct LoraPlan {
  int64_t rank = 0;
  float scale = 0;  // s in y = W x + s B A x
  float dropout = 0;
  std::function<bool(const ParamKey& module)> wanted;
  int adapter = 0;  // the value of Pass::adapter that selects it
};

// LoRA, a low-rank update of a frozen linear layer (Hu et al. 2021): y += s B A dropout(x). A
// [rank, in] starts as Kaiming-uniform (a = sqrt(5)) and B [out, rank] as zero, as in PEFT.
class Lora {
 public:
  // Adds A and B of the linear layer `module`, in this order. `site`: see Pass::Site.
  Lora(ParamStore* store, const LoraPlan& plan, ParamKey module, int64_t in, int64_t out,
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
  Mat Hidden(const Pass& pass, ConstMat dropped) const;

  int64_t rank_;
  float scale_, dropout_;
  uint32_t site_;
  ParamId a_, b_;
};

// One linear layer, or several with the same input, computed as one product: their weights are
// adjacent, each with its own name.
class Linear {
 public:
  Linear() = default;
  // Adds the weight [out, in] and, with `bias`, the bias [out] of each module.
  Linear(ParamStore* store, const std::vector<ParamKey>& modules, int64_t in, int64_t out,
      bool bias = true);

  // Adds a LoRA to each layer that the plan selects, with dropout sites from `site` on.
  void AddLora(ParamStore* store, const LoraPlan& plan, uint32_t site);

  int modules() const { return count_; }
  int64_t out() const { return out_; }
  // True if it has trainable parameters.
  bool requires_grad(const Pass& pass) const;

  // x [n, in], y [n, modules * out].
  void Forward(const Pass& pass, ConstMat x, Mat y) const;
  // Returns the weight [modules * out, in].
  Weight weight(const Pass& pass) const { return pass.weight(weight_, count_); }
  // Returns the layer for Matmul::ForwardMlp; null if the pass does not compute it in int8, or adds
  // a LoRA.
  std::optional<WeightAndBias> ForMlp(const Pass& pass) const;
  // Adds the gradients of the weight and of LoRAs, unless they are frozen or x is empty. The caller
  // adds the gradient of the bias, because it computes the column sums of dy anyway. Overwrites dx
  // [n, in], or adds to it with `add_dx`; dx may be empty.
  void Backward(const Pass& pass, ConstMat x, ConstMat dy, Mat dx, bool add_dx = false) const;
  // x [..., in]. Returns the output [..., out] of one module. Requires that it has no LoRA.
  Value Export(const GraphPass& pass, const Value& x, int module = 0) const;
  // Return the weight [out, in] and the bias [out] of one module.
  Value weight(const GraphPass& pass, int module = 0) const { return pass.value(weight_ + module); }
  Value bias(const GraphPass& pass, int module = 0) const { return pass.vector(bias_ + module); }
  // Gradient of the bias [modules * out]; null if frozen or absent.
  float* bias_grad(const Pass& pass) const { return pass.vector_grad(bias_); }

 private:
  struct LoraPart {
    int adapter;
    int64_t column, cols;  // of y
    Lora lora;
  };

  std::vector<ParamKey> modules_;
  ParamId weight_ = -1, bias_ = -1;  // of the first module; those of the others follow; -1: none
  int count_ = 0;
  int64_t in_ = 0, out_ = 0;
  std::vector<LoraPart> parts_;
};

// Layer norm with the residual sum and dropout that surround it: z = residual + dropout(x), y =
// norm(z).
class Norm {
 public:
  struct Saved {
    Mat z;
    NormStats stats;
  };

  Norm() = default;
  // Adds the module's weight and, with `bias`, its bias [size].
  Norm(ParamStore* store, const ParamKey& module, int64_t size, float epsilon, bool bias = true);

  bool empty() const { return gain_ < 0; }
  bool requires_grad(const Pass& pass) const {
    return pass.requires_grad(gain_) || pass.requires_grad(bias_);
  }

  // See NormForward. z may be the memory of x.
  Saved Forward(const Pass& pass, ConstMat x, ConstMat residual, const DropoutSite& in,
      const DropoutSite& out, Mat z, Mat y) const;
  // See NormBackward. Adds the column sums of dx to dx_sum, unless it is null.
  void Backward(const Pass& pass, const Saved& saved, ConstMat dy, ConstMat dz_in,
      const DropoutSite& in, const DropoutSite& out, float* dx_sum, Mat dz, Mat dx) const;
  // Returns norm(z), with the given name unless that is empty.
  Value Export(const GraphPass& pass, const Value& z, const Value& name = "") const;

 private:
  NormParams params(const Pass& pass) const {
    return {pass.vector(gain_), pass.vector(bias_), epsilon_};
  }

  ParamId gain_ = -1, bias_ = -1;
  float epsilon_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_LAYERS_H_
