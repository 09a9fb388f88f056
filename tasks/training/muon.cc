#include "tasks/training/muon.h"

#include <algorithm>
#include <cmath>

#include "core/base/threads.h"
#include "core/ops/rows.h"

namespace cloze {

bool Muon::Takes(const Param& param) {
  return param.operand && param.trainable && param.role != Role::kHeadOutput &&
         param.role != Role::kPooledOutput && param.role != Role::kDiscriminatorOutput;
}

std::vector<Muon::Matrix> Muon::MatricesOf(const Param& param, float rate, float decay) {
  const int64_t count = param.role == Role::kQueryKeyValue ? 3 : 1, rows = param.rows / count;
  std::vector<Matrix> matrices;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * rows * param.cols;
    matrices.push_back({param.offset + at, param.grad_offset + at, rows, param.cols, rate, decay});
  }
  return matrices;
}

void Muon::Step(float rate, const std::vector<Matrix>& matrices, ParamStore* store) {
  while (std::ssize(of_threads_) < Threads()) of_threads_.emplace_back();
  ParallelFor(matrices.size(), [&](int64_t i) {
    const Matrix& m = matrices[i];
    const Mat update = View(store->grads().data() + m.grad, m.rows, m.cols),
              weights = View(store->values().data() + m.value, m.rows, m.cols);
    of_threads_[ThreadIndex()].Run(type_, update);
    const float own = rate * m.rate,
                size = 0.2f * std::sqrt(static_cast<float>(std::max(m.rows, m.cols)));
    Axpby(-own * size, update, 1 - own * m.decay, weights);
    ZeroRowsFrom(update, 0);
  });
}

int64_t Muon::Bytes(const ParamStore& store, DType type) {
  int64_t most = 0;
  for (ParamId id = 0; id < store.size(); ++id) {
    if (!Takes(store.param(id))) continue;
    const Matrix first = MatricesOf(store.param(id), 1, 0).front();
    most = std::max(most, Orthogonalizer::MostBytes(first.rows, first.cols, type));
  }
  return most * Threads();
}

}  // namespace cloze
