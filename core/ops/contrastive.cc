#include "core/ops/contrastive.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/ops/op.h"

namespace cloze {
namespace {

constexpr float kMinLength = 1e-12f, kDistanceEpsilon = 1e-6f;
constexpr float kExcluded = -1e9f;       // score of a row that does not compete
constexpr int64_t kAnchorsAtOnce = 256;  // whose scores are in memory

double Dot(const float* x, const float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{x[i]} * y[i];
  return sum;
}

void AddScaled(double factor, const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] += static_cast<float>(factor * x[i]);
}

std::vector<double> Dots(ConstMat v, absl::Span<const ScoredPair> pairs) {
  std::vector<double> dots;
  for (const ScoredPair& pair : pairs) dots.push_back(Dot(v.f32(pair.a), v.f32(pair.b), v.cols));
  return dots;
}

void DotBackward(ConstMat v, const ScoredPair& pair, double gradient, Mat dv) {
  AddScaled(gradient, v.f32(pair.b), v.cols, dv.f32(pair.a));
  AddScaled(gradient, v.f32(pair.a), v.cols, dv.f32(pair.b));
}

double Distance(const float* x, const float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::pow(double{x[i]} - y[i] + kDistanceEpsilon, 2);
  return std::sqrt(sum);
}

// At distance 0 the gradient is 0.
void DistanceBackward(ConstMat v, int32_t a, int32_t b, double distance, double gradient, Mat dv) {
  for (int64_t i = 0; i < v.cols; ++i) {
    const double difference = double{v.f32(a)[i]} - v.f32(b)[i] + kDistanceEpsilon;
    const auto change = static_cast<float>(gradient * difference / std::max(distance, 1e-30));
    dv.f32(a)[i] += change;
    dv.f32(b)[i] -= change;
  }
}

}  // namespace

void NormalizeForward(ConstMat x, Mat y, float* lengths) {
  CLOZE_CHECK(x.rows == y.rows && x.cols == y.cols);
  ForRows("normalize", {x, y}, x.rows, [&](int64_t r) {
    lengths[r] = static_cast<float>(std::sqrt(Dot(x.f32(r), x.f32(r), x.cols)));
    const double length = std::max(lengths[r], kMinLength);
    for (int64_t c = 0; c < x.cols; ++c) y.f32(r)[c] = static_cast<float>(x.f32(r)[c] / length);
  });
}

void NormalizeBackward(ConstMat y, const float* lengths, ConstMat dy, Mat dx) {
  CLOZE_CHECK(y.rows == dx.rows && y.cols == dx.cols);
  ForRows("normalize backward", {y, dy, dx}, y.rows, [&](int64_t r) {
    const double length = std::max(lengths[r], kMinLength),
                 along = Dot(y.f32(r), dy.f32(r), y.cols);
    for (int64_t c = 0; c < y.cols; ++c)
      dx.f32(r)[c] += static_cast<float>((dy.f32(r)[c] - along * y.f32(r)[c]) / length);
  });
}

LossSum InBatchLoss(ConstMat a, ConstMat c, const Candidates& candidates, float scale,
    float gradient, Arena& arena, Matmul& matmul, Mat da, Mat dc) {
  CLOZE_CHECK(a.cols == c.cols);
  static std::atomic<uint64_t> version = 0;  // not a weight: each call has another content
  const Weight others = {c, ++version};
  const Arena::Mark mark = arena.mark();
  const Mat scores = arena.New(std::min(kAnchorsAtOnce, a.rows), c.rows, DType::kF32);
  LossSum sum;
  for (int64_t begin = 0; begin < a.rows; begin += kAnchorsAtOnce) {
    const int64_t rows = std::min(kAnchorsAtOnce, a.rows - begin);
    const ConstMat some = Rows(a, begin, rows);
    const Mat s = Rows(scores, 0, rows);
    matmul.Forward(some, others, nullptr, s);
    ForRows("in-batch scores", {s, s}, rows, [&](int64_t r) {
      const int32_t target = candidates.targets[begin + r],
                    own_class = candidates.a_classes.empty() ? 0 : candidates.a_classes[begin + r];
      for (int64_t i = 0; i < s.cols; ++i) {
        const bool same = own_class != 0 && i != target && candidates.c_classes[i] == own_class;
        s.f32(r)[i] = same ? kExcluded : s.f32(r)[i] * scale;
      }
    });
    sum += SoftmaxCrossEntropy(s, candidates.targets.data() + begin, gradient * scale, arena);
    if (gradient == 0) continue;
    matmul.BackwardData(s, others, Rows(da, begin, rows), /*accumulate=*/true);
    matmul.BackwardWeight(s, some, dc);
  }
  arena.Rewind(mark);
  return sum;
}

// The sum over pairs of pairs is one over their scores in ascending order.
double CosentLoss(
    ConstMat v, absl::Span<const ScoredPair> pairs, float scale, float gradient, Mat dv) {
  const Op op("cosent loss", [&] { return MemoryCost({v, dv}); });
  if (op.dry()) return 0;
  CLOZE_CHECK(scale <= 200);
  const size_t n = pairs.size();
  const std::vector<double> dots = Dots(v, pairs);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
      [&](size_t i, size_t j) { return pairs[i].score < pairs[j].score; });
  std::vector<double> below(n), above(n);  // of each pair: sums over those of other scores
  const auto add = [&](auto next, double sign, std::vector<double>* sums) {
    double sum = 0, same = 0;
    for (size_t k = 0; k < n; ++k) {
      const size_t i = next(k);
      if (k > 0 && pairs[i].score != pairs[next(k - 1)].score) sum += std::exchange(same, 0);
      (*sums)[i] = sum;
      same += std::exp(sign * scale * dots[i]);
    }
  };
  add([&](size_t k) { return order[k]; }, 1, &below);
  add([&](size_t k) { return order[n - 1 - k]; }, -1, &above);
  double all = 1;
  for (const size_t i : order) all += std::exp(scale * dots[i]) * above[i];
  for (size_t i = 0; gradient != 0 && i < n; ++i) {
    const double higher = std::exp(scale * dots[i]) * above[i],
                 lower = std::exp(-scale * dots[i]) * below[i];
    DotBackward(v, pairs[i], gradient * scale * (higher - lower) / all, dv);
  }
  return std::log(all);
}

double CosineLoss(ConstMat v, absl::Span<const ScoredPair> pairs, float gradient, Mat dv) {
  const Op op("cosine loss", [&] { return MemoryCost({v, dv}); });
  if (op.dry()) return 0;
  const std::vector<double> dots = Dots(v, pairs);
  double sum = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const double error = dots[i] - pairs[i].score;
    sum += error * error;
    if (gradient != 0) DotBackward(v, pairs[i], 2 * error * gradient, dv);
  }
  return sum;
}

double TripletLoss(
    ConstMat v, absl::Span<const Triplet> triplets, float margin, float gradient, Mat dv) {
  const Op op("triplet loss", [&] { return MemoryCost({v, dv}); });
  if (op.dry()) return 0;
  double sum = 0;
  for (const auto& [anchor, positive, negative] : triplets) {
    const double near = Distance(v.f32(anchor), v.f32(positive), v.cols),
                 far = Distance(v.f32(anchor), v.f32(negative), v.cols), loss = near - far + margin;
    if (loss <= 0) continue;
    sum += loss;
    if (gradient == 0) continue;
    DistanceBackward(v, anchor, positive, near, gradient, dv);
    DistanceBackward(v, anchor, negative, far, -double{gradient}, dv);
  }
  return sum;
}

}  // namespace cloze
