// The kernels of every instruction set of this CPU, called directly on unaligned memory that ends
// with the last element.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/core/ops/runnable.h"
#include "tests/reference/conformance.h"
#include "tests/sanitized.h"

namespace cloze {

namespace reference {
namespace {

// Elements at an address aligned to the element only, between canaries that the destructor checks.
class Guarded {
 public:
  Guarded(const Table<float>& t, DType type) : rows_(t.rows), cols_(t.cols), type_(type) {
    bytes_.assign(kGuard + SizeOf(type) + t.v.size() * SizeOf(type) + kGuard, kCanary);
    for (size_t i = 0; i < t.v.size(); ++i) {
      if (type == DType::kF32)
        static_cast<float*>(data())[i] = t.v[i];
      else
        static_cast<Bf16*>(data())[i] = FloatToBf16(t.v[i]);
    }
  }
  ~Guarded() {
    const size_t begin = kGuard + SizeOf(type_), end = bytes_.size() - kGuard;
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (i >= begin && i < end) continue;
      EXPECT_EQ(bytes_[i], kCanary)
          << "write outside, at byte " << i << " of " << begin << " to " << end;
    }
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  void* data() { return bytes_.data() + kGuard + SizeOf(type_); }
  float* f32() { return static_cast<float*>(data()); }
  Table<float> Get() { return Workspace::Get(ConstMat{data(), rows_, cols_, cols_, type_}); }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr char kCanary = 0x5A;
  int64_t rows_, cols_;
  DType type_;
  std::vector<char> bytes_;
};

Table<float> Rounded(Table<float> t, DType type) {
  for (float& x : t.v) x = Round(x, type);
  return t;
}

struct Keys {
  static constexpr int kRows = 300;  // more than any test has
  uint64_t example[kRows];
  int32_t position[kRows];
  Keys() {
    for (int i = 0; i < kRows; ++i) example[i] = (uint64_t{3} << 32) + i / 50, position[i] = i % 50;
  }
  RowDropout Row(float p, uint32_t site) const {
    if (p == 0) return {};
    const auto key = Philox(7, Purpose::kDropout).key();
    return {key[0], key[1], static_cast<uint32_t>(std::lround(p * 65536)), site, 1 / (1 - p),
        example, position};
  }
  DropoutSite Site(float p, uint32_t site) const { return {p, 7, site, {example, position}}; }
};

// Returns the derivative of <dout, f(inputs)> along `direction` of input k.
template <typename F>
double Along(F f, const Tables<float>& inputs, const Table<float>& dout, size_t k,
    const Table<float>& direction) {
  Tables<Dual> dual = Widen<Dual>(inputs);
  for (size_t i = 0; i < dual[k].v.size(); ++i) dual[k].v[i].d = direction.v[i];
  const Table<Dual> y = f(dual);
  double sum = 0;
  for (size_t i = 0; i < y.v.size(); ++i) sum += y.v[i].d * dout.v[i];
  return sum;
}

// Checks `actual`, the gradient of <dout, f> with respect to input k, along two random directions.
template <typename F>
void ExpectGradient(const std::string& what, F f, const Tables<float>& inputs,
    const Table<float>& dout, size_t k, const Table<float>& actual, Path path) {
  for (uint32_t d = 0; d < 2; ++d) {
    const Table<float> direction = RandomTable(actual.rows, actual.cols, 50 + d);
    double along = 0, square = 0;
    for (size_t i = 0; i < actual.v.size(); ++i)
      along += double{actual.v[i]} * direction.v[i], square += direction.v[i] * direction.v[i];
    const double tolerance = Tolerance(MaxNorm(actual.v) * std::sqrt(square), path);
    ExpectWithin(what, 1, std::vector<double>{along}, {Along(f, inputs, dout, k, direction)},
        [&](size_t) { return tolerance; });
  }
}

class Isa : public testing::TestWithParam<std::tuple<const Kernels*, DType>> {
 protected:
  const Kernels& kernels() const { return *std::get<0>(GetParam()); }
  DType type() const { return std::get<1>(GetParam()); }
  Table<float> Random(int64_t rows, int64_t cols, uint32_t seed, float deviation = 1) const {
    return Rounded(RandomTable(rows, cols, seed, deviation), type());
  }
  Keys keys_;
};

TEST_P(Isa, Norm) {
  for (const int64_t cols : {3, 16, 24, 40, 129}) {
    for (const float p : {0.0f, 0.25f}) {
      const int64_t rows = 5;
      const std::string what = absl::StrCat("norm of ", cols, " columns, dropout ", p);
      const Path path = {cols, 3, type()};
      const Tables<float> inputs = {Random(rows, cols, 1), Random(rows, cols, 2),
          RandomTable(1, cols, 3, 0.3, 1), RandomTable(1, cols, 4)};
      const auto f = [&]<typename S>(const Tables<S>& in) {
        return Dropout(
            reference::Norm(in[1] + Dropout(in[0], keys_.Site(p, 1)), in[2].v, in[3].v, 1e-5f),
            keys_.Site(p, 2));
      };
      const Table<float> zeros(rows, cols), row(1, cols), dout = Random(rows, cols, 5);
      Guarded x(inputs[0], type()), residual(inputs[1], type()), z(zeros, type()), y(zeros, type()),
          gain(inputs[2], DType::kF32), bias(inputs[3], DType::kF32),
          mean(Table<float>(1, rows), DType::kF32), rstd(Table<float>(1, rows), DType::kF32),
          dy(dout, type()), dz(zeros, type()), dx(zeros, type()), dgain(row, DType::kF32),
          dbias(row, DType::kF32), dxsum(row, DType::kF32);
      const NormArgs args = {rows, cols, x.data(), residual.data(), z.data(), y.data(),
          {mean.f32(), rstd.f32()}, {gain.f32(), bias.f32(), 1e-5f}, keys_.Row(p, 1),
          keys_.Row(p, 2)};
      kernels().norm[type()](args);
      const Table<double> expected = f(Widen<double>(inputs));
      ExpectClose(what, cols, y.Get().v, expected.v, path);
      kernels().norm_grad[type()](
          {args, dy.data(), nullptr, dz.data(), dx.data(), dgain.f32(), dbias.f32(), dxsum.f32()});
      Guarded* const gradients[] = {&dx, &dz, &dgain, &dbias};
      for (size_t k = 0; k < 4; ++k)
        ExpectGradient(
            absl::StrCat(what, ", input ", k), f, inputs, dout, k, gradients[k]->Get(), path);
      std::vector<double> sum(cols);
      const Table<float> dx_rows = dx.Get();
      for (size_t i = 0; i < dx_rows.v.size(); ++i) sum[i % cols] += dx_rows.v[i];
      ExpectClose(what + ": sum of dx", cols, dxsum.Get().v, sum, path);
    }
  }
}

TEST_P(Isa, Pack) {
  const int64_t group = type() == DType::kF32 ? 1 : 2, deep = group * kPackUnits;
  for (const auto& [depth, cols] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {deep, 48}, {deep + 3, 49}, {3 * deep - 1, 20}}) {
    for (const int64_t block : {16, 48}) {
      for (const bool by_columns : {true, false}) {
        const Table<float> weights =
            RandomTable(by_columns ? depth : cols, by_columns ? cols : depth, 6);
        const int64_t across = (cols + block - 1) / block, down = (depth + deep - 1) / deep;
        Guarded from(weights, DType::kF32), to(Table<float>(across * down, deep * block), type());
        const int64_t step = weights.cols;
        kernels().pack[type()]({depth, cols, by_columns ? step : 1, by_columns ? 1 : step,
            {deep, block, deep * block, down * deep * block}, from.f32(), to.data()});
        Table<float> expected(across * down, deep * block);
        for (int64_t k = 0; k < depth; ++k) {
          for (int64_t n = 0; n < cols; ++n) {
            const int64_t inside = (k % deep / group * block + n % block) * group + k % group;
            expected(n / block * down + k / deep, inside) =
                Round(by_columns ? weights(k, n) : weights(n, k), type());
          }
        }
        EXPECT_EQ(to.Get().v, expected.v) << depth << " x " << cols << " in blocks of " << block
                                          << (by_columns ? ", by columns" : "");
      }
    }
  }
}

TEST_P(Isa, Activation) {
  for (const ActivationKind kind : {ActivationKind::kGelu, ActivationKind::kGeluTanh,
           ActivationKind::kRelu, ActivationKind::kTanh}) {
    for (const int64_t cols : {1, 16, 37, 40}) {
      const int64_t rows = 3;
      const std::string what = absl::StrCat("activation ", int(kind), " of ", cols, " columns");
      const Tables<float> inputs = {Random(rows, cols, 1, 3)};
      const Table<float> zeros(rows, cols), dout = Random(rows, cols, 2);
      const auto f = [&]<typename S>(
                         const Tables<S>& in) { return reference::Activation(kind, in[0]); };
      Guarded u(inputs[0], type()), y(zeros, type()), again(zeros, type()), d(dout, type()),
          sum(Table<float>(1, cols), DType::kF32);
      kernels().activation[type()](kind, rows * cols, u.data(), y.data());
      kernels().activation_grad[type()](
          kind, rows, cols, u.data(), d.data(), again.data(), d.data(), sum.f32());
      const Table<double> expected = f(Widen<double>(inputs));
      ExpectClose(what, cols, y.Get().v, expected.v, {1, 2, type()});
      ExpectClose(what + " again", cols, again.Get().v, expected.v, {1, 2, type()});
      ExpectGradient(what, f, inputs, dout, 0, d.Get(), {1, 2, type()});
      std::vector<double> columns(cols);
      const Table<float> du = d.Get();
      for (size_t i = 0; i < du.v.size(); ++i) columns[i % cols] += du.v[i];
      ExpectClose(what + ": sum of du", cols, sum.Get().v, columns, {rows, 2, type()});
    }
  }
}

TEST_P(Isa, Attention) {
  struct Case {
    int64_t tokens, dim;
    Visibility visible = {};
  };
  for (const Case& c :
      {Case{1, 8}, {2, 20}, {17, 64}, {49, 20}, {130, 8}, {1, 8, {0, 0}}, {70, 20, {2, 2}},
          {260, 8, {16, 16}}, {200, 20, {30, 0}}, {200, 20, {kAllKeys, 0, 90}}}) {
    const int64_t tokens = c.tokens, dim = c.dim;
    const Visibility visible = c.visible;
    const float p = tokens == 2 ? 0 : 0.1;
    const std::string what =
        absl::StrCat("attention over ", tokens, " tokens, head dimension ", dim);
    const Path path = {tokens + dim, 4, type()};
    const std::vector<int32_t> cu = {0, static_cast<int32_t>(tokens)};
    const Tables<float> inputs = {Random(tokens, 3 * dim, 1)};
    const Table<float> dout = Random(tokens, dim, 2);
    const auto f = [&]<typename S>(const Tables<S>& in) {
      return reference::Attention(in[0], cu, 1, keys_.Site(p, 4), {}, visible);
    };
    Guarded qkv(inputs[0], type()), out(Table<float>(tokens, dim), type()), d(dout, type()),
        dqkv(Table<float>(tokens, 3 * dim), type()), lse(Table<float>(1, tokens), DType::kF32),
        scratch(Table<float>(1, AttentionScratch(tokens, dim, visible)), DType::kF32);
    std::memset(scratch.data(), 0xFF, AttentionScratch(tokens, dim, visible) * sizeof(float));
    const auto part = [&](Guarded& g, int64_t i) {
      return static_cast<char*>(g.data()) + i * dim * SizeOf(type());
    };
    const AttentionArgs args = {tokens, tokens, dim, 3 * dim, 3 * dim, dim, part(qkv, 0),
        part(qkv, 1), part(qkv, 2), out.data(), lse.f32(), nullptr,
        static_cast<float>(1 / std::sqrt(double(dim))), visible, keys_.Row(p, 4 << 12),
        scratch.f32()};
    kernels().attention[type()](args);
    const Table<double> expected = f(Widen<double>(inputs));
    ExpectClose(what, dim, out.Get().v, expected.v, path);
    std::memset(scratch.data(), 0xFF, AttentionScratch(tokens, dim, visible) * sizeof(float));
    kernels().attention_grad[type()]({args, d.data(), part(dqkv, 0), part(dqkv, 1), part(dqkv, 2)});
    ExpectGradient(what, f, inputs, dout, 0, dqkv.Get(), path);
  }
}

// Weights that training has driven to NaN must not give answers.
TEST_P(Isa, NanStaysNan) {
  const Table<float> nan(1, 24, std::vector<float>(24, NAN));
  for (const ActivationKind kind :
      {ActivationKind::kGelu, ActivationKind::kGeluTanh, ActivationKind::kTanh}) {
    Guarded u(nan, type()), y(Table<float>(1, 24), type());
    kernels().activation[type()](kind, 24, u.data(), y.data());
    for (const float x : y.Get().v) EXPECT_TRUE(std::isnan(x)) << int(kind);
  }
  Table<float> one = Random(1, 24, 1);
  one.v[3] = NAN;
  Guarded logits(one, type());
  EXPECT_TRUE(std::isnan(kernels().softmax_loss[type()](24, logits.data(), 20, 0).loss));
}

TEST_P(Isa, SoftmaxLoss) {
  for (const int64_t n : {1, 3, 16, 24, 1000}) {
    const Path path = {n, 2, type()};
    const Tables<float> inputs = {Random(1, n, 1, 2)};
    const int32_t target = static_cast<int32_t>(n / 2);
    const auto f = [&]<typename S>(const Tables<S>& in) {
      return Table<S>(1, 1, {CrossEntropy(in[0], {target})});
    };
    Guarded logits(inputs[0], type());
    const LossRow untouched = kernels().softmax_loss[type()](n, logits.data(), target, 0);
    ExpectSameBits("logits", {logits.Get()}, inputs);
    const LossRow row = kernels().softmax_loss[type()](n, logits.data(), target, 0.5f);
    EXPECT_EQ(row.loss, untouched.loss);
    EXPECT_EQ(
        row.best, std::max_element(inputs[0].v.begin(), inputs[0].v.end()) - inputs[0].v.begin());
    ExpectClose("loss", 1, std::vector<float>{row.loss}, f(Widen<double>(inputs)).v, path, 1);
    ExpectGradient(
        "gradient of logits", f, inputs, Table<float>(1, 1, {0.5f}), 0, logits.Get(), path);
  }
}

TEST_P(Isa, DropoutHasTheSameMaskEverywhere) {
  for (const int64_t cols : {1, 16, 40, 129, 300}) {
    Guarded x(Table<float>(9, cols, std::vector<float>(9 * cols, 1)), type()),
        y(Table<float>(9, cols), type());
    kernels().dropout[type()](9, cols, x.data(), y.data(), keys_.Row(0.5f, 77));
    const Table<float> actual = y.Get();
    for (int64_t r = 0; r < 9; ++r) {
      for (int64_t c = 0; c < cols; ++c)
        ASSERT_EQ(actual(r, c), DropoutFactor(keys_.Site(0.5f, 77), r, c)) << r << ", " << c;
    }
  }
}

TEST_P(Isa, SumsAndLookUps) {
  for (const int64_t cols : {1, 24, 37}) {
    const Table<float> x = Random(6, cols, 1), start = RandomTable(1, cols, 2);
    Guarded in(x, type()), columns(start, DType::kF32), rows(start, DType::kF32),
        embedded(Table<float>(2, cols), type()), table(RandomTable(4, cols, 3), DType::kF32);
    kernels().column_sum[type()](6, cols, in.data(), cols, columns.f32());
    const int32_t index[] = {5, 0, 2}, id[] = {3, 1}, first[] = {0, 0};
    kernels().sum_rows[type()](3, cols, in.data(), index, rows.f32(), true);
    kernels().embed[type()](
        2, cols, table.f32(), id, table.f32(), first, table.f32(), first, embedded.data());
    std::vector<double> column_sum(start.v.begin(), start.v.end()), row_sum = column_sum, sum;
    const Table<float> t = table.Get();
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t r = 0; r < 6; ++r) column_sum[c] += x(r, c);
      for (const int32_t r : index) row_sum[c] += x(r, c);
    }
    for (const int32_t i : id) {
      for (int64_t c = 0; c < cols; ++c) sum.push_back(double{t(i, c)} + t(0, c) + t(0, c));
    }
    ExpectClose("column sums", cols, columns.Get().v, column_sum, {6, 1, DType::kF32});
    ExpectClose("row sums", cols, rows.Get().v, row_sum, {3, 1, DType::kF32});
    ExpectClose("embeddings", cols, embedded.Get().v, sum, {3, 1, type()});
  }
}

TEST_P(Isa, AdamWAndSumSquares) {
  if (type() != DType::kF32) GTEST_SKIP() << "optimizer state is f32";
  for (const int64_t n : {1, 16, 37}) {
    const AdamW a = {0.3f, 0.9f, 0.98f, 1e-6f, 0.1f, 0.37f, true, 5};
    Table<float> v = RandomTable(1, n, 4);
    for (float& x : v.v) x *= x;
    Guarded value(RandomTable(1, n, 1), type()), grad(RandomTable(1, n, 2), type()),
        m(RandomTable(1, n, 3), type()), second(v, type());
    Tables<double> expected = {Widen<double>(value.Get()), Widen<double>(grad.Get()),
        Widen<double>(m.Get()), Widen<double>(v)};
    EXPECT_NEAR(kernels().sum_squares(n, grad.f32()), SumSquares(expected[1].v), 1e-12 * n);
    reference::AdamWStep(a, &expected[0].v, expected[1].v, &expected[2].v, &expected[3].v);
    kernels().adamw({a, static_cast<float>(1 - std::pow(double{a.beta1}, 5)),
        static_cast<float>(std::sqrt(1 - std::pow(double{a.beta2}, 5))), n, value.f32(), grad.f32(),
        m.f32(), second.f32()});
    const Path path = {4, 4, DType::kF32};
    ExpectClose("value", n, value.Get().v, expected[0].v, path);
    ExpectClose("m", n, m.Get().v, expected[2].v, path);
    ExpectClose("v", n, second.Get().v, expected[3].v, path);
    EXPECT_EQ(MaxNorm(grad.Get().v), 0);
  }
}

TEST_P(Isa, ConvertRoundsToNearestEven) {
  const Table<float> x = RandomTable(1, 37, 1);
  Guarded from(x, type()), to(x, DType::kBf16), back(x, DType::kF32);
  kernels().convert[type()](37, from.data(), true, to.data());
  kernels().convert[DType::kBf16](37, to.data(), false, back.data());
  ExpectSameBits("rounded", {back.Get()}, {Rounded(x, DType::kBf16)});
}

INSTANTIATE_TEST_SUITE_P(All, Isa,
    testing::Combine(testing::ValuesIn(Runnable()), testing::Values(DType::kF32, DType::kBf16)),
    [](const auto& info) {
      return absl::StrCat(
          std::get<0>(info.param)->name, std::get<1>(info.param) == DType::kF32 ? "" : "_as_bf16");
    });

TEST(Dispatch, PicksTheBestTableUnlessTold) {
  const char* limit = std::getenv("CLOZE_MAX_ISA");
  const std::vector<const Kernels*> tables = Runnable();
  const Kernels* expected = tables.back();
  for (const Kernels* table : tables) {
    if (limit != nullptr && std::strcmp(table->name, limit) == 0) expected = table;
  }
  EXPECT_STREQ(GetKernels().name, expected->name);
}

// Repeats all op tests in processes limited to each lower instruction set. Kernels are compiled
// without sanitizers, so a build with them, which is slow, tries AVX2 only, for the code around the
// kernels.
TEST(Dispatch, EveryIsaConforms) {
  if (std::getenv("CLOZE_MAX_ISA") != nullptr) GTEST_SKIP() << "already held to one";
  std::vector<const Kernels*> lesser = Runnable();
  lesser.pop_back();
  for (const Kernels* table : lesser) {
    if (kSanitized && absl::string_view(table->name) != "avx2") continue;
    const std::string command = absl::StrCat("CLOZE_MAX_ISA=", table->name, " /proc/", getpid(),
        "/exe --gtest_brief=1 "
        "--gtest_filter='*Conformance*:Dispatch.PicksTheBestTableUnlessTold' >&2");
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << table->name;
  }
}

}  // namespace
}  // namespace reference
}  // namespace cloze
