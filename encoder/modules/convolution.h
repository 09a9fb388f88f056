// A convolution over the tokens of a sequence, added to the output of a block.
#ifndef CLOZE_ENCODER_MODULES_CONVOLUTION_H_
#define CLOZE_ENCODER_MODULES_CONVOLUTION_H_

#include "encoder/modules/architecture.h"
#include "encoder/modules/layers.h"

namespace cloze {

// y = norm(residual + act(dropout(conv(x)))), with zeros beyond the ends of a sequence.
class Convolution {
 public:
  struct Saved {
    ConstMat x;
    Mat u;  // input of the activation
    Norm::Saved norm;
  };

  Convolution(ParamStore* store, const Architecture& config, ModuleKeys keys);

  bool requires_grad(const Pass& pass) const {
    return layer_.requires_grad(pass) || norm_.requires_grad(pass);
  }

  // x, residual, y [rows, hidden]. Overwrites residual, which the backward pass needs.
  Saved Forward(const Pass& pass, ConstMat x, Mat residual, Mat y) const;
  // d: gradient of y, replaced by that of the residual. Overwrites dx, which may be empty.
  void Backward(const Pass& pass, const Saved& saved, Mat d, Mat dx) const;
  // x, residual [B, S, hidden]. Returns y.
  Value Export(const GraphPass& pass, const Value& x, const Value& residual) const;

 private:
  DropoutSite Site(const Pass& pass) const;

  int size_;
  float dropout_;
  ActivationKind activation_;
  Linear layer_;  // of unfolded rows
  Norm norm_;
};

}  // namespace cloze

#endif  // CLOZE_ENCODER_MODULES_CONVOLUTION_H_
