#include "tasks/training/step.h"

#include <algorithm>
#include <cmath>

#include "core/base/profile.h"
#include "core/base/threads.h"
#include "core/ops/adamw.h"
#include "tasks/generator.h"

namespace cloze {

double TrainingPass(
    Model& model, const Task& task, const Batch& batch, const PassOptions& options) {
  model.arena().Reset();
  const auto pass_over = [&](const Batch& input) {
    Pass pass = model.NewPass(input, options.compute, true, options.seed);
    pass.recompute = options.recompute;
    return pass;
  };
  const auto train = [&](const Pass& pass, float scale) {
    const auto loss = [&](Mat logits, int64_t first, float gradient, Arena& arena) {
      return task.Loss(model.head(), pass, logits, first, gradient, arena);
    };
    return TrainingPass(model.encoder(), model.head(), pass, scale, loss).loss;
  };
  if (model.generator() == nullptr) return train(pass_over(batch), options.scale);
  Batch replaced;
  const double loss =
      ReplaceTokens(*model.generator(), pass_over(batch), options.scale, &replaced).loss;
  if (options.scale == 0) return loss;  // the step has no targets
  return loss +
         train(pass_over(replaced), options.token_scale) * options.token_scale / options.scale;
}

Optimizer::Optimizer(ParamStore* store, const OptimizerSpec& spec)
    : store_(store), spec_(spec), m_(store->grads().size() * sizeof(float)), v_(m_.bytes()) {
  constexpr int64_t kPiece = 1 << 17;
  int top = 0;
  for (ParamId id = 0; id < store->size(); ++id) top = std::max(top, store->param(id).layer);
  for (ParamId id = 0; id < store->size(); ++id) {
    const Param& p = store->param(id);
    if (!p.trainable) continue;
    const float rate = std::pow(spec.layer_decay(), static_cast<float>(top - p.layer));
    for (int64_t i = 0; i < p.size(); i += kPiece)
      pieces_.push_back({p.offset + i, p.grad_offset + i, std::min(kPiece, p.size() - i), p.decay,
          p.rate * rate, id});
  }
  if (spec_.ema_decay() > 0) average_ = LargeMemory(m_.bytes());
  StartAverage();
}

double Optimizer::GradNorm() const { return std::sqrt(SumSquares(store_->grads())); }

void Optimizer::Step(double rate, double norm) {
  const AdamW all = {.rate = static_cast<float>(rate),
      .beta1 = spec_.beta1(),
      .beta2 = spec_.beta2(),
      .epsilon = spec_.epsilon(),
      .decay = 0,
      .grad_scale = spec_.clip_norm() > 0
                        ? static_cast<float>(std::min(1.0, spec_.clip_norm() / (norm + 1e-6)))
                        : 1.0f,
      .bias_correction = spec_.bias_correction(),
      .step = ++steps_};
  const Op op("adamw", [&] { return OpCost{.bytes = 8.0 * m_.bytes()}; });
  float *values = store_->values().data(), *grads = store_->grads().data();
  const std::vector<AdamW> settings = PieceSettings(all);
  ParallelFor(pieces_.size(), [&](int64_t i) {
    const Piece& p = pieces_[i];
    AdamWStep(settings[i], values + p.value, grads + p.grad, m().data() + p.grad,
        v().data() + p.grad, p.n);
  });
  const auto mix =
      static_cast<float>(1 - std::min<double>(spec_.ema_decay(), (1.0 + steps_) / (10.0 + steps_)));
  ForAverage([&](const float* weights, float* average, int64_t n) {
    for (int64_t j = 0; j < n; ++j) average[j] += mix * (weights[j] - average[j]);
  });
  store_->TrainableChanged();
}

std::vector<AdamW> Optimizer::PieceSettings(const AdamW& all) {
  std::vector<AdamW> settings(pieces_.size(), all);
  std::vector<double> ratios(pieces_.size());
  ParallelFor(pieces_.size(), [&](int64_t i) {
    const Piece& p = pieces_[i];
    settings[i].rate *= p.rate;
    settings[i].decay = p.decay ? spec_.weight_decay() : 0;
    if (spec_.clip_updates())
      ratios[i] = SumUpdateRatios(all, store_->grads().data() + p.grad, v().data() + p.grad, p.n);
  });
  if (!spec_.clip_updates()) return settings;
  std::vector<double> of_params(store_->size());
  for (size_t i = 0; i < pieces_.size(); ++i) of_params[pieces_[i].param] += ratios[i];
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const ParamId id = pieces_[i].param;
    const double rms = std::sqrt(of_params[id] / store_->param(id).size());
    settings[i].rate = static_cast<float>(settings[i].rate / std::max(rms, 1.0));
  }
  return settings;
}

void Optimizer::ForAverage(absl::FunctionRef<void(float*, float*, int64_t)> f) {
  if (average().empty()) return;
  float *weights = store_->values().data(), *averages = average().data();
  ParallelFor(pieces_.size(),
      [&](int64_t i) { f(weights + pieces_[i].value, averages + pieces_[i].grad, pieces_[i].n); });
}

void Optimizer::StartAverage() {
  ForAverage([](float* weights, float* average, int64_t n) { std::copy_n(weights, n, average); });
}

void Optimizer::SwapAverage() {
  ForAverage([](float* weights, float* average, int64_t n) {
    std::swap_ranges(weights, weights + n, average);
  });
  if (!average().empty()) store_->TrainableChanged();
}

}  // namespace cloze
