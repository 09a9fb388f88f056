// The weights that Muon updates in place of AdamW, and their update.
#ifndef CLOZE_TASKS_TRAINING_MUON_H_
#define CLOZE_TASKS_TRAINING_MUON_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "core/ops/orthogonalize.h"
#include "core/tensor/param_store.h"

namespace cloze {

// Muon (Jordan et al. 2024) moves a matrix w [rows, cols] along the orthogonal factor O of the
// moving average of its gradients, looked up one step ahead (Nesterov):
//   m = beta m + (1 - beta) g;  O = Orthogonalize(beta m + (1 - beta) g)
//   w -= rate (decay w + 0.2 sqrt(max(rows, cols)) O)
// The factor gives updates a root mean square of about 0.2, as AdamW's have (Liu et al. 2025,
// "Muon is scalable for LLM training", equation 4).
class Muon {
 public:
  // A matrix of a parameter: all of it, or query, key or value of one that holds the three.
  struct Matrix {
    int64_t value, grad, rows, cols;  // places in values() and grads()
    float rate, decay;                // rate multiplies the learning rate
  };

  // True if Muon can update the parameter: the weight of a linear layer, but not the output layer
  // of a head.
  static bool Takes(const Param& param);
  // Returns the matrices of a parameter that it takes.
  static std::vector<Matrix> MatricesOf(const Param& param, float rate, float decay);

  // `type`: of the operands of products.
  explicit Muon(DType type) : type_(type) {}

  // Takes the step of each matrix. Its gradients hold beta m + (1 - beta) g, and become zero.
  void Step(float rate, const std::vector<Matrix>& matrices, ParamStore* store);

  // Returns an upper bound of the bytes that Step keeps, for the parameters of `store`.
  static int64_t Bytes(const ParamStore& store, DType type);

 private:
  DType type_;
  std::deque<Orthogonalizer> of_threads_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_MUON_H_
