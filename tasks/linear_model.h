// Linear models of sparse rows, fitted to the optimum: softmax and logistic regression, and least
// squares, all with an L2 penalty. The same bits for any number of threads.
#ifndef CLOZE_TASKS_LINEAR_MODEL_H_
#define CLOZE_TASKS_LINEAR_MODEL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace cloze {

// A sparse matrix [rows, features], row by row; dense rows name every feature.
struct SparseRows {
  int64_t features = 0;
  std::vector<int64_t> ends = {};  // of each row, in the next two
  std::vector<int32_t> index = {};
  std::vector<float> value = {};

  int64_t rows() const { return static_cast<int64_t>(ends.size()); }
  int64_t begin(int64_t row) const { return row == 0 ? 0 : ends[row - 1]; }
  // Adds a row; the features differ and are below `features`.
  void Add(absl::Span<const std::pair<int32_t, float>> row);
};

enum class LinearLoss {
  kSoftmax,   // cross entropy; the target of a row is 1 at its class, else 0
  kLogistic,  // binary cross entropy of each output; targets are 0 or 1
  kSquared,   // half the squared error; targets are numbers
};

struct LinearProblem {
  const SparseRows& rows;
  absl::Span<const float> targets;  // [rows, outputs]
  int64_t outputs = 1;
  LinearLoss loss = LinearLoss::kSoftmax;
  double penalty = 1;  // objective: sum of the losses + penalty / 2 * sum of squared weights
};

struct LinearModel {
  int64_t outputs = 1;
  // [features + 1, outputs]; the last row is the bias, which has no penalty.
  std::vector<double> weights = {};
  int iterations = 0;

  // Returns the scores (logits) of a row of `rows`, [outputs].
  std::vector<double> Scores(const SparseRows& rows, int64_t row) const;
};

// Minimizes the objective by L-BFGS (Nocedal & Wright 2006, algorithm 7.5) from zero weights, until
// the largest derivative is below 1e-4 of the first one or `most_iterations` are done.
LinearModel FitLinear(const LinearProblem& problem, int most_iterations = 200);

}  // namespace cloze

#endif  // CLOZE_TASKS_LINEAR_MODEL_H_
