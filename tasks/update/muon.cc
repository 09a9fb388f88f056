// Muon (Jordan et al. 2024) moves a matrix w [rows, cols] along the orthogonal factor O of the
// moving average of its gradients, looked up one step ahead (Nesterov):
//   m = beta m + (1 - beta) g;  O = Orthogonalize(beta m + (1 - beta) g)
//   w -= rate (decay w + 0.2 sqrt(max(rows, cols)) O)
// The factor gives updates a root mean square of about 0.2, as AdamW's have (Liu et al. 2025,
// "Muon is scalable for LLM training", equation 4).
#include <algorithm>
#include <cmath>
#include <deque>

#include "core/base/threads.h"
#include "core/ops/orthogonalize.h"
#include "core/ops/profile.h"
#include "core/ops/rows.h"
#include "tasks/update/update_rule.h"

namespace cloze {
namespace {

class MuonRule : public UpdateRule {
 public:
  MuonRule(const OptimizerSpec& spec, DType product) : spec_(spec), product_(product) {}

  const char* name() const override { return "Muon"; }
  // Takes the weights of linear layers; the output layer of a head is not one.
  bool Takes(const Param& param) const override { return param.matmul_only; }
  int states() const override { return 1; }
  bool needs_whole() const override { return true; }

  // m = beta m + (1 - beta) g, then g = beta m + (1 - beta) g.
  void Update(const UpdateStep& step, const ParamUpdate&, double /*sum*/,
      const ParamPart& part) const override {
    const float beta = spec_.beta1(), share = (1 - beta) * step.grad_scale;
    const Mat g = View(part.grad, 1, part.n), m = View(part.state[0], 1, part.n);
    Axpby(share, g, beta, m);
    Axpby(beta, m, share, g);
  }

  void UpdateWhole(
      const UpdateStep& step, const std::vector<ParamUpdate>& updates, ParamStore* store) override {
    std::vector<std::pair<const ParamUpdate*, int64_t>>
        matrices;  // and the number in its parameter
    for (const ParamUpdate& update : updates)
      for (int64_t i = 0; i < update.param->matrices; ++i) matrices.emplace_back(&update, i);
    const Op op("muon", [&] { return OpCost{.bytes = 16.0 * store->grads().size()}; });
    while (std::ssize(of_threads_) < Threads()) of_threads_.emplace_back();
    ParallelFor(matrices.size(), [&](int64_t i) {
      const auto& [update, number] = matrices[i];
      const Param& p = *update->param;
      const int64_t rows = p.rows / p.matrices, at = number * rows * p.cols;
      const Mat direction = View(store->grads().data() + p.grad_offset + at, rows, p.cols),
                weights = View(store->values().data() + p.offset + at, rows, p.cols);
      of_threads_[ThreadIndex()].Run(product_, direction);
      const float rate = step.rate * (update->rate * spec_.muon_rate()),
                  size = 0.2f * std::sqrt(static_cast<float>(std::max(rows, p.cols)));
      Axpby(-rate * size, direction, 1 - rate * update->decay, weights);
      ZeroRowsFrom(direction, 0);
    });
  }

  int64_t ScratchBytes(const ParamStore& store) const override {
    int64_t most = 0;
    for (ParamId id = 0; id < store.size(); ++id) {
      const Param& p = store.param(id);
      if (p.trainable && Takes(p))
        most = std::max(most, Orthogonalizer::MostBytes(p.rows / p.matrices, p.cols, product_));
    }
    return most * Threads();
  }

 private:
  OptimizerSpec spec_;
  DType product_;
  std::deque<Orthogonalizer> of_threads_;
};

}  // namespace

std::unique_ptr<UpdateRule> NewMuon(const OptimizerSpec& spec, DType product) {
  if (spec.muon_rate() <= 0) return nullptr;
  return std::make_unique<MuonRule>(spec, product);
}

}  // namespace cloze
