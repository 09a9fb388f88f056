// The conformance test of ops and modules: CheckConformance() checks one entry, whatever it
// computes.
#ifndef CLOZE_TESTS_REFERENCE_CONFORMANCE_H_
#define CLOZE_TESTS_REFERENCE_CONFORMANCE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "core/base/threads.h"
#include "core/ops/matmul.h"
#include "tests/core/tensor/half_values.h"
#include "tests/reference/reference.h"
#include "tests/reference/tolerance.h"

namespace cloze::reference {

template <typename T>
using Tables = std::vector<Table<T>>;

// Role of an input. kActivation: of the compute type; its gradient is overwritten, or not computed
// without need_dx. kStream: the same, but always computed. kParameter: f32, its gradient
// accumulates. kConstant: no gradient.
enum class Role { kActivation, kStream, kParameter, kConstant };

struct Input {
  std::string name;
  Role role;
  Table<float> value;
  int norm_of = -1;  // input whose gradient has the magnitude of this one's summands, which cancel
};

// One run of the code under test.
struct Inputs {
  DType type = DType::kF32;
  Tables<float> inputs, dout;  // as Entry's inputs and outputs; empty dout: forward only
  bool need_dx = true;
  int backwards = 1;  // number of backward passes
};
struct Result {
  Tables<float> outputs,
      gradients;  // gradients in the order of inputs; empty tables if not computed
};

struct Entry {
  std::string name;
  Path path;
  std::vector<Input> inputs;
  std::function<Tables<double>(const Tables<double>&)> reference;
  std::function<Tables<Dual>(const Tables<Dual>&)> dual;
  std::function<Result(const Inputs&)> run;
  int64_t live_rows = -1;        // rows of outputs with a gradient; the others are padding
  bool gradients = true;         // false: forward only
  int64_t every_element = 1600;  // up to this many inputs, each one's derivative is checked
  // Sets the reference from a generic lambda over Tables<S>.
  template <typename F>
  void SetReference(F f) {
    reference = f;
    dual = f;
  }
};
inline std::ostream& operator<<(std::ostream& out, const Entry& e) { return out << e.name; }

// Returns normal random numbers that depend only on the seed.
inline Table<float> RandomTable(
    int64_t rows, int64_t cols, uint32_t seed, float deviation = 1, float mean = 0) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(mean, deviation);
  Table<float> t(rows, cols);
  for (float& x : t.v) x = normal(generator);
  return t;
}

// The norm of the difference by the norm of `expected`.
template <typename T>
double RelativeError(const Table<float>& actual, const Table<T>& expected) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < actual.v.size(); ++i) {
    error += std::pow(actual.v[i] - expected.v[i], 2);
    norm += std::pow(expected.v[i], 2);
  }
  return std::sqrt(error / norm);
}

inline float Round(float x, DType type) {
  return type == DType::kF32 ? x : Bf16ToFloat(FloatToBf16(x));
}

template <typename T>
Table<T> Widen(const Table<float>& t) {
  Table<T> wide(t.rows, t.cols);
  for (size_t i = 0; i < t.v.size(); ++i) wide.v[i] = T(double{t.v[i]});
  return wide;
}
template <typename T>
Tables<T> Widen(const Tables<float>& tables) {
  Tables<T> wide;
  for (const Table<float>& t : tables) wide.push_back(Widen<T>(t));
  return wide;
}

// Memory of one run: copies matrices of the compute type in and out. Uninitialised memory holds
// NaNs, so that reading it is detected.
class Workspace {
 public:
  explicit Workspace(DType type) : type_(type) {
    const Arena::Mark mark = arena.mark();
    Poison(arena.New(1 << 10, 1 << 10, DType::kF32));
    arena.Rewind(mark);
  }

  Mat New(int64_t rows, int64_t cols) {
    Mat m = arena.New(rows, cols, type_);
    Poison(m);
    return m;
  }
  Mat Put(const Table<float>& t) { return Put(t, type_); }
  Mat Put(const Table<float>& t, DType type) {
    Mat m = arena.New(t.rows, t.cols, type);
    for (size_t i = 0; i < t.v.size(); ++i) {
      if (type == DType::kF32)
        static_cast<float*>(m.data)[i] = t.v[i];
      else
        static_cast<Bf16*>(m.data)[i] = FloatToBf16(t.v[i]);
    }
    return m;
  }
  static Table<float> Get(ConstMat m) {
    Table<float> t(m.rows, m.cols);
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t c = 0; c < m.cols; ++c)
        t(r, c) = m.type == DType::kF32 ? m.f32(r)[c] : Bf16ToFloat(m.row<Bf16>(r)[c]);
    }
    return t;
  }

  Arena arena;
  Matmul matmul;

 private:
  static void Poison(Mat m) { std::memset(m.data, 0xFF, m.rows * m.cols * SizeOf(m.type)); }
  DType type_;
};

// Coordinates of `rows` rows; must outlive the sites made from it.
struct Coordinates {
  std::vector<uint64_t> example;
  std::vector<int32_t> position;
  explicit Coordinates(int64_t rows) {
    for (int64_t r = 0; r < rows; ++r)
      example.push_back((uint64_t{1} << 33) + r / 7),
          position.push_back(static_cast<int32_t>(r % 7));
  }
  DropoutSite Site(float p, uint32_t site) const {
    return {p, 42, site, {example.data(), position.data()}};
  }
};

// Returns the first row of each of several sequences, and the end.
inline std::vector<int32_t> Offsets(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> cu = {0};
  for (const int32_t n : lengths) cu.push_back(cu.back() + n);
  return cu;
}

// What the name of an entry of this type ends with.
inline const char* Suffix(DType type) { return type == DType::kF32 ? "" : "_bf16"; }

inline void ExpectSameBits(
    const std::string& what, const Tables<float>& a, const Tables<float>& b) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t t = 0; t < a.size(); ++t) {
    ASSERT_EQ(a[t].v.size(), b[t].v.size()) << what << " " << t;
    for (size_t i = 0; i < a[t].v.size(); ++i) {
      ASSERT_EQ(std::memcmp(&a[t].v[i], &b[t].v[i], 4), 0)
          << what << " " << t << " [" << i / a[t].cols << ", " << i % a[t].cols
          << "]: " << a[t].v[i] << " and " << b[t].v[i];
    }
  }
}

namespace internal {

class Checker {
 public:
  explicit Checker(const Entry& entry) : e_(entry) {
    pass_.type = e_.path.type;
    for (const Input& input : e_.inputs) {
      Table<float> t = input.value;
      const bool stored = input.role == Role::kActivation || input.role == Role::kStream;
      for (float& x : t.v) x = stored ? Round(x, pass_.type) : x;
      pass_.inputs.push_back(std::move(t));
    }
    expected_ = e_.reference(Widen<double>(pass_.inputs));
  }

  void Check() {
    SetThreads(1);
    Forward();
    if (e_.gradients) {
      NewOutputGradients();
      first_ = e_.run(pass_);
      ASSERT_EQ(first_.gradients.size(), e_.inputs.size());
      Gradients();
      Accumulation();
      WithoutDx();
    }
    OtherThreads();
    SetThreads(1);
  }

 private:
  void Forward() {
    const Result r = e_.run(pass_);
    ASSERT_EQ(r.outputs.size(), expected_.size());
    for (size_t o = 0; o < expected_.size(); ++o) {
      ExpectClose(e_.name + ": output " + std::to_string(o), expected_[o].cols, r.outputs[o].v,
          expected_[o].v, e_.path);
    }
    first_ = r;
  }

  void NewOutputGradients() {
    for (size_t o = 0; o < expected_.size(); ++o) {
      Table<float> d = RandomTable(expected_[o].rows, expected_[o].cols, 1000 + o);
      for (size_t i = 0; i < d.v.size(); ++i) {
        const bool live = e_.live_rows < 0 || static_cast<int64_t>(i) < e_.live_rows * d.cols;
        d.v[i] = live ? Round(d.v[i], pass_.type) : 0;
      }
      pass_.dout.push_back(std::move(d));
    }
  }

  // Returns the derivative of <dout, outputs> along `direction` of input `k`.
  double Derivative(size_t k, const std::vector<double>& direction) const {
    Tables<Dual> inputs = Widen<Dual>(pass_.inputs);
    for (size_t i = 0; i < direction.size(); ++i) inputs[k].v[i].d = direction[i];
    const Tables<Dual> outputs = e_.dual(inputs);
    double sum = 0;
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (size_t i = 0; i < outputs[o].v.size(); ++i)
        sum += outputs[o].v[i].d * pass_.dout[o].v[i];
    }
    return sum;
  }

  void Gradients() const {
    int64_t elements = 0;
    for (const Input& input : e_.inputs)
      elements += input.role == Role::kConstant ? 0 : input.value.v.size();
    for (size_t k = 0; k < e_.inputs.size(); ++k) {
      if (e_.inputs[k].role == Role::kConstant) continue;
      ASSERT_EQ(first_.gradients[k].v.size(), e_.inputs[k].value.v.size())
          << e_.name << ": " << e_.inputs[k].name;
      const int norm_of = e_.inputs[k].norm_of;
      const double norm = norm_of < 0 ? 0 : MaxNorm(first_.gradients[norm_of].v);
      if (elements <= e_.every_element)
        EveryElement(k, norm);
      else
        SomeDirections(k, norm);
    }
  }

  std::string GradientName(size_t k) const {
    return e_.name + ": gradient of " + e_.inputs[k].name;
  }

  void EveryElement(size_t k, double norm) const {
    const Table<float>& actual = first_.gradients[k];
    std::vector<double> expected(actual.v.size()), direction(actual.v.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      direction[i] = 1;
      expected[i] = Derivative(k, direction);
      direction[i] = 0;
    }
    ExpectClose(GradientName(k), actual.cols, actual.v, expected, e_.path, norm);
  }

  void SomeDirections(size_t k, double norm) const {
    const Table<float>& actual = first_.gradients[k];
    const double largest = std::max(norm, MaxNorm(actual.v));
    const size_t n = actual.v.size();
    for (uint32_t d = 0; d < 3; ++d) {
      std::vector<double> direction(n);
      if (d < 1) {
        const Table<float> random = RandomTable(actual.rows, actual.cols, 77 + d);
        direction.assign(random.v.begin(), random.v.end());
      } else {
        direction[(uint64_t{d} * 2654435761u) % n] = 1;
      }
      double along = 0;
      for (size_t i = 0; i < n; ++i) along += direction[i] * actual.v[i];
      const double tolerance = Tolerance(largest * std::sqrt(SumSquares(direction)), e_.path);
      ExpectWithin(GradientName(k) + " along direction " + std::to_string(d), 1,
          std::vector<double>{along}, {Derivative(k, direction)},
          [&](size_t) { return tolerance; });
    }
  }

  // Two backward passes double the gradients of parameters and repeat those of activations.
  void Accumulation() const {
    Inputs twice = pass_;
    twice.backwards = 2;
    const Result r = e_.run(twice);
    for (size_t k = 0; k < e_.inputs.size(); ++k) {
      std::vector<double> expected(first_.gradients[k].v.begin(), first_.gradients[k].v.end());
      const double factor = e_.inputs[k].role == Role::kParameter ? 2 : 1;
      for (double& g : expected) g *= factor;
      const double norm =
          e_.inputs[k].norm_of < 0 ? 0 : 2 * MaxNorm(first_.gradients[e_.inputs[k].norm_of].v);
      Path f32 = e_.path;
      f32.type = DType::kF32;
      ExpectClose(GradientName(k) + " after two backward passes", e_.inputs[k].value.cols,
          r.gradients[k].v, expected, f32, norm);
    }
  }

  void WithoutDx() const {
    Inputs without = pass_;
    without.need_dx = false;
    Tables<float> expected = first_.gradients;
    for (size_t k = 0; k < e_.inputs.size(); ++k) {
      if (e_.inputs[k].role == Role::kActivation) expected[k] = {};
    }
    const Result r = e_.run(without);
    ExpectSameBits(e_.name + ": outputs without dx", r.outputs, first_.outputs);
    ExpectSameBits(e_.name + ": gradients without dx", r.gradients, expected);
  }

  void OtherThreads() const {
    for (const int threads : {2, 3, 4, 8}) {
      SetThreads(threads);
      const Result r = e_.run(pass_);
      const std::string with = e_.name + " with " + std::to_string(threads) + " threads: ";
      ExpectSameBits(with + "output", r.outputs, first_.outputs);
      ExpectSameBits(with + "gradient", r.gradients, first_.gradients);
    }
  }

  const Entry& e_;
  Inputs pass_;
  Tables<double> expected_;
  Result first_;  // with one thread
};

}  // namespace internal

// Checks that outputs equal the scalar reference, that gradients equal those of dual numbers (each
// element, or along directions if there are many), that gradients of parameters accumulate, that
// omitting unneeded gradients changes nothing, and that any number of threads gives the same bits.
inline void CheckConformance(const Entry& entry) { internal::Checker(entry).Check(); }

}  // namespace cloze::reference

#endif  // CLOZE_TESTS_REFERENCE_CONFORMANCE_H_
