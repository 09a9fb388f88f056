// The three products of a linear layer, compared with sums in double.
#include "core/ops/matmul.h"

#include <gtest/gtest.h>
#include <sys/time.h>

#include <atomic>
#include <cmath>
#include <csignal>

#include "core/ops/onednn.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

Table<double> Transposed(const Table<double>& x) {
  Table<double> t(x.cols, x.rows);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) t(c, r) = x(r, c);
  }
  return t;
}

std::vector<double> RowNorms(const Table<double>& x) {
  std::vector<double> norms(x.rows);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.cols; ++c) norms[r] += x(r, c) * x(r, c);
    norms[r] = std::sqrt(norms[r]);
  }
  return norms;
}

// Checks actual = start + a b^T, with tolerances from the norms of the two rows of each element.
void ExpectProduct(const std::string& what, const Table<float>& actual, const Table<double>& a,
    const Table<double>& b, const Table<double>& start, const Path& path) {
  const Table<double> expected = start + Linear(a, b);
  const std::vector<double> rows = RowNorms(a), cols = RowNorms(b);
  ExpectWithin(what, actual.cols, actual.v, expected.v, [&](size_t i) {
    const double product =
        rows[i / actual.cols] * cols[i % actual.cols] / std::sqrt(static_cast<double>(path.terms));
    return Tolerance(product + std::fabs(start.v[i]) + std::fabs(expected.v[i]), path);
  });
}

struct Shape {
  int64_t n, in, out;
};

class MatmulShapes : public testing::TestWithParam<std::tuple<Shape, DType, int>> {
 protected:
  Shape shape() const { return std::get<0>(GetParam()); }
  DType type() const { return std::get<1>(GetParam()); }
  // Returns a matrix, or columns of one that is 8 or 9 wider, so that rows begin at even or odd
  // offsets.
  Mat Place(Workspace& s, const Table<float>& t, DType type) const {
    const int wider = std::get<2>(GetParam());
    if (wider == 0) return s.Put(t, type);
    const int64_t before = 3;
    Table<float> wide(t.rows, t.cols + wider);
    for (float& x : wide.v) x = 1e30f;
    for (int64_t r = 0; r < t.rows; ++r) {
      for (int64_t c = 0; c < t.cols; ++c) wide(r, before + c) = t(r, c);
    }
    return Columns(s.Put(wide, type), before, t.cols);
  }
  Table<float> Random(int64_t rows, int64_t cols, uint32_t seed) const {
    Table<float> t = RandomTable(rows, cols, seed);
    for (float& x : t.v) x = Round(x, type());
    return t;
  }
};

TEST_P(MatmulShapes, Forward) {
  const auto [n, in, out] = shape();
  Workspace s(type());
  const Table<float> x = Random(n, in, 1), w = Random(out, in, 2), bias = RandomTable(1, out, 3);
  const Mat wm = s.Put(w, DType::kF32);
  for (const DType to : {type(), DType::kF32}) {
    for (const bool with_bias : {false, true}) {
      const Mat y = Place(s, Table<float>(n, out), to);
      s.matmul.Forward(Place(s, x, type()), {wm, 1}, with_bias ? bias.v.data() : nullptr, y);
      Table<double> start(n, out);
      if (with_bias) start = AddRow(start, Widen<double>(bias).v);
      ExpectProduct(absl::StrCat("y, bias ", with_bias), Workspace::Get(y), Widen<double>(x),
          Widen<double>(w), start, {in, 1, to});
    }
  }
}

TEST_P(MatmulShapes, BackwardData) {
  const auto [n, in, out] = shape();
  Workspace s(type());
  const Table<float> dy = Random(n, out, 1), w = Random(out, in, 2), old = Random(n, in, 3);
  const Mat wm = s.Put(w, DType::kF32);
  for (const bool accumulate : {false, true}) {
    const Mat dx = Place(s, old, type());
    s.matmul.BackwardData(Place(s, dy, type()), {wm, 1}, dx, accumulate);
    ExpectProduct(absl::StrCat("dx, accumulate ", accumulate), Workspace::Get(dx),
        Widen<double>(dy), Transposed(Widen<double>(w)),
        accumulate ? Widen<double>(old) : Table<double>(n, in), {out, 1, type()});
  }
}

TEST_P(MatmulShapes, BackwardWeight) {
  const auto [n, in, out] = shape();
  Workspace s(type());
  const Table<float> dy = Random(n, out, 1), x = Random(n, in, 2), old = RandomTable(out, in, 3);
  const Mat dw = s.Put(old, DType::kF32);
  s.matmul.BackwardWeight(Place(s, dy, type()), Place(s, x, type()), dw);
  ExpectProduct("dw", Workspace::Get(dw), Transposed(Widen<double>(dy)),
      Transposed(Widen<double>(x)), Widen<double>(old), {n, 1, DType::kF32});
}

// Columns outside a view stay unchanged.
TEST_P(MatmulShapes, WritesOnlyItsColumns) {
  const auto [n, in, out] = shape();
  Workspace s(type());
  const Mat whole = s.arena.NewZero(n, out + 9, type()), y = Columns(whole, 4, out);
  s.matmul.Forward(
      s.Put(Random(n, in, 1)), {s.Put(Random(out, in, 2), DType::kF32), 1}, nullptr, y);
  const Table<float> t = Workspace::Get(whole);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < t.cols; ++c) {
      if (c >= 4 && c < 4 + out) continue;
      ASSERT_EQ(t(r, c), 0) << r << ", " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MatmulShapes,
    testing::Combine(
        testing::Values(Shape{1, 1, 1}, Shape{1, 5, 3}, Shape{7, 1, 2}, Shape{13, 17, 1},
            Shape{8, 24, 40}, Shape{33, 65, 31}, Shape{64, 64, 192}, Shape{129, 100, 257},
            Shape{200, 40, 1031}, Shape{1100, 24, 300}, Shape{5, 32, 64}, Shape{16, 64, 32},
            Shape{20, 96, 320}, Shape{41, 544, 288}, Shape{300, 1056, 96}, Shape{150, 96, 1056}),
        testing::Values(DType::kF32, DType::kBf16), testing::Values(0, 8, 9)),
    [](const auto& info) {
      const Shape& s = std::get<0>(info.param);
      const int wider = std::get<2>(info.param);
      return absl::StrCat(s.n, "x", s.in, "x", s.out,
          std::get<1>(info.param) == DType::kF32 ? "" : "_bf16",
          wider > 0 ? absl::StrCat("_strided", wider) : "");
    });

// oneDNN 3 computes wrong products for other strides of vectors. MakePrimitive checks all operands,
// so the strided shapes above show with any version that none of them is ambiguous.
TEST(MatmulDescriptors, VectorsHaveTheStridesOfRowMajorMatrices) {
  const float data[1] = {};
  for (const int64_t rows : {1, 2, 7}) {
    for (const int64_t cols : {1, 2, 7}) {
      for (const int64_t gap : {0, 8, 9}) {
        const ConstMat m = {data, rows, cols, cols + gap, DType::kF32};
        const bool scattered = cols == 1 && rows > 1 && gap > 0;
        for (const bool transposed : {false, true}) {
          const dnnl::memory::desc desc = transposed ? DescribeTransposed(m) : Describe(m);
          const dnnl::memory::dims strides = StridesOf(desc);
          SCOPED_TRACE(absl::StrCat(rows, "x", cols, ", gap ", gap, ", transposed ", transposed));
          EXPECT_EQ(DimsOf(desc),
              transposed ? dnnl::memory::dims({cols, rows}) : dnnl::memory::dims({rows, cols}));
          EXPECT_EQ(Unambiguous(desc), !scattered);
          if (scattered || (rows > 1 && cols > 1)) {
            EXPECT_EQ(strides,
                transposed ? dnnl::memory::dims({1, m.stride}) : dnnl::memory::dims({m.stride, 1}));
          } else {
            const int64_t width = transposed ? rows : cols;
            const bool row = !transposed && rows == 1 && cols > 1;
            EXPECT_EQ(strides, dnnl::memory::dims({row ? m.stride : width, 1}));
          }
        }
      }
    }
  }
}

TEST(MatmulDescriptorsDeathTest, RefusesVectorsWithGaps) {
  const float data[1] = {};
  const ConstMat dense = {data, 7, 7, 7, DType::kF32}, column = {data, 7, 1, 9, DType::kF32};
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const Operands operands = {
      Describe(dense), Describe(column), {}, Describe(7, 1, DType::kF32, 1, 1), false};
  EXPECT_DEATH(MakePrimitive(engine, operands), "Unambiguous");
}

TEST(Matmul, PacksAgainWhenTheVersionChanges) {
  Workspace s(DType::kF32);
  const Mat x = s.Put(Table<float>(1, 2, {1, 10})), w = s.Put(Table<float>(1, 2, {1, 2})),
            y = s.New(1, 1);
  s.matmul.Forward(x, {w, 1}, nullptr, y);
  EXPECT_EQ(y.f32()[0], 21);
  const int64_t bytes = s.matmul.packed_bytes();
  EXPECT_GT(bytes, 0);
  w.f32()[0] = 5;
  s.matmul.Forward(x, {w, 2}, nullptr, y);
  EXPECT_EQ(y.f32()[0], 25);
  s.matmul.BackwardData(s.Put(Table<float>(1, 1, {1})), {w, 2}, x);
  EXPECT_EQ(x.f32()[0], 5);
  w.f32()[1] = 7;
  s.matmul.BackwardData(s.Put(Table<float>(1, 1, {1})), {w, 3}, x);
  EXPECT_EQ(x.f32()[1], 7);
  EXPECT_GE(s.matmul.packed_bytes(), bytes);
}

// Also if a product is split by columns, whose packed parts must stay separate.
TEST(Matmul, WeightsOfOneShapeCanSharePackedCopies) {
  const Table<float> x = RandomTable(20, 300, 1), one = RandomTable(500, 300, 2),
                     other = RandomTable(500, 300, 3);
  Tables<float> results[2];
  int64_t bytes[2];
  for (const bool share : {false, true}) {
    Workspace s(DType::kF32);
    s.matmul.SharePacked(share);
    const Mat xm = s.Put(x), a = s.Put(one), b = s.Put(other);
    for (const Mat& w : {a, b, a}) {
      const Mat y = s.New(20, 500), dx = s.New(20, 300);
      s.matmul.Forward(xm, {w, 1}, nullptr, y);
      s.matmul.BackwardData(y, {w, 1}, dx);
      results[share].push_back(Workspace::Get(y));
      results[share].push_back(Workspace::Get(dx));
    }
    bytes[share] = s.matmul.packed_bytes();
  }
  ExpectSameBits("shared", results[0], results[1]);
  EXPECT_EQ(2 * bytes[1], bytes[0]);
}

TEST(Matmul, NoRowsIsNoWork) {
  Workspace s(DType::kF32);
  const Mat w = s.Put(RandomTable(3, 2, 1)), dw = s.arena.NewZero(3, 2, DType::kF32),
            x = s.New(0, 2), y = s.New(0, 3);
  s.matmul.Forward(x, {w, 1}, nullptr, y);
  s.matmul.BackwardData(y, {w, 1}, x);
  s.matmul.BackwardWeight(y, x, dw);
  EXPECT_EQ(MaxNorm(Workspace::Get(dw).v), 0);
}

// Some kernels of oneDNN keep data where the kernel of the system writes the frame of a signal.
TEST(Matmul, SignalsDoNotDisturbProducts) {
  const Table<float> w = RandomTable(2048, 128, 1), x = RandomTable(300, 128, 2),
                     dy = RandomTable(300, 2048, 3);
  const auto products = [&] {
    Workspace s(DType::kF32);
    const Mat weight = s.Put(w), dw = s.Put(Table<float>(2048, 128)), dx = s.New(300, 128),
              y = s.New(300, 2048);
    s.matmul.Forward(s.Put(x), {weight, 1}, nullptr, y);
    s.matmul.BackwardData(s.Put(dy), {weight, 1}, dx);
    s.matmul.BackwardWeight(s.Put(dy), s.Put(x), dw);
    std::vector<float> all = Workspace::Get(y).v;
    for (const Mat& m : {dx, dw}) {
      const std::vector<float> more = Workspace::Get(m).v;
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  };
  const std::vector<float> expected = products();
  static std::atomic<int> signals;
  signals = 0;
  const auto before = std::signal(SIGALRM, [](int) { ++signals; });
  const itimerval often = {{0, 100}, {0, 100}}, never = {};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(products(), expected) << i;
  ::setitimer(ITIMER_REAL, &never, nullptr);
  std::signal(SIGALRM, before);
  EXPECT_GT(signals, 10);
}

// The number of threads may change between products of one Matmul.
TEST(Matmul, FollowsTheNumberOfThreads) {
  const Table<float> x = RandomTable(200, 300, 1), w = RandomTable(100, 300, 2),
                     dy = RandomTable(200, 100, 3);
  Workspace s(DType::kF32);
  const Mat wm = s.Put(w), xm = s.Put(x), dym = s.Put(dy);
  Tables<float> first;
  for (const int threads : {2, 8, 1, 3}) {
    SetThreads(threads);
    const Mat y = s.New(200, 100), dx = s.New(200, 300),
              dw = s.arena.NewZero(100, 300, DType::kF32);
    s.matmul.Forward(xm, {wm, 1}, nullptr, y);
    s.matmul.BackwardData(dym, {wm, 1}, dx);
    s.matmul.BackwardWeight(dym, xm, dw);
    const Tables<float> results = {Workspace::Get(y), Workspace::Get(dx), Workspace::Get(dw)};
    if (first.empty()) first = results;
    ExpectSameBits(absl::StrCat(threads, " threads, y dx dw"), first, results);
  }
  SetThreads(1);
}

// All three products have the same bits for any number of threads: BERT's shapes, long sums, narrow
// results.
class MatmulThreads : public testing::TestWithParam<std::tuple<Shape, DType>> {};

TEST_P(MatmulThreads, SameBits) {
  const auto& [shape, type] = GetParam();
  const auto [rows, in, out] = shape;
  const Table<float> x = RandomTable(rows, in, 1), w = RandomTable(out, in, 2),
                     dy = RandomTable(rows, out, 3), bias = RandomTable(1, out, 4);
  Tables<float> first;
  for (const int threads : {1, 2, 3, 4, 8}) {
    SetThreads(threads);
    Workspace s(type);
    const Mat xm = s.Put(x), wm = s.Put(w, DType::kF32), dym = s.Put(dy), y = s.New(rows, out),
              dx = s.New(rows, in);
    const Mat dw = s.arena.NewZero(out, in, DType::kF32);
    s.matmul.Forward(xm, {wm, 1}, bias.v.data(), y);
    s.matmul.BackwardData(dym, {wm, 1}, dx);
    s.matmul.BackwardWeight(dym, xm, dw);
    const Tables<float> results = {Workspace::Get(y), Workspace::Get(dx), Workspace::Get(dw)};
    if (first.empty()) first = results;
    ExpectSameBits(absl::StrCat(threads, " threads, y dx dw"), first, results);
  }
  SetThreads(1);
}

INSTANTIATE_TEST_SUITE_P(Bert, MatmulThreads,
    testing::Combine(
        testing::Values(Shape{512, 256, 256}, Shape{512, 256, 768}, Shape{512, 768, 768},
            Shape{512, 768, 3072}, Shape{512, 3072, 768}, Shape{512, 768, 256},
            Shape{4096, 256, 256}, Shape{4096, 128, 3}, Shape{64, 256, 8192}, Shape{72, 64, 1031}),
        testing::Values(DType::kF32, DType::kBf16)),
    [](const auto& info) {
      const Shape& s = std::get<0>(info.param);
      return absl::StrCat(
          s.n, "x", s.in, "x", s.out, std::get<1>(info.param) == DType::kF32 ? "" : "_bf16");
    });

}  // namespace
}  // namespace cloze::reference
