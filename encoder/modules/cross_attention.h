// Attention of a decoder's block to the hidden states of its encoder.
#ifndef CLOZE_ENCODER_MODULES_CROSS_ATTENTION_H_
#define CLOZE_ENCODER_MODULES_CROSS_ATTENTION_H_

#include "encoder/modules/architecture.h"
#include "encoder/modules/layers.h"

namespace cloze {

// The encoder's output for the sources of a batch.
struct SourceStates {
  ConstMat y;                            // [rows, hidden]
  absl::Span<const int32_t> cu_seqlens;  // [sequences + 1] first row of each source
  Mat dy = {};  // [rows, hidden] gradient of y, which blocks add to; empty: not wanted
};

// y = norm(x + attention(x, states)), Vaswani et al. 2017, section 3.2.3.
class CrossAttention {
 public:
  struct Saved {
    ConstMat x;
    Mat q, key_value, context;
    float* lse = nullptr;
    Norm::Saved norm;
  };

  CrossAttention(ParamStore* store, const Architecture& config, ModuleKeys keys, int index);

  bool requires_grad(const Pass& pass) const {
    return query_.requires_grad(pass) || key_value_.requires_grad(pass) ||
           output_.requires_grad(pass) || norm_.requires_grad(pass);
  }

  // x, y [rows, hidden]. Attends to pass.states or, if pass.decoding has `seen` rows, to the keys
  // and values in the cache.
  Saved Forward(const Pass& pass, ConstMat x, Mat y) const;
  // d [rows, hidden]: the gradient of y, replaced by that of x. Adds to pass.states->dy.
  void Backward(const Pass& pass, const Saved& saved, Mat d) const;

 private:
  // Site numbers follow those of the blocks.
  DropoutSite Site(const Pass& pass, DropoutKind kind) const {
    return pass.Site(kind == DropoutKind::kAttention ? config_.attention.dropout : config_.dropout,
        DropoutSiteId(kind, config_.layers + index_));
  }

  Architecture config_;
  int index_;
  Linear query_, key_value_, output_;
  Norm norm_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_CROSS_ATTENTION_H_
