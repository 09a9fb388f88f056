// The AdamW steps of a golden training (training.json of tests/golden).
#ifndef CLOZE_TESTS_REFERENCE_GOLDEN_STEPS_H_
#define CLOZE_TESTS_REFERENCE_GOLDEN_STEPS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/ops/adamw.h"
#include "core/tensor/param_store.h"

namespace cloze {

// Repeats the twelve steps of `training`, with gradients clipped to the length `clip`, and expects
// their losses and the lengths of their gradients. loss_and_gradients(step) returns the loss of a
// step, from 0, and leaves its gradients in `params`, which it may not change otherwise.
template <typename F>
void ExpectGoldenSteps(
    const nlohmann::json& training, double clip, ParamStore& params, F loss_and_gradients) {
  std::vector<float> m(params.values().size()), v(params.values().size());
  int64_t number = 0;
  for (const auto& s : training["steps"]) {
    EXPECT_NEAR(loss_and_gradients(number), s["loss"].get<double>(), 1e-4) << "step " << number;
    const double norm = std::sqrt(SumSquares(params.grads()));
    EXPECT_NEAR(norm, s["grad_norm"].get<double>(), 1e-3 * norm) << "step " << number;
    const float factor = std::min(1.0, clip / (norm + 1e-6));
    ++number;
    for (ParamId id = 0; id < params.size(); ++id) {
      const Param& param = params.param(id);
      AdamWStep({.rate = s["learning_rate"],
                    .beta1 = 0.9f,
                    .beta2 = 0.999f,
                    .epsilon = 1e-8f,
                    .decay = param.decay ? 0.01f : 0.0f,
                    .grad_scale = factor,
                    .bias_correction = true,
                    .step = number},
          params.value(id).f32(), params.grad(id).f32(), m.data() + param.offset,
          v.data() + param.offset, param.size());
    }
    params.Changed();
  }
  EXPECT_EQ(number, 12);
}

}  // namespace cloze

#endif  // CLOZE_TESTS_REFERENCE_GOLDEN_STEPS_H_
