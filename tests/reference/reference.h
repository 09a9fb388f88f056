// Every op as its equation: forward only, one scalar at a time, for S = double or Dual.
#ifndef CLOZE_TESTS_REFERENCE_REFERENCE_H_
#define CLOZE_TESTS_REFERENCE_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/philox.h"
#include "core/ops/activation.h"
#include "core/ops/adamw.h"
#include "core/ops/attention.h"
#include "core/ops/dropout.h"
#include "core/ops/loss.h"
#include "tests/reference/dual.h"

namespace cloze::reference {

using std::erf;
using std::exp;
using std::log;
using std::max;
using std::sqrt;
using std::tanh;

// A matrix [rows, cols] of scalars.
template <typename S>
struct Table {
  int64_t rows = 0, cols = 0;
  std::vector<S> v;

  Table() = default;
  Table(int64_t rows, int64_t cols) : rows(rows), cols(cols), v(rows * cols) {}
  Table(int64_t rows, int64_t cols, std::vector<S> values)
      : rows(rows), cols(cols), v(std::move(values)) {}
  S& operator()(int64_t r, int64_t c) { return v[r * cols + c]; }
  const S& operator()(int64_t r, int64_t c) const { return v[r * cols + c]; }
};

// y = f(a, b) elementwise.
template <typename S, typename F>
Table<S> Map(const Table<S>& a, const Table<S>& b, F f) {
  Table<S> y(a.rows, a.cols);
  for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = f(a.v[i], b.v[i]);
  return y;
}
template <typename S>
Table<S> operator+(const Table<S>& a, const Table<S>& b) {
  return Map(a, b, [](S x, S y) { return x + y; });
}

// Adds the vector b [cols] to each row.
template <typename S>
Table<S> AddRow(Table<S> x, const std::vector<S>& b) {
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) x(r, c) += b[c];
  }
  return x;
}

// x [n, in], w [out, in]: x w^T.
template <typename S>
Table<S> Linear(const Table<S>& x, const Table<S>& w) {
  Table<S> y(x.rows, w.rows);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t o = 0; o < w.rows; ++o) {
      S sum = 0;
      for (int64_t i = 0; i < x.cols; ++i) sum += x(r, i) * w(o, i);
      y(r, o) = sum;
    }
  }
  return y;
}
template <typename S>
Table<S> Linear(const Table<S>& x, const Table<S>& w, const std::vector<S>& b) {
  return AddRow(Linear(x, w), b);
}

// Returns 0 or 1 / (1 - p) for element c of a row: Philox block 16 (c / 128) + c % 16 of the row
// holds, as its 16-bit number (c % 128) / 16, the bits of element c, which is kept if they are at
// least 65536 p.
inline double DropoutFactor(const DropoutSite& site, int64_t row, int64_t c) {
  if (site.p <= 0) return 1;
  const uint32_t block = static_cast<uint32_t>(c / 128 * 16 + c % 16), number = c % 128 / 16;
  const uint32_t counter = static_cast<uint32_t>(site.rows.position[row]) | block << 16;
  const uint32_t word =
      Philox(site.seed, Purpose::kDropout)(site.rows.example[row], counter, site.site)[number / 2];
  const uint32_t bits = number % 2 == 0 ? word & 0xFFFF : word >> 16;
  return bits >= std::lround(site.p * 65536.0) ? double{1.0f / (1.0f - site.p)} : 0;
}

template <typename S>
Table<S> Dropout(Table<S> x, const DropoutSite& site) {
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) x(r, c) *= S(DropoutFactor(site, r, c));
  }
  return x;
}

template <typename S>
Table<S> Norm(
    const Table<S>& z, const std::vector<S>& gain, const std::vector<S>& bias, double epsilon) {
  Table<S> y(z.rows, z.cols);
  for (int64_t r = 0; r < z.rows; ++r) {
    S mean = 0, variance = 0;
    for (int64_t c = 0; c < z.cols; ++c) mean += z(r, c) / S(z.cols);
    for (int64_t c = 0; c < z.cols; ++c)
      variance += (z(r, c) - mean) * (z(r, c) - mean) / S(z.cols);
    for (int64_t c = 0; c < z.cols; ++c)
      y(r, c) = (z(r, c) - mean) / sqrt(variance + S(epsilon)) * gain[c] + bias[c];
  }
  return y;
}

template <typename S>
S Activate(ActivationKind kind, S u) {
  switch (kind) {
    case ActivationKind::kGelu: return u * S(0.5) * (S(1) + erf(u / S(std::numbers::sqrt2)));
    case ActivationKind::kGeluTanh:
      return S(0.5) * u *
             (S(1) + tanh(S(std::sqrt(2 / std::numbers::pi)) * (u + S(0.044715) * u * u * u)));
    case ActivationKind::kRelu: return max(u, S(0));
    case ActivationKind::kTanh: return tanh(u);
    case ActivationKind::kSilu: return S(0.5) * u * (S(1) + tanh(S(0.5) * u));
  }
  CLOZE_CHECK(false);
}
template <typename S>
Table<S> Activation(ActivationKind kind, Table<S> x) {
  for (S& u : x.v) u = Activate(kind, u);
  return x;
}

// act(a) g for the halves a, g of each row.
template <typename S>
Table<S> Gated(ActivationKind kind, const Table<S>& u) {
  Table<S> y(u.rows, u.cols / 2);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < y.cols; ++c) y(r, c) = Activate(kind, u(r, c)) * u(r, y.cols + c);
  }
  return y;
}

// Turns column m and m + dim / 2 of each group of dim columns from `begin` to `end` by the angle
// position * base^(-2m / dim), which is rounded to f32.
template <typename S>
Table<S> Rotary(Table<S> x, const std::vector<int32_t>& position, int64_t begin, int64_t end,
    int64_t dim, double base) {
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t head = begin; head < end; head += dim) {
      for (int64_t m = 0; m < dim / 2; ++m) {
        const float power = static_cast<float>(std::pow(base, 2.0 * m / dim)),
                    angle = static_cast<float>(position[r]) * (1 / power);
        const S c(std::cos(double{angle})), s(std::sin(double{angle})),
            u = x(r, head + m), v = x(r, head + m + dim / 2);
        x(r, head + m) = u * c - v * s;
        x(r, head + m + dim / 2) = v * c + u * s;
      }
    }
  }
  return x;
}

// x[r] = words[ids[r]] + positions[pos[r]] + types[type[r]].
template <typename S>
Table<S> Embedding(const Table<S>& words, const std::vector<int32_t>& ids,
    const Table<S>& positions, const std::vector<int32_t>& pos, const Table<S>& types,
    const std::vector<int32_t>& type) {
  Table<S> x(ids.size(), words.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c)
      x(r, c) = words(ids[r], c) + positions(pos[r], c) + types(type[r], c);
  }
  return x;
}

// softmax over row r of x, [cols].
template <typename S>
std::vector<S> Softmax(const Table<S>& x, int64_t r) {
  S top = x(r, 0), sum = 0;
  for (int64_t c = 0; c < x.cols; ++c) top = max(top, x(r, c));
  std::vector<S> p(x.cols);
  for (int64_t c = 0; c < x.cols; ++c) sum += p[c] = exp(x(r, c) - top);
  for (S& value : p) value /= sum;
  return p;
}

// Terms of scores by distance: row rows[i - j + rows.size() / 2] of tables [n, heads], [n, heads
// dim], [n, heads dim], each of which may be empty.
template <typename S>
struct Relative {
  std::vector<int32_t> rows;
  Table<S> bias, keys, queries;
  int64_t terms() const { return 1 + (keys.rows > 0) + (queries.rows > 0); }
  int64_t Row(int64_t i, int64_t j) const { return rows[i - j + std::ssize(rows) / 2]; }
};

// softmax(q k^T / sqrt(dim)) of one sequence and head over the visible keys; the rows' columns of
// q, k [rows, dim] as given.
template <typename S>
Table<S> AttentionProbabilities(const Table<S>& qkv, int64_t begin, int64_t end, int64_t q_column,
    int64_t k_column, int64_t dim, const Visibility& visible = {},
    const Relative<S>& relative = {}) {
  const int64_t n = end - begin;
  Table<S> scores(n, n), probs(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      S sum = 0;
      for (int64_t d = 0; d < dim; ++d)
        sum += qkv(begin + i, q_column + d) * qkv(begin + j, k_column + d);
      for (int64_t d = 0; d < dim && relative.keys.rows > 0; ++d)
        sum += qkv(begin + i, q_column + d) * relative.keys(relative.Row(i, j), q_column + d);
      for (int64_t d = 0; d < dim && relative.queries.rows > 0; ++d)
        sum += qkv(begin + j, k_column + d) * relative.queries(relative.Row(i, j), q_column + d);
      sum /= S(std::sqrt(static_cast<double>(relative.terms() * dim)));
      if (relative.bias.rows > 0) sum += relative.bias(relative.Row(i, j), q_column / dim);
      const bool seen = j >= i - visible.before && (j <= i + visible.after || j < visible.prefix);
      scores(i, j) = seen ? sum : S(-1e300);
    }
    const std::vector<S> p = Softmax(scores, i);
    for (int64_t j = 0; j < n; ++j) probs(i, j) = p[j];
  }
  return probs;
}

// Returns the factor of query i and key j of a sequence that begins at row `begin`. Groups of four
// (up to 32 tokens) or two queries (up to 64) share the 128 elements of the first query's row.
inline double ProbabilityFactor(
    const DropoutSite& site, int64_t begin, int64_t tokens, int64_t i, int64_t j) {
  const int64_t share = tokens <= 32 ? 4 : tokens <= 64 ? 2 : 1;
  return DropoutFactor(site, begin + i / share * share, i % share * (128 / share) + j);
}

// out [rows, heads dim] of qkv [rows, 3 heads dim]; rows after the last sequence are 0. probs:
// null, or appended to in the order of AttentionForward. prefixes and causal: of the sequences, or
// empty.
template <typename S>
Table<S> Attention(const Table<S>& qkv, const std::vector<int32_t>& cu_seqlens, int heads,
    DropoutSite site, std::vector<S>* probs = nullptr, Visibility visible = {},
    const Relative<S>& relative = {}, const std::vector<int32_t>& prefixes = {},
    const std::vector<uint8_t>& causal = {}) {
  const int64_t hidden = qkv.cols / 3, dim = hidden / heads;
  const uint32_t number = site.site;
  Table<S> out(qkv.rows, hidden);
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    const int64_t begin = cu_seqlens[s], end = cu_seqlens[s + 1];
    Visibility seen = visible;
    if (!prefixes.empty()) seen.prefix = prefixes[s];
    if (!causal.empty() && causal[s]) seen.after = 0;
    for (int head = 0; head < heads; ++head) {
      site.site = number << 12 | static_cast<uint32_t>(head);
      const Table<S> p = AttentionProbabilities(
          qkv, begin, end, head * dim, hidden + head * dim, dim, seen, relative);
      if (probs != nullptr) probs->insert(probs->end(), p.v.begin(), p.v.end());
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = begin; j < end; ++j) {
          const S weight = p(i - begin, j - begin) *
                           S(ProbabilityFactor(site, begin, end - begin, i - begin, j - begin));
          for (int64_t d = 0; d < dim; ++d)
            out(i, head * dim + d) += weight * qkv(j, 2 * hidden + head * dim + d);
        }
      }
    }
  }
  return out;
}

// out [rows, heads dim] of q [rows, heads dim] and kv [key rows, 2 heads dim], where sequence s of
// the queries sees sequence s of the keys; rows after the last sequence are 0.
template <typename S>
Table<S> CrossAttention(const Table<S>& q, const Table<S>& kv, const std::vector<int32_t>& queries,
    const std::vector<int32_t>& keys, int heads, DropoutSite site) {
  const int64_t hidden = q.cols, dim = hidden / heads;
  const uint32_t number = site.site;
  Table<S> out(q.rows, hidden);
  for (size_t s = 0; s + 1 < queries.size(); ++s) {
    const int64_t begin = queries[s], first = keys[s], n = keys[s + 1] - first;
    for (int64_t i = begin; i < queries[s + 1]; ++i) {
      for (int head = 0; head < heads; ++head) {
        site.site = number << 12 | static_cast<uint32_t>(head);
        Table<S> scores(1, n);
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t d = head * dim; d < (head + 1) * dim; ++d)
            scores(0, j) += q(i, d) * kv(first + j, d);
          scores(0, j) /= S(std::sqrt(static_cast<double>(dim)));
        }
        const std::vector<S> p = Softmax(scores, 0);
        for (int64_t j = 0; j < n; ++j) {
          const S weight = p[j] * S(ProbabilityFactor(site, begin, n, i - begin, j));
          for (int64_t d = head * dim; d < (head + 1) * dim; ++d)
            out(i, d) += weight * kv(first + j, hidden + d);
        }
      }
    }
  }
  return out;
}

// Sum over rows of -log softmax(logits)[target].
template <typename S>
S CrossEntropy(const Table<S>& logits, const std::vector<int32_t>& targets) {
  S loss = 0;
  for (int64_t r = 0; r < logits.rows; ++r) loss -= log(Softmax(logits, r)[targets[r]]);
  return loss;
}

// -log of the probability of the targets in a linear-chain CRF, summed over sequences of these
// lengths.
template <typename S>
S CrfLoss(const Table<S>& logits, const std::vector<int32_t>& lengths,
    const std::vector<int32_t>& targets, const std::vector<S>& start, const Table<S>& between,
    const std::vector<S>& end) {
  S loss = 0;
  int64_t r = 0;
  for (const int32_t length : lengths) {
    std::vector<S> sums;  // over all prefixes, of exp(score)
    S score = 0;
    for (int32_t t = 0; t < length; ++t, ++r) {
      std::vector<S> next(logits.cols, S(0));
      for (int64_t j = 0; j < logits.cols; ++j) {
        for (int64_t i = 0; t > 0 && i < logits.cols; ++i)
          next[j] += sums[i] * exp(between(i, j) + logits(r, j));
        if (t == 0) next[j] = exp(start[j] + logits(r, j));
      }
      sums = next;
      score +=
          logits(r, targets[r]) + (t > 0 ? between(targets[r - 1], targets[r]) : start[targets[r]]);
    }
    if (length == 0) continue;
    S z = 0;
    for (int64_t j = 0; j < logits.cols; ++j) z += sums[j] * exp(end[j]);
    loss += log(z) - score - end[targets[r - 1]];
  }
  return loss;
}

// PyTorch's CrossEntropyLoss(weight, label_smoothing, reduction="sum").
template <typename S>
S WeightedCrossEntropy(const Table<S>& logits, const std::vector<int32_t>& targets,
    const std::vector<float>& weights, double smoothing) {
  S loss = 0;
  for (int64_t r = 0; r < logits.rows; ++r) {
    const std::vector<S> p = Softmax(logits, r);
    const auto weight = [&](int64_t c) { return weights.empty() ? 1.0 : double{weights[c]}; };
    loss -= S((1 - smoothing) * weight(targets[r])) * log(p[targets[r]]);
    for (int64_t c = 0; c < logits.cols; ++c)
      loss -= S(smoothing / logits.cols * weight(c)) * log(p[c]);
  }
  return loss;
}

// PyTorch's BCEWithLogitsLoss(reduction="sum").
template <typename S>
S BinaryCrossEntropy(const Table<S>& logits, const std::vector<float>& values) {
  S loss = 0;
  for (size_t i = 0; i < logits.v.size(); ++i) {
    const S yes = S(1) / (S(1) + exp(-logits.v[i])), no = S(1) / (S(1) + exp(logits.v[i]));
    loss -= S(double{values[i]}) * log(yes) + S(1 - double{values[i]}) * log(no);
  }
  return loss;
}

// PyTorch's MSELoss(reduction="sum").
template <typename S>
S SquaredError(const Table<S>& x, const std::vector<float>& values) {
  S loss = 0;
  for (size_t i = 0; i < x.v.size(); ++i)
    loss += (x.v[i] - S(double{values[i]})) * (x.v[i] - S(double{values[i]}));
  return loss;
}

// Each row of x divided by its length.
template <typename S>
Table<S> Normalize(const Table<S>& x) {
  Table<S> y = x;
  for (int64_t r = 0; r < x.rows; ++r) {
    S squares = 0;
    for (int64_t c = 0; c < x.cols; ++c) squares += x(r, c) * x(r, c);
    for (int64_t c = 0; c < x.cols; ++c) y(r, c) /= sqrt(squares);
  }
  return y;
}

template <typename S>
S RowDot(const Table<S>& x, int64_t r, const Table<S>& y, int64_t s) {
  S sum = 0;
  for (int64_t c = 0; c < x.cols; ++c) sum += x(r, c) * y(s, c);
  return sum;
}

// Sum of -log of the probability of c[targets[i]] for a[i] among the rows of c, but for those of
// its class.
template <typename S>
S InBatchLoss(const Table<S>& a, const Table<S>& c, const std::vector<int32_t>& targets,
    const std::vector<int32_t>& a_classes, const std::vector<int32_t>& c_classes, double scale) {
  S loss = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    S all = 0;
    for (int64_t j = 0; j < c.rows; ++j) {
      const bool same = !a_classes.empty() && a_classes[i] != 0 && a_classes[i] == c_classes[j] &&
                        j != targets[i];
      if (!same) all += exp(S(scale) * (RowDot(a, i, c, j) - RowDot(a, i, c, targets[i])));
    }
    loss += log(all);
  }
  return loss;
}

// Rows 2 i and 2 i + 1 of v are pair i.
template <typename S>
S CosentLoss(const Table<S>& v, const std::vector<float>& scores, double scale) {
  S all = 1;
  const auto dot = [&](size_t i) { return RowDot(v, 2 * i, v, 2 * i + 1); };
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j)
      if (scores[i] < scores[j]) all += exp(S(scale) * (dot(i) - dot(j)));
  }
  return log(all);
}

template <typename S>
S CosineLoss(const Table<S>& v, const std::vector<float>& scores) {
  S loss = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const S error = RowDot(v, 2 * i, v, 2 * i + 1) - S(double{scores[i]});
    loss += error * error;
  }
  return loss;
}

// Rows 3 i, 3 i + 1 and 3 i + 2 of v are triplet i.
template <typename S>
S TripletLoss(const Table<S>& v, double margin) {
  S loss = 0;
  const auto distance = [&](int64_t r, int64_t s) {
    S sum = 0;
    for (int64_t c = 0; c < v.cols; ++c) {
      const S d = v(r, c) - v(s, c) + S(1e-6);
      sum += d * d;
    }
    return sqrt(sum);
  };
  for (int64_t r = 0; r < v.rows; r += 3)
    loss += max(S(0), distance(r, r + 1) - distance(r, r + 2) + S(margin));
  return loss;
}

template <typename S>
Table<S> Gather(const Table<S>& x, const std::vector<int32_t>& rows) {
  Table<S> y(rows.size(), x.cols);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) y(r, c) = x(rows[r], c);
  }
  return y;
}

// Row i is the mean of the rows of x from ends[i - 1] to before ends[i].
template <typename S>
Table<S> Average(const Table<S>& x, const std::vector<int32_t>& ends) {
  Table<S> y(ends.size(), x.cols);
  for (int64_t i = 0, r = 0; i < y.rows; ++i) {
    const S count(double(ends[i] - r));
    for (; r < ends[i]; ++r) {
      for (int64_t c = 0; c < x.cols; ++c) y(i, c) += x(r, c) / count;
    }
  }
  return y;
}

// The same with the largest of each column.
template <typename S>
Table<S> Largest(const Table<S>& x, const std::vector<int32_t>& ends) {
  Table<S> y(ends.size(), x.cols);
  for (int64_t i = 0, r = 0; i < y.rows; ++i) {
    for (int64_t c = 0; c < x.cols; ++c) {
      y(i, c) = x(r, c);
      for (int64_t s = r; s < ends[i]; ++s) y(i, c) = max(y(i, c), x(s, c));
    }
    r = ends[i];
  }
  return y;
}

// One step of AdamW (Loshchilov & Hutter 2019, algorithm 2) on each element.
inline void AdamWStep(const AdamW& a, std::vector<double>* value, const std::vector<double>& grad,
    std::vector<double>* m, std::vector<double>* v) {
  const double rate = a.rate, beta1 = a.beta1, beta2 = a.beta2;
  for (size_t i = 0; i < value->size(); ++i) {
    const double g = grad[i] * a.grad_scale;
    (*m)[i] = beta1 * (*m)[i] + (1 - beta1) * g;
    (*v)[i] = beta2 * (*v)[i] + (1 - beta2) * g * g;
    const double m_hat = a.bias_correction ? (*m)[i] / (1 - std::pow(beta1, a.step)) : (*m)[i];
    const double v_hat = a.bias_correction ? (*v)[i] / (1 - std::pow(beta2, a.step)) : (*v)[i];
    (*value)[i] =
        (*value)[i] - rate * a.decay * (*value)[i] - rate * m_hat / (std::sqrt(v_hat) + a.epsilon);
  }
}

// Jordan et al. 2024 (Muon): four Newton-Schulz steps on x divided by its Frobenius norm.
inline Table<double> Orthogonalized(Table<double> x) {
  double squares = 0;
  for (const double value : x.v) squares += value * value;
  for (double& value : x.v) value /= std::sqrt(squares);
  for (int step = 0; step < 4; ++step) {
    Table<double> next(x.rows, x.cols);
    const Table<double> gram = Linear(x, x), square = Linear(gram, gram);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t c = 0; c < x.cols; ++c) {
        next(r, c) = 3.4445 * x(r, c);
        for (int64_t k = 0; k < x.rows; ++k)
          next(r, c) += (-4.7750 * gram(r, k) + 2.0315 * square(r, k)) * x(k, c);
      }
    }
    x = next;
  }
  return x;
}

// Wortsman et al. 2023, algorithm 2: the sum of g^2 / max(u, epsilon^2), with the u of this step.
inline double SumUpdateRatios(
    const AdamW& a, const std::vector<double>& grad, const std::vector<double>& v) {
  double sum = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    const double g = grad[i] * a.grad_scale, beta2 = a.beta2, epsilon = a.epsilon;
    double u = beta2 * v[i] + (1 - beta2) * g * g;
    if (a.bias_correction) u /= 1 - std::pow(beta2, a.step);
    sum += g * g / std::max(u, epsilon * epsilon);
  }
  return sum;
}

inline double SumSquares(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

}  // namespace cloze::reference

#endif  // CLOZE_TESTS_REFERENCE_REFERENCE_H_
