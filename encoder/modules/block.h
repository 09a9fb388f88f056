// One block of the encoder: self-attention and MLP, each with residual sum, dropout and layer norm.
#ifndef CLOZE_ENCODER_MODULES_BLOCK_H_
#define CLOZE_ENCODER_MODULES_BLOCK_H_

#include <optional>

#include "core/ops/activation.h"
#include "core/ops/attention.h"
#include "encoder/modules/architecture.h"
#include "encoder/modules/convolution.h"
#include "encoder/modules/cross_attention.h"
#include "encoder/modules/layers.h"
#include "encoder/modules/relative.h"

namespace cloze {

// The output of a block: y, the normed input of the next block, and the residual sum. In a
// post-norm model they are the same matrix.
struct BlockState {
  Mat y, residual;  // [rows, hidden]
};

// A BlockState in an export.
struct BlockValues {
  Value y, residual;  // [B, S, hidden]
};

// Post-norm: y1 = norm_a(x + attention(x)), y2 = norm_b(y1 + mlp(y1)). Pre-norm: z1 = z +
// attention(y), z2 = z1 + mlp(norm_a(z1)), y2 = norm_b(z2), where norm_b is the norm before the
// next block or after the last (Bishop & Bishop, section 12.1.7).
// In a decoder with an encoder, attention to the encoder's states is between self-attention and
// MLP, see CrossAttention; such models are post-norm.
// The first block may end with a convolution of its input, see Convolution; then it has no targets
// and is post-norm.
class Block {
 public:
  struct Saved {
    std::optional<TargetRows> targets;  // rows of all matrices from `picked` on; null: all rows
    ConstMat x;                         // input of attention
    Mat qkv, context, picked, y1, u;
    Mat mlp;  // input of the MLP: y1, or the output of attention to the encoder
    CrossAttention::Saved cross;
    RelativeProjection::Saved distances;
    Convolution::Saved convolution;
    float* lse = nullptr;
    Norm::Saved norm_a, norm_b;
  };

  Block(ParamStore* store, const Architecture& config, ModuleKeys keys, int index);

  void AddLora(ParamStore* store, const LoraPlan& plan);
  // True if it has trainable parameters.
  bool requires_grad(const Pass& pass) const {
    return attention_requires_grad(pass) || mlp_requires_grad(pass) ||
           norm_b_.requires_grad(pass) || convolution_requires_grad(pass);
  }

  // Writes out.y and, pre-norm, out.residual: all rows or those of `targets`. `probs`: see
  // AttentionForward.
  Saved Forward(const Pass& pass, const BlockState& in, const BlockState& out,
      const std::optional<TargetRows>& targets = {}, float* probs = nullptr) const;
  // Computes d_in, the gradient of `in`, from d, the gradient of `out`; overwrites d. d_in is d
  // itself unless the block has targets. If d_in is empty, computes only gradients of parameters
  // and stops at the lowest trainable one.
  void Backward(
      const Pass& pass, const Saved& saved, const BlockState& d, const BlockState& d_in) const;
  // Returns `out` of Forward. Requires an encoder.
  BlockValues Export(const GraphPass& pass, const BlockValues& in) const;

 private:
  bool attention_requires_grad(const Pass& pass) const {
    return qkv_.requires_grad(pass) || distances_.requires_grad(pass) ||
           attention_output_.requires_grad(pass) ||
           (cross_.has_value() && cross_->requires_grad(pass));
  }
  bool mlp_requires_grad(const Pass& pass) const {
    return norm_a_.requires_grad(pass) || intermediate_.requires_grad(pass) ||
           output_.requires_grad(pass);
  }
  bool convolution_requires_grad(const Pass& pass) const {
    return convolution_.has_value() && convolution_->requires_grad(pass);
  }
  DropoutSite Site(const Pass& pass, DropoutKind kind) const;
  AttentionShape Shape(const Pass& pass, const RelativePositions& relative) const;
  bool rotary() const { return config_.positions.kind == Positions::kRotary; }
  // Sets saved->u and z2 [rows, hidden], the MLP of saved->mlp.
  void FeedForward(const Pass& pass, Mat z2, Saved* saved) const;
  void FeedForwardBackward(const Pass& pass, const Saved& saved, ConstMat dm, Mat dy1) const;
  // Computes everything after attention; `pass` is narrowed to the targets, if there are any.
  void AfterAttention(
      const Pass& pass, ConstMat residual, const BlockState& out, Saved* saved) const;
  void AttentionBackward(const Pass& pass, const Saved& saved, ConstMat dcontext, Mat dx) const;
  // Return nodes: attention and the MLP of x [B, S, hidden], and the mask [B, 1, 1 or S, S].
  Value Attention(const GraphPass& pass, const Value& x) const;
  Value FeedForward(const GraphPass& pass, const Value& x) const;
  Value Mask(const GraphPass& pass) const;

  Architecture config_;
  int index_;
  bool pre_;
  RelativeProjection distances_;
  Linear qkv_, attention_output_, intermediate_, output_;
  Norm norm_a_, norm_b_;
  std::optional<Convolution> convolution_;
  std::optional<CrossAttention> cross_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_BLOCK_H_
