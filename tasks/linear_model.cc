#include "tasks/linear_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>

#include "core/base/status.h"
#include "core/base/threads.h"

namespace cloze {
namespace {

using Doubles = std::vector<double>;

constexpr int64_t kRowChunk = 256, kFeatureChunk = 64;
constexpr size_t kMemory = 10;  // pairs of steps and changes of the gradient

double Dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double Largest(const Doubles& v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}

// Turns the scores of a row into the derivative of its loss; returns the loss.
double LossOfRow(LinearLoss loss, const float* targets, absl::Span<double> scores) {
  double sum = 0;
  if (loss == LinearLoss::kSoftmax) {
    const double most = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (const double s : scores) total += std::exp(s - most);
    for (size_t c = 0; c < scores.size(); ++c) {
      const double log_p = scores[c] - most - std::log(total);
      sum -= targets[c] * log_p;
      scores[c] = std::exp(log_p) - targets[c];
    }
    return sum;
  }
  for (size_t c = 0; c < scores.size(); ++c) {
    const double s = scores[c], y = targets[c];
    if (loss == LinearLoss::kSquared) {
      scores[c] = s - y;
      sum += 0.5 * (s - y) * (s - y);
    } else {  // log(1 + e^s) - y s, without overflow
      scores[c] = 1 / (1 + std::exp(-s)) - y;
      sum += std::max(s, 0.0) + std::log1p(std::exp(-std::abs(s))) - y * s;
    }
  }
  return sum;
}

// Value and gradient of a problem. Sums over rows go in fixed chunks; each derivative is summed by
// one thread, over the column of its feature.
class LinearObjective {
 public:
  explicit LinearObjective(const LinearProblem& problem)
      : problem_(problem), starts_(problem.rows.features + 1), rows_(problem.rows.index.size()),
        values_(rows_.size()), derivatives_(problem.rows.rows() * problem.outputs) {
    const SparseRows& rows = problem.rows;
    for (const int32_t feature : rows.index) ++starts_[feature + 1];
    for (int64_t f = 0; f < rows.features; ++f) starts_[f + 1] += starts_[f];
    std::vector<int64_t> at(starts_.begin(), starts_.end() - 1);
    for (int64_t r = 0; r < rows.rows(); ++r) {
      for (int64_t i = rows.begin(r); i < rows.ends[r]; ++i) {
        const int64_t place = at[rows.index[i]]++;
        rows_[place] = r, values_[place] = rows.value[i];
      }
    }
  }

  double Value(const LinearModel& model, Doubles* gradient) {
    const int64_t n = problem_.rows.rows(), k = problem_.outputs;
    Doubles sums((n + kRowChunk - 1) / kRowChunk);
    ParallelChunks(n, kRowChunk, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const Doubles scores = model.Scores(problem_.rows, r);
        double* const row = &derivatives_[r * k];
        std::copy(scores.begin(), scores.end(), row);
        sums[begin / kRowChunk] +=
            LossOfRow(problem_.loss, &problem_.targets[r * k], {row, static_cast<size_t>(k)});
      }
    });
    double value = 0;
    for (const double sum : sums) value += sum;
    const int64_t features = problem_.rows.features;
    ParallelChunks(features, kFeatureChunk, [&](int64_t begin, int64_t end) {
      for (int64_t f = begin; f < end; ++f) Derive(model, f, &(*gradient)[f * k]);
    });
    double* const bias = &(*gradient)[features * k];
    std::fill_n(bias, k, 0.0);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < k; ++c) bias[c] += derivatives_[r * k + c];
    double squares = 0;
    for (int64_t i = 0; i < features * k; ++i) squares += model.weights[i] * model.weights[i];
    return value + 0.5 * problem_.penalty * squares;
  }

 private:
  // Sets the derivatives of a feature's weights, [outputs].
  void Derive(const LinearModel& model, int64_t feature, double* out) const {
    const int64_t k = problem_.outputs;
    for (int64_t c = 0; c < k; ++c) out[c] = problem_.penalty * model.weights[feature * k + c];
    for (int64_t i = starts_[feature]; i < starts_[feature + 1]; ++i)
      for (int64_t c = 0; c < k; ++c) out[c] += values_[i] * derivatives_[rows_[i] * k + c];
  }

  const LinearProblem& problem_;
  std::vector<int64_t> starts_;  // of each feature's column in the next two
  std::vector<int64_t> rows_;
  std::vector<float> values_;
  Doubles derivatives_;  // of the losses by the scores, [rows, outputs]
};

// The last steps, from which L-BFGS estimates the curvature.
class Curvature {
 public:
  void Add(Doubles step, Doubles change) {
    const double product = Dot(step, change);
    if (!(product > 1e-12 * Dot(change, change))) return;
    if (pairs_.size() == kMemory) pairs_.pop_front();
    pairs_.push_back({std::move(step), std::move(change), 1 / product});
  }
  bool empty() const { return pairs_.empty(); }

  // Returns the direction of descent (two-loop recursion, algorithm 7.4).
  Doubles Direction(const Doubles& gradient) const {
    Doubles d = gradient, alphas(pairs_.size());
    const auto add = [&](double factor, const Doubles& v) {
      for (size_t i = 0; i < d.size(); ++i) d[i] += factor * v[i];
    };
    for (size_t i = pairs_.size(); i-- > 0;) {
      alphas[i] = pairs_[i].inverse * Dot(pairs_[i].step, d);
      add(-alphas[i], pairs_[i].change);
    }
    if (!pairs_.empty()) {
      const Pair& last = pairs_.back();
      const double scale = 1 / (last.inverse * Dot(last.change, last.change));
      for (double& x : d) x *= scale;
    }
    for (size_t i = 0; i < pairs_.size(); ++i)
      add(alphas[i] - pairs_[i].inverse * Dot(pairs_[i].change, d), pairs_[i].step);
    for (double& x : d) x = -x;
    return d;
  }

 private:
  struct Pair {
    Doubles step, change;
    double inverse;  // 1 / (step * change)
  };
  std::deque<Pair> pairs_;
};

}  // namespace

void SparseRows::Add(absl::Span<const std::pair<int32_t, float>> row) {
  for (const auto& [feature, x] : row) {
    CLOZE_CHECK(feature >= 0 && feature < features);
    index.push_back(feature), value.push_back(x);
  }
  ends.push_back(static_cast<int64_t>(index.size()));
}

std::vector<double> LinearModel::Scores(const SparseRows& rows, int64_t row) const {
  std::vector<double> scores(weights.end() - outputs, weights.end());
  for (int64_t i = rows.begin(row); i < rows.ends[row]; ++i) {
    const double* const of_feature = &weights[rows.index[i] * outputs];
    for (int64_t c = 0; c < outputs; ++c) scores[c] += of_feature[c] * rows.value[i];
  }
  return scores;
}

LinearModel FitLinear(const LinearProblem& problem, int most_iterations) {
  LinearModel model = {.outputs = problem.outputs};
  model.weights.resize((problem.rows.features + 1) * problem.outputs);
  LinearObjective objective(problem);
  Doubles gradient(model.weights.size());
  double value = objective.Value(model, &gradient);
  const double enough = 1e-4 * Largest(gradient);
  Curvature curvature;
  while (model.iterations < most_iterations && Largest(gradient) > enough) {
    const Doubles direction = curvature.Direction(gradient);
    const double slope = Dot(direction, gradient);
    // The first step has no curvature to scale it.
    double length = curvature.empty() ? 1 / std::max(std::sqrt(-slope), 1e-12) : 1;
    LinearModel next = model;
    Doubles changed(gradient.size());
    bool lower = false;
    for (int tries = 0; tries < 30 && !lower; ++tries, length /= 2) {
      for (size_t i = 0; i < direction.size(); ++i)
        next.weights[i] = model.weights[i] + length * direction[i];
      const double reached = objective.Value(next, &changed);
      lower = reached <= value + 1e-4 * length * slope;
      if (lower) value = reached;
    }
    if (!lower) break;  // at the precision of doubles
    Doubles step(direction.size()), change(direction.size());
    for (size_t i = 0; i < step.size(); ++i) {
      step[i] = next.weights[i] - model.weights[i];
      change[i] = changed[i] - gradient[i];
    }
    curvature.Add(std::move(step), std::move(change));
    gradient.swap(changed);
    model.weights.swap(next.weights);
    ++model.iterations;
  }
  return model;
}

}  // namespace cloze
