// Products of int8: the kernels of every instruction set against exact sums, and Matmul.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/activation.h"
#include "tests/core/ops/runnable.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

class Int8Kernels : public testing::TestWithParam<std::tuple<const Kernels*, DType>> {};

// A quantized product and the operands it was computed from.
struct Int8Case {
  Workspace s;
  Mat x, w, y;
  int64_t depth;
  Int8Rows rows;
  int8_t* q;
  float* scale;
  int32_t* sum;

  Int8Case(DType type, const Table<float>& left, const Table<float>& right)
      : s(type), x(s.Put(left)), w(s.Put(right, DType::kF32)), y(s.New(left.rows, right.rows)),
        depth(RoundUp(left.cols, kInt8Depth)) {
    const int64_t cols = RoundUp(right.rows, kInt8Cols);
    rows = {left.rows, depth, s.arena.NewArray<uint8_t>(RoundUp(left.rows, kInt8RowBlock) * depth),
        s.arena.NewArray<float>(left.rows), s.arena.NewArray<int32_t>(left.rows)};
    q = s.arena.NewArray<int8_t>(cols * depth);
    scale = s.arena.NewArray<float>(cols);
    sum = s.arena.NewArray<int32_t>(cols);
  }
  int Weight(int64_t n, int64_t k) const {
    return q[n / kInt8Cols * depth * kInt8Cols + k / 4 * 4 * kInt8Cols + n % kInt8Cols * 4 + k % 4];
  }
  // The value of y before its activation, from the quantized operands.
  double Exact(int64_t r, int64_t n, const Table<float>& bias) const {
    double sum = 0;
    for (int64_t k = 0; k < x.cols; ++k)
      sum += (rows.q[r * depth + k] - rows.zero[r]) * Weight(n, k);
    return sum * rows.scale[r] * scale[n] + bias.v[n];
  }
  void Run(const Kernels& kernels, const float* bias, const ActivationKind* act = nullptr) {
    kernels.pack_int8({w.cols, depth, w.rows, w.stride, w.f32(), q, scale, sum});
    kernels.quantize_rows[x.type]({x.cols, x.stride, x.data, rows});
    kernels.int8_product[y.type]({w.rows, y.stride, rows, q, scale, sum, bias, y.data, act});
  }
};

// Rows with large values of one sign, one of zeros, one of tiny values, the others random.
Table<float> Activations(int64_t rows, int64_t cols) {
  Table<float> x = RandomTable(rows, cols, 1, 1, 0.3f);
  for (int64_t c = 0; c < cols; ++c) {
    x(0, c) = 1000;
    if (rows > 3) x(3, c) = -1000 - c;
    if (rows > 1) x(1, c) = 0;
    if (rows > 2) x(2, c) *= 1e-38f;
  }
  return x;
}

TEST_P(Int8Kernels, AreExactForTheQuantizedOperands) {
  const auto& [kernels, type] = GetParam();
  for (const auto& [n, in, out] :
      {std::tuple{1, 1, 1}, {2, 7, 33}, {13, 70, 45}, {49, 320, 100}, {7, 1100, 40}}) {
    SCOPED_TRACE(absl::StrCat(n, "x", in, "x", out));
    Table<float> weights = RandomTable(out, in, 2), bias = RandomTable(1, out, 3);
    for (int64_t k = 0; k < in; ++k) weights(0, k) = 3;  // sums of pairs exceed 16 bits
    Int8Case c(type, Activations(n, in), weights);
    c.Run(*kernels, bias.v.data());
    const Table<float> x = Workspace::Get(c.x), y = Workspace::Get(c.y);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t k = 0; k < in; ++k) {
        const double q = c.rows.q[r * c.depth + k], step = c.rows.scale[r];
        ASSERT_NEAR(step * (q - c.rows.zero[r]), x(r, k), 0.501 * step + 1e-35) << r << ", " << k;
      }
      for (int64_t j = 0; j < out; ++j) {
        const double expected = c.Exact(r, j, bias);
        ASSERT_NEAR(y(r, j), expected,
            (std::fabs(expected) + std::fabs(bias.v[j])) * (1e-6 + 2 * UnitRoundoff(type)))
            << r << ", " << j;
      }
    }
  }
}

TEST_P(Int8Kernels, AppliesGelu) {
  const auto& [kernels, type] = GetParam();
  const ActivationKind gelu = ActivationKind::kGelu;
  const Table<float> bias = RandomTable(1, 45, 3, 1, 6);
  Int8Case c(type, RandomTable(49, 70, 1), RandomTable(45, 70, 2));
  c.Run(*kernels, bias.v.data(), &gelu);
  const Table<float> y = Workspace::Get(c.y);
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t j = 0; j < y.cols; ++j) {
      const double u = c.Exact(r, j, bias), expected = u * 0.5 * std::erfc(-u * std::sqrt(0.5));
      ASSERT_NEAR(y(r, j), expected,
          (type == DType::kF32 ? 1e-5 : 2e-4) + std::fabs(expected) * UnitRoundoff(type) * 2)
          << u;
    }
  }
}

TEST_P(Int8Kernels, WeightsAreRoundedToNearest) {
  const Table<float> weights = RandomTable(40, 100, 2);
  Int8Case c(std::get<1>(GetParam()), RandomTable(1, 100, 1), weights);
  c.Run(*std::get<0>(GetParam()), nullptr);
  for (int64_t n = 0; n < weights.rows; ++n) {
    int most = 0, sum = 0;
    for (int64_t k = 0; k < weights.cols; ++k) {
      ASSERT_NEAR(c.scale[n] * c.Weight(n, k), weights(n, k), 0.5001f * c.scale[n]);
      most = std::max(most, std::abs(c.Weight(n, k)));
      sum += c.Weight(n, k);
    }
    EXPECT_EQ(most, 127);
    EXPECT_EQ(c.sum[n], sum);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Int8Kernels,
    testing::Combine(testing::ValuesIn(Runnable()), testing::Values(DType::kF32, DType::kBf16)),
    [](const auto& info) {
      return absl::StrCat(
          std::get<0>(info.param)->name, std::get<1>(info.param) == DType::kF32 ? "" : "_as_bf16");
    });

class Int8Matmul : public testing::TestWithParam<DType> {};

TEST_P(Int8Matmul, SameBitsForAnyThreadsAndOtherRows) {
  const int64_t in = 200, out = 130, most = 300;
  const Table<float> x = RandomTable(most, in, 1), w = RandomTable(out, in, 2),
                     bias = RandomTable(1, out, 3);
  Table<float> first;
  for (const int threads : {1, 2, 3, 8}) {
    SetThreads(threads);
    for (const int64_t rows : {most, int64_t{71}, int64_t{5}, int64_t{1}}) {
      Workspace s(GetParam());
      const Mat y = s.New(rows, out);
      s.matmul.Forward(Rows(s.Put(x), 0, rows), {s.Put(w, DType::kF32), 1, true}, bias.v.data(), y);
      const Table<float> result = Workspace::Get(y);
      if (first.v.empty()) first = result;
      for (size_t i = 0; i < result.v.size(); ++i)
        ASSERT_EQ(result.v[i], first.v[i]) << threads << " threads, " << rows << " rows, " << i;
    }
  }
  SetThreads(1);
}

// The MLP's GELU is rougher and, in bf16, the parts round what they pass on, which changes no bits
// with ReLU.
TEST_P(Int8Matmul, AnMlpHasTheBitsOfItsParts) {
  const int64_t hidden = 70, inner = 200;
  const Table<float> up_bias = RandomTable(1, inner, 3), down_bias = RandomTable(1, hidden, 4);
  for (const ActivationKind kind : {ActivationKind::kRelu, ActivationKind::kGelu}) {
    Table<float> first;
    for (const auto& [threads, rows] :
        {std::pair{1, 250}, {1, 0}, {1, 1}, {1, 30}, {3, 250}, {3, 0}, {3, 1}, {3, 30}}) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(kind), ", ", threads, ", ", rows));
      SetThreads(threads);
      Workspace s(GetParam());
      const Weight up = {s.Put(RandomTable(inner, hidden, 5), DType::kF32), 1, true},
                   down = {s.Put(RandomTable(hidden, inner, 6), DType::kF32), 1, true};
      const Mat x = s.Put(RandomTable(rows, hidden, 1)), u = s.New(rows, inner),
                act = s.New(rows, inner), y = s.New(rows, hidden), z = s.New(rows, hidden);
      s.matmul.Forward(x, up, up_bias.v.data(), u);
      ActivationForward(kind, u, act);
      s.matmul.Forward(act, down, down_bias.v.data(), y);
      s.matmul.ForwardMlp(x, {up, up_bias.v.data()}, kind, {down, down_bias.v.data()}, z);
      const Table<float> result = Workspace::Get(z), parts = Workspace::Get(y);
      if (kind == ActivationKind::kRelu) {
        EXPECT_EQ(result.v, parts.v);
      } else if (rows > 0) {
        EXPECT_LE(RelativeError(result, parts), 0.01);
      }
      if (first.v.empty()) first = result;
      for (size_t i = 0; i < result.v.size(); ++i) ASSERT_EQ(result.v[i], first.v[i]) << i;
    }
  }
  SetThreads(1);
}

TEST_P(Int8Matmul, UsesThePinnedValuesWhateverTheVersion) {
  Workspace s(GetParam());
  const Mat x = s.Put(RandomTable(5, 70, 1)), w = s.Put(RandomTable(40, 70, 2), DType::kF32),
            zero = s.Put(Table<float>(40, 70), DType::kF32), y = s.New(5, 40), z = s.New(5, 40);
  s.matmul.Pin({zero, 0, true}, w);
  s.matmul.Forward(x, {w, 1, true}, nullptr, y);
  for (const uint64_t version : {1, 2}) {
    s.matmul.Forward(x, {zero, version, true}, nullptr, z);
    EXPECT_EQ(Workspace::Get(z).v, Workspace::Get(y).v);
  }
}

TEST_P(Int8Matmul, IsNearTheProductOfTheValues) {
  Workspace s(GetParam());
  const Table<float> x = RandomTable(50, 256, 1), w = RandomTable(64, 256, 2);
  const Mat y = s.New(50, 64);
  s.matmul.Forward(s.Put(x), {s.Put(w, DType::kF32), 1, true}, nullptr, y);
  const Table<double> expected = Linear(Widen<double>(x), Widen<double>(w));
  EXPECT_LT(RelativeError(Workspace::Get(y), expected), 0.015);
}

INSTANTIATE_TEST_SUITE_P(All, Int8Matmul, testing::Values(DType::kF32, DType::kBf16),
    [](const auto& info) { return info.param == DType::kF32 ? "f32" : "bf16"; });

}  // namespace
}  // namespace cloze::reference
