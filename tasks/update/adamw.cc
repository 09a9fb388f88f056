// AdamW (Loshchilov & Hutter 2019), with clip_updates StableAdamW (Wortsman et al. 2023).
#include "core/ops/adamw.h"

#include <algorithm>
#include <cmath>

#include "tasks/update/update_rule.h"

namespace cloze {
namespace {

class AdamWRule : public UpdateRule {
 public:
  explicit AdamWRule(const OptimizerSpec& spec) : spec_(spec) {}

  const char* name() const override { return "AdamW"; }
  bool Takes(const Param&) const override { return true; }
  int states() const override { return 2; }

  bool measures() const override { return spec_.clip_updates(); }
  double MeasurePart(const UpdateStep& step, const ParamPart& part) const override {
    return SumUpdateRatios(Settings(step), part.grad, part.state[1], part.n);
  }
  // With clip_updates the rate of a tensor is divided by the root mean square of g / sqrt(v) if
  // that is above 1.
  void Update(const UpdateStep& step, const ParamUpdate& update, double sum,
      const ParamPart& part) const override {
    AdamW settings = Settings(step);
    settings.rate *= update.rate;
    settings.decay = update.decay;
    if (measures()) {
      const double rms = std::sqrt(sum / update.param->size());
      settings.rate = static_cast<float>(settings.rate / std::max(rms, 1.0));
    }
    AdamWStep(settings, part.value, part.grad, part.state[0], part.state[1], part.n);
  }

 private:
  AdamW Settings(const UpdateStep& step) const {
    return {.rate = step.rate,
        .beta1 = spec_.beta1(),
        .beta2 = spec_.beta2(),
        .epsilon = spec_.epsilon(),
        .decay = 0,
        .grad_scale = step.grad_scale,
        .bias_correction = spec_.bias_correction(),
        .step = step.number};
  }

  OptimizerSpec spec_;
};

}  // namespace

std::unique_ptr<UpdateRule> NewAdamW(const OptimizerSpec& spec, DType /*product*/) {
  return std::make_unique<AdamWRule>(spec);
}

}  // namespace cloze
