#include "tasks/training/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/base/profile.h"
#include "core/base/threads.h"
#include "core/ops/adamw.h"

namespace cloze {
namespace {

constexpr int64_t kPiece = 1 << 17;

}  // namespace

Optimizer::Optimizer(ParamStore* store, const OptimizerSpec& spec)
    : store_(store), spec_(spec), m_(store->grads().size() * sizeof(float)), v_(m_.bytes()) {
  int top = 0;
  for (ParamId id = 0; id < store->size(); ++id) top = std::max(top, store->param(id).layer);
  for (ParamId id = 0; id < store->size(); ++id) {
    const Param& p = store->param(id);
    if (!p.trainable) continue;
    const float rate = std::pow(spec.layer_decay(), static_cast<float>(top - p.layer));
    for (int64_t i = 0; i < p.size(); i += kPiece)
      pieces_.push_back({p.offset + i, p.grad_offset + i, std::min(kPiece, p.size() - i), p.decay,
          p.rate * rate});
  }
  if (spec_.ema_decay() > 0) average_ = LargeMemory(m_.bytes());
  StartAverage();
}

void Optimizer::StartAverage() {
  if (average().empty()) return;
  const float* values = store_->values().data();
  for (const Piece& p : pieces_) std::copy_n(values + p.value, p.n, average().data() + p.grad);
}

double Optimizer::GradNorm() const { return std::sqrt(SumSquares(store_->grads())); }

void Optimizer::Step(double rate, double norm) {
  AdamW a = {.rate = static_cast<float>(rate),
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
  ParallelFor(pieces_.size(), [&](int64_t i) {
    const Piece& p = pieces_[i];
    AdamW mine = a;
    mine.rate *= p.rate;
    mine.decay = p.decay ? spec_.weight_decay() : 0;
    AdamWStep(
        mine, values + p.value, grads + p.grad, m().data() + p.grad, v().data() + p.grad, p.n);
  });
  UpdateAverage();
  store_->TrainableChanged();
}

void Optimizer::UpdateAverage() {
  if (average().empty()) return;
  const auto rate =
      static_cast<float>(1 - std::min<double>(spec_.ema_decay(), (1.0 + steps_) / (10.0 + steps_)));
  const float* values = store_->values().data();
  ParallelFor(pieces_.size(), [&](int64_t i) {
    const float* value = values + pieces_[i].value;
    float* average = this->average().data() + pieces_[i].grad;
    for (int64_t j = 0; j < pieces_[i].n; ++j) average[j] += rate * (value[j] - average[j]);
  });
}

void Optimizer::SwapAverage() {
  if (average().empty()) return;
  float* values = store_->values().data();
  ParallelFor(pieces_.size(), [&](int64_t i) {
    std::swap_ranges(values + pieces_[i].value, values + pieces_[i].value + pieces_[i].n,
        average().data() + pieces_[i].grad);
  });
  store_->TrainableChanged();
}

void Optimizer::Skip() {
  const absl::Span<float> grads = store_->grads();
  std::fill(grads.begin(), grads.end(), 0.0f);
}

}  // namespace cloze
