#include "core/ops/crf.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/rows.h"

namespace cloze {
namespace {

// Number of partial sums of gradients, each over equally many sequences.
constexpr int64_t kParts = 16;
constexpr double kNever = -std::numeric_limits<double>::infinity();

// Returns log sum exp of term(0) ... term(n - 1).
template <typename Term>
double LogSum(int64_t n, Term term) {
  double max = term(0), sum = 0;
  for (int64_t i = 1; i < n; ++i) max = std::max(max, term(i));
  if (max == kNever) return kNever;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(term(i) - max);
  return max + std::log(sum);
}

// The forward-backward algorithm in log space and double, over one sequence of logits [n, L] f32, n
// > 0. alpha(t, j) is the log of the sum over all prefixes that end with j at t, beta(t, j) of that
// over all suffixes that follow it.
class Lattice {
 public:
  Lattice(ConstMat logits, const Crf& crf)
      : e_(logits), crf_(crf), n_(logits.rows), labels_(logits.cols), alpha_(n_ * labels_) {
    for (int64_t j = 0; j < labels_; ++j) alpha(0, j) = double{crf.start[j]} + e_.f32(0)[j];
    for (int64_t t = 1; t < n_; ++t) {
      for (int64_t j = 0; j < labels_; ++j) {
        const auto term = [&](int64_t i) { return alpha(t - 1, i) + between(i, j); };
        alpha(t, j) = LogSum(labels_, term) + e_.f32(t)[j];
      }
    }
    log_z_ = LogSum(labels_, [&](int64_t j) { return alpha(n_ - 1, j) + crf.end[j]; });
  }

  double log_z() const { return log_z_; }

  double Score(const int32_t* y) const {
    double score = double{crf_.start[y[0]]} + crf_.end[y[n_ - 1]];
    for (int64_t t = 0; t < n_; ++t)
      score += e_.f32(t)[y[t]] + (t > 0 ? between(y[t - 1], y[t]) : 0);
    return score;
  }

  void Backward() {
    beta_.resize(n_ * labels_);
    for (int64_t i = 0; i < labels_; ++i) beta(n_ - 1, i) = crf_.end[i];
    for (int64_t t = n_ - 2; t >= 0; --t) {
      for (int64_t i = 0; i < labels_; ++i) {
        const auto term = [&](int64_t j) {
          return between(i, j) + e_.f32(t + 1)[j] + beta(t + 1, j);
        };
        beta(t, i) = LogSum(labels_, term);
      }
    }
  }
  // After Backward(): returns the probability of j at t, or of i at t - 1 and j at t.
  double Probability(int64_t t, int64_t j) { return std::exp(alpha(t, j) + beta(t, j) - log_z_); }
  double Probability(int64_t t, int64_t i, int64_t j) {
    return std::exp(alpha(t - 1, i) + between(i, j) + e_.f32(t)[j] + beta(t, j) - log_z_);
  }

 private:
  double& alpha(int64_t t, int64_t j) { return alpha_[t * labels_ + j]; }
  double& beta(int64_t t, int64_t j) { return beta_[t * labels_ + j]; }
  double between(int64_t i, int64_t j) const { return crf_.between[i * labels_ + j]; }

  ConstMat e_;
  const Crf& crf_;
  int64_t n_, labels_;
  std::vector<double> alpha_, beta_;  // [n, L]
  double log_z_;
};

// Accumulates the gradients of one sequence in `sum`, in the order start, between, end.
void AddGradients(Lattice& lattice, const int32_t* y, Mat logits, double scale, double* sum) {
  const int64_t n = logits.rows, labels = logits.cols;
  double *start = sum, *between = start + labels, *end = between + labels * labels;
  lattice.Backward();
  for (int64_t t = 1; t < n; ++t) {
    for (int64_t i = 0; i < labels; ++i) {
      for (int64_t j = 0; j < labels; ++j)
        between[i * labels + j] += scale * lattice.Probability(t, i, j);
    }
    between[y[t - 1] * labels + y[t]] -= scale;
  }
  // The probabilities of row t read no logits of other rows, so each row can be overwritten.
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t j = 0; j < labels; ++j) {
      const double d = scale * (lattice.Probability(t, j) - (y[t] == j));
      if (t == 0) start[j] += d;
      if (t == n - 1) end[j] += d;
      logits.f32(t)[j] = static_cast<float>(d);
    }
  }
}

// grad[i] += sum over the parts of part[i]; does nothing if grad is null.
void AddParts(const double* parts, int64_t count, int64_t stride, float* grad, int64_t n) {
  for (int64_t i = 0; grad != nullptr && i < n; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < count; ++p) sum += parts[p * stride + i];
    grad[i] += static_cast<float>(sum);
  }
}

}  // namespace

LossSum CrfLoss(Mat logits, absl::Span<const int32_t> cu_rows, const int32_t* targets,
    const Crf& crf, float gradient_scale, const CrfGrads& grads, Arena& arena) {
  const Arena::Mark mark = arena.mark();
  const int64_t labels = logits.cols, sequences = static_cast<int64_t>(cu_rows.size()) - 1,
                size = labels * (labels + 2);
  Mat f32 = arena.New(logits.rows, labels, DType::kF32);
  LossSum* sums = arena.NewArray<LossSum>(kParts);
  double* gradients = arena.NewArray<double>(gradient_scale == 0 ? 0 : kParts * size);
  const Op op("crf", [&] { return MemoryCost({logits, logits}); });
  if (op.dry()) return arena.Rewind(mark), LossSum();
  Convert(logits, f32);
  const int64_t each = std::max<int64_t>(CeilDiv(sequences, kParts), 1),
                parts = CeilDiv(sequences, each);
  ParallelFor(parts, [&](int64_t p) {
    double* sum = gradients + p * size;
    if (gradient_scale != 0) std::fill(sum, sum + size, 0.0);
    sums[p] = LossSum();
    for (int64_t s = p * each; s < std::min(sequences, (p + 1) * each); ++s) {
      const int64_t begin = cu_rows[s], n = cu_rows[s + 1] - begin;
      if (n == 0) continue;
      const Mat e = Rows(f32, begin, n);
      Lattice lattice(e, crf);
      sums[p].loss += lattice.log_z() - lattice.Score(targets + begin);
      for (int64_t t = 0; t < n; ++t)
        sums[p].correct +=
            std::max_element(e.f32(t), e.f32(t) + labels) - e.f32(t) == targets[begin + t];
      if (gradient_scale != 0) AddGradients(lattice, targets + begin, e, gradient_scale, sum);
    }
  });
  LossSum all;
  for (int64_t p = 0; p < parts; ++p) all += sums[p];
  if (gradient_scale != 0) {
    AddParts(gradients, parts, size, grads.start, labels);
    AddParts(gradients + labels, parts, size, grads.between, labels * labels);
    AddParts(gradients + labels + labels * labels, parts, size, grads.end, labels);
    Convert(f32, logits);
  }
  arena.Rewind(mark);
  return all;
}

void CrfMarginals(ConstMat logits, const Crf& crf, Mat p) {
  if (logits.rows == 0) return;
  Lattice lattice(logits, crf);
  lattice.Backward();
  for (int64_t t = 0; t < logits.rows; ++t) {
    for (int64_t j = 0; j < logits.cols; ++j)
      p.f32(t)[j] = static_cast<float>(lattice.Probability(t, j));
  }
}

bool Viterbi(ConstMat logits, const Crf& crf, int* best) {
  const int64_t n = logits.rows, labels = logits.cols;
  std::vector<double> score(labels), last;
  std::vector<int32_t> from(n * labels);
  for (int64_t j = 0; j < labels; ++j) score[j] = double{crf.start[j]} + logits.f32(0)[j];
  for (int64_t t = 1; t < n; ++t) {
    last = score;
    for (int64_t j = 0; j < labels; ++j) {
      double most = kNever;
      for (int64_t i = 0; i < labels; ++i) {
        const double s = last[i] + crf.between[i * labels + j];
        if (s > most) most = s, from[t * labels + j] = static_cast<int32_t>(i);
      }
      score[j] = most + logits.f32(t)[j];
    }
  }
  double most = kNever;
  best[n - 1] = 0;
  for (int64_t j = 0; j < labels; ++j) {
    if (score[j] + crf.end[j] > most)
      most = score[j] + crf.end[j], best[n - 1] = static_cast<int>(j);
  }
  for (int64_t t = n - 1; t > 0; --t) best[t - 1] = from[t * labels + best[t]];
  return most > kNever;
}

}  // namespace cloze
