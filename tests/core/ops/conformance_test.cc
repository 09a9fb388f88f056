// Conformance of most ops with their references; see tests/reference/conformance.h.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/embedding.h"
#include "core/ops/norm.h"
#include "core/ops/rows.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

// y = x w^T + b.
Entry LinearEntry(int64_t rows, int64_t in, int64_t out, DType type) {
  Entry e;
  e.name = absl::StrCat("Linear_", rows, "x", in, "x", out, Suffix(type));
  e.path = {std::max({rows, in, out}), 2, type};
  e.inputs = {{"x", Role::kActivation, RandomTable(rows, in, 1)},
      {"w", Role::kParameter, RandomTable(out, in, 2, 0.5)},
      {"b", Role::kParameter, RandomTable(1, out, 3)}};
  e.SetReference(
      []<typename S>(const Tables<S>& in) { return Tables<S>{Linear(in[0], in[1], in[2].v)}; });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat x = s.Put(p.inputs[0]), w = s.Put(p.inputs[1], DType::kF32);
    Mat y = s.New(rows, out), dx = p.need_dx ? s.New(rows, in) : Mat();
    s.matmul.Forward(x, {w, 1}, p.inputs[2].v.data(), y);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    const Mat dy = s.Put(p.dout[0]), dw = s.arena.NewZero(out, in, DType::kF32),
              db = s.arena.NewZero(1, out, DType::kF32);
    for (int i = 0; i < p.backwards; ++i) {
      s.matmul.BackwardWeight(dy, x, dw);
      AddColumnSums(dy, s.arena, db.f32());
      if (p.need_dx) s.matmul.BackwardData(dy, {w, 1}, dx);
    }
    r.gradients = {Workspace::Get(dx), Workspace::Get(dw), Workspace::Get(db)};
    return r;
  };
  return e;
}

// y = out(norm(z)), z = residual + in(x + below), with every combination of parts. dx_sum is the
// gradient of the bias `below`.
struct NormCase {
  int64_t rows, cols;
  bool x, residual, keep_z;
  float p_in = 0, p_out = 0;
  DType type = DType::kF32;
  bool bias = true;
};

Result RunNorm(const NormCase& c, float epsilon, const Inputs& p) {
  Workspace s(p.type);
  const Coordinates rows_of(c.rows);
  const DropoutSite in = rows_of.Site(c.p_in, 5 << 12), out = rows_of.Site(c.p_out, 6 << 12);
  const Mat x = c.x ? s.Put(p.inputs[0]) : Mat(),
            residual = c.residual ? s.Put(p.inputs[1]) : Mat();
  const NormParams params = {
      p.inputs[2].v.data(), c.bias ? p.inputs[3].v.data() : nullptr, epsilon};
  const Mat z = s.New(c.rows, c.cols), y = s.New(c.rows, c.cols);
  const NormStats stats = {s.arena.NewArray<float>(c.rows), s.arena.NewArray<float>(c.rows)};
  NormForward(x, residual, params, in, out, z, y, stats);
  Result r = {{Workspace::Get(y)}, {}};
  if (c.keep_z) r.outputs.push_back(Workspace::Get(z));
  if (p.dout.empty()) return r;
  const Mat dy = s.Put(p.dout[0]), dz_in = c.keep_z ? s.Put(p.dout[1]) : Mat();
  const Mat dz = s.New(c.rows, c.cols),
            dx = c.x && (p.need_dx || c.p_in > 0) ? s.New(c.rows, c.cols) : Mat();
  const Mat sums = s.arena.NewZero(3, c.cols, DType::kF32);
  for (int i = 0; i < p.backwards; ++i) {
    NormBackward(dy, z, stats, params, in, out, dz_in,
        {sums.f32(0), c.bias ? sums.f32(1) : nullptr, c.x ? sums.f32(2) : nullptr}, s.arena, dz,
        dx);
  }
  r.gradients = {Workspace::Get(dx), c.residual ? Workspace::Get(dz) : Table<float>(),
      Workspace::Get(Rows(sums, 0, 1)), c.bias ? Workspace::Get(Rows(sums, 1, 1)) : Table<float>(),
      c.x ? Workspace::Get(Rows(sums, 2, 1)) : Table<float>()};
  return r;
}

Entry NormEntry(const NormCase& c) {
  const float epsilon = c.cols == 1 ? 1e-3f : 1e-12f;
  Entry e;
  e.name = absl::StrCat("Norm_", c.rows, "x", c.cols, c.x ? "_x" : "",
      c.residual ? "_residual" : "", c.keep_z ? "_z" : "", c.p_in > 0 ? "_in" : "",
      c.p_out > 0 ? "_out" : "", c.bias ? "" : "_nobias", Suffix(c.type));
  e.path = {std::max(c.rows, c.cols), 3, c.type};
  const auto table = [&](bool there, uint32_t seed) {
    return there ? RandomTable(c.rows, c.cols, seed, 2, 1) : Table<float>();
  };
  e.inputs = {{"x",
                  !c.x         ? Role::kConstant
                  : c.p_in > 0 ? Role::kStream
                               : Role::kActivation,
                  table(c.x, 1)},
      {"residual", c.residual ? Role::kStream : Role::kConstant, table(c.residual, 2)},
      {"gain", Role::kParameter, RandomTable(1, c.cols, 3, 0.3, 1)},
      {"bias", c.bias ? Role::kParameter : Role::kConstant,
          c.bias ? RandomTable(1, c.cols, 4) : Table<float>(1, c.cols)},
      {"below", c.x ? Role::kParameter : Role::kConstant,
          c.x ? Table<float>(1, c.cols) : Table<float>()}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    const Coordinates rows_of(c.rows);
    Table<S> z(c.rows, c.cols);
    if (c.x) z = z + Dropout(AddRow(in[0], in[4].v), rows_of.Site(c.p_in, 5 << 12));
    if (c.residual) z = z + in[1];
    Tables<S> out = {Dropout(Norm(z, in[2].v, in[3].v, epsilon), rows_of.Site(c.p_out, 6 << 12))};
    if (c.keep_z) out.push_back(z);
    return out;
  });
  e.run = [=](const Inputs& p) { return RunNorm(c, epsilon, p); };
  return e;
}

// y = act(u + below).
Entry ActivationEntry(const char* name, ActivationKind kind, Table<float> u, DType type) {
  Entry e;
  const int64_t rows = u.rows, cols = u.cols;
  e.name = absl::StrCat(name, "_", rows, "x", cols, Suffix(type));
  e.path = {rows, 2, type};
  e.inputs = {
      {"u", Role::kStream, std::move(u)}, {"below", Role::kParameter, Table<float>(1, cols)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Activation(kind, AddRow(in[0], in[1].v))};
  });
  e.run = [=, path = e.path](const Inputs& p) {
    Workspace s(p.type);
    const Mat u = s.Put(p.inputs[0]), y = s.New(rows, cols), again = s.New(rows, cols),
              db = s.arena.NewZero(1, cols, DType::kF32);
    ActivationForward(kind, u, y);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    Mat du;
    for (int i = 0; i < p.backwards; ++i) {
      du = s.Put(p.dout[0]);  // in place
      ActivationBackward(kind, u, du, db.f32(), s.arena, again, du);
    }
    const Table<double> expected = Widen<double>(r.outputs[0]);
    ExpectClose("activation made again", cols, Workspace::Get(again).v, expected.v, path);
    r.gradients = {Workspace::Get(du), Workspace::Get(db)};
    return r;
  };
  return e;
}

Table<float> Extremes() {
  Table<float> u(1, 0);
  for (const float x :
      {0.001f, 1e-20f, 1.0f, 3.0f, 5.0f, 6.0f, 9.0f, 12.0f, 20.0f, 45.0f, 90.0f, 1000.0f, 1e10f})
    u.v.push_back(x), u.v.push_back(-x);
  u.cols = u.v.size();
  return u;
}

Entry DropoutEntry(int64_t rows, int64_t cols, float p_drop, DType type) {
  Entry e;
  e.name =
      absl::StrCat("Dropout_", rows, "x", cols, "_", static_cast<int>(p_drop * 100), Suffix(type));
  e.path = {1, 1, type};
  e.inputs = {{"x", Role::kStream, RandomTable(rows, cols, 1)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Dropout(in[0], Coordinates(rows).Site(p_drop, 3 << 12))};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Coordinates rows_of(rows);
    const Mat x = s.Put(p.inputs[0]), y = s.New(rows, cols);
    Dropout(x, rows_of.Site(p_drop, 3 << 12), y);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    const Mat d = s.Put(p.dout[0]);
    Dropout(d, rows_of.Site(p_drop, 3 << 12), d);
    r.gradients = {Workspace::Get(d)};
    return r;
  };
  return e;
}

// `tail` rows after the last sequence have no gradient.
Entry EmbeddingEntry(int64_t rows, int64_t tail, int64_t vocab, int64_t cols, DType type) {
  Entry e;
  e.name = absl::StrCat("Embedding_", rows, "x", cols, Suffix(type));
  e.path = {rows, 1, type};
  e.live_rows = rows - tail;
  e.inputs = {{"words", Role::kParameter, RandomTable(vocab, cols, 1)},
      {"positions", Role::kParameter, RandomTable(9, cols, 2)},
      {"types", Role::kParameter, RandomTable(2, cols, 3)}};
  std::vector<int32_t> ids, pos, types;
  for (int64_t r = 0; r < rows; ++r) {
    ids.push_back(static_cast<int32_t>(r * r * 2654435761u % vocab));
    pos.push_back(static_cast<int32_t>(r % 9));
    types.push_back(r % 50 == 3);
  }
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Embedding(in[0], ids, in[1], pos, in[2], types)};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    Mat tables[3], grads[3];
    for (int t = 0; t < 3; ++t) {
      tables[t] = s.Put(p.inputs[t], DType::kF32);
      grads[t] = s.arena.NewZero(tables[t].rows, cols, DType::kF32);
    }
    const Mat x = s.New(rows, cols);
    EmbeddingForward(tables[0], ids.data(), tables[1], pos.data(), tables[2], types.data(), x);
    Result r = {{Workspace::Get(x)}, {}};
    if (p.dout.empty()) return r;
    const Mat dx = s.Put(p.dout[0]);
    for (int i = 0; i < p.backwards; ++i) {
      EmbeddingBackward(dx, ids.data(), rows - tail, s.arena, grads[0]);
      EmbeddingBackward(dx, pos.data(), rows - tail, s.arena, grads[1]);
      EmbeddingBackward(dx, types.data(), rows - tail, s.arena, grads[2]);
    }
    for (const Mat& g : grads) r.gradients.push_back(Workspace::Get(g));
    return r;
  };
  return e;
}

Entry GatherEntry(DType type) {
  Entry e;
  const std::vector<int32_t> rows = {0, 3, 4, 9};
  e.name = absl::StrCat("Gather", Suffix(type));
  e.path = {1, 1, type};
  e.inputs = {{"x", Role::kStream, RandomTable(10, 7, 1)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) { return Tables<S>{Gather(in[0], rows)}; });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat y = s.New(4, 7), dx = s.arena.NewZero(10, 7, p.type);
    GatherRows(s.Put(p.inputs[0]), rows, y);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    ScatterRows(s.Put(p.dout[0]), rows, dx);
    r.gradients = {Workspace::Get(dx)};
    return r;
  };
  return e;
}

Entry PoolEntry(bool largest, DType type) {
  Entry e;
  const std::vector<int32_t> ends = {1, 4, 6, 9};
  const std::vector<RowRange> ranges = {{0, 1}, {1, 4}, {4, 6}, {6, 9}};
  e.name = absl::StrCat(largest ? "Max" : "Average", Suffix(type));
  e.path = {3, 3, type};
  e.live_rows = 9;
  e.inputs = {{"x", Role::kStream, RandomTable(10, 7, 1)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{largest ? Largest(in[0], ends) : Average(in[0], ends)};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat y = s.New(4, 7), dx = s.New(10, 7);
    std::vector<int32_t> at(4 * 7);
    const Mat x = s.Put(p.inputs[0]);
    largest ? MaxRows(x, ranges, y, at.data()) : AverageRows(x, ranges, s.arena, y);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    const Mat dy = s.Put(p.dout[0]);
    largest ? MaxRowsBackward(dy, at.data(), 4, dx) : AverageRowsBackward(dy, ranges, dx);
    r.gradients = {Workspace::Get(dx)};
    return r;
  };
  return e;
}

Entry AdamWEntry(int64_t n, const AdamW& a) {
  Entry e;
  e.name = absl::StrCat("AdamW_", n, "_step", a.step, a.bias_correction ? "" : "_uncorrected",
      a.decay > 0 ? "_decay" : "");
  e.path = {4, 4, DType::kF32};
  e.gradients = false;
  Table<float> v = RandomTable(1, n, 4, 0.3);
  for (float& x : v.v) x *= x;
  e.inputs = {{"value", Role::kConstant, RandomTable(1, n, 1)},
      {"gradient", Role::kConstant, RandomTable(1, n, 2)},
      {"m", Role::kConstant, RandomTable(1, n, 3, 0.3)}, {"v", Role::kConstant, v}};
  e.reference = [=](Tables<double> in) {
    AdamWStep(a, &in[0].v, in[1].v, &in[2].v, &in[3].v);
    in[1] = Table<double>(1, n);
    return in;
  };
  e.run = [=](const Inputs& p) {
    Tables<float> t = p.inputs;
    cloze::AdamWStep(a, t[0].v.data(), t[1].v.data(), t[2].v.data(), t[3].v.data(), n);
    return Result{t, {}};
  };
  return e;
}

Entry UpdateRatiosEntry(int64_t n, const AdamW& a) {
  Entry e;
  e.name =
      absl::StrCat("UpdateRatios_", n, "_step", a.step, a.bias_correction ? "" : "_uncorrected");
  e.path = {n, 4, DType::kF32};
  e.gradients = false;
  Table<float> gradient = RandomTable(1, n, 2), v = RandomTable(1, n, 4, 0.3);
  gradient.v[0] = v.v[0] = 0;  // epsilon is the larger one
  for (float& x : v.v) x *= x;
  e.inputs = {{"gradient", Role::kConstant, gradient}, {"v", Role::kConstant, v}};
  e.reference = [=](const Tables<double>& in) {
    return Tables<double>{Table<double>(1, 1, {SumUpdateRatios(a, in[0].v, in[1].v)})};
  };
  e.run = [=](const Inputs& p) {
    const double sum =
        cloze::SumUpdateRatios(a, p.inputs[0].v.data(), p.inputs[1].v.data(), p.inputs[0].v.size());
    return Result{{Table<float>(1, 1, {static_cast<float>(sum)})}, {}};
  };
  return e;
}

Entry SumSquaresEntry(int64_t n) {
  Entry e;
  e.name = absl::StrCat("SumSquares_", n);
  e.path = {1, 1, DType::kF32};
  e.gradients = false;
  e.inputs = {{"x", Role::kConstant, RandomTable(1, n, 1)}};
  e.reference = [](const Tables<double>& in) {
    return Tables<double>{Table<double>(1, 1, {SumSquares(in[0].v)})};
  };
  e.run = [](const Inputs& p) {
    return Result{{Table<float>(1, 1, {static_cast<float>(cloze::SumSquares(p.inputs[0].v))})}, {}};
  };
  return e;
}

// y2 = a x + b y.
Entry AxpbyEntry(int64_t rows, int64_t cols, float a, float b, DType type) {
  Entry e;
  e.name = absl::StrCat("Combine_", rows, "x", cols, b == 0 ? "_scale" : "", Suffix(type));
  e.path = {2, 1, type};
  e.gradients = false;
  e.inputs = {{"x", Role::kActivation, RandomTable(rows, cols, 1)},
      {"y", Role::kActivation, RandomTable(rows, cols, 2)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Map(in[0], in[1], [=](S x, S y) { return S(a) * x + S(b) * y; })};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat x = s.Put(p.inputs[0]), y = b == 0 ? s.New(rows, cols) : s.Put(p.inputs[1]);
    Axpby(a, x, b, y);
    if (b == 0) {
      Axpby(a, x, 0, x);
      ExpectSameBits("in place", {Workspace::Get(x)}, {Workspace::Get(y)});
    }
    return Result{{Workspace::Get(y)}, {}};
  };
  return e;
}

void AddTyped(std::vector<Entry>* all, DType type) {
  all->push_back(AxpbyEntry(3, 5, 1.75f, 0, type));
  all->push_back(AxpbyEntry(130, 70, -0.5f, 1, type));
  for (const auto& [rows, in, out] :
      {std::array<int64_t, 3>{1, 1, 1}, {5, 7, 3}, {9, 24, 17}, {130, 40, 65}})
    all->push_back(LinearEntry(rows, in, out, type));
  for (const int64_t cols : {24, 40}) {
    all->push_back(NormEntry(
        {.rows = 5, .cols = cols, .x = true, .residual = false, .keep_z = false, .type = type}));
    all->push_back(NormEntry(
        {.rows = 5, .cols = cols, .x = false, .residual = true, .keep_z = true, .type = type}));
    all->push_back(NormEntry({.rows = 4,
        .cols = cols,
        .x = true,
        .residual = true,
        .keep_z = true,
        .p_in = 0.3,
        .p_out = 0.2,
        .type = type}));
  }
  all->push_back(NormEntry({.rows = 7,
      .cols = 20,
      .x = true,
      .residual = true,
      .keep_z = true,
      .type = type,
      .bias = false}));
  all->push_back(NormEntry(
      {.rows = 6, .cols = 16, .x = true, .residual = true, .keep_z = true, .type = type}));
  all->push_back(NormEntry({.rows = 6,
      .cols = 17,
      .x = true,
      .residual = true,
      .keep_z = false,
      .p_in = 0.1,
      .type = type}));
  all->push_back(NormEntry({.rows = 200,
      .cols = 300,
      .x = true,
      .residual = true,
      .keep_z = true,
      .p_in = 0.1,
      .p_out = 0.1,
      .type = type}));
  const std::pair<const char*, ActivationKind> activations[] = {{"Gelu", ActivationKind::kGelu},
      {"GeluTanh", ActivationKind::kGeluTanh}, {"Relu", ActivationKind::kRelu},
      {"Tanh", ActivationKind::kTanh}, {"Silu", ActivationKind::kSilu}};
  for (const auto& [name, kind] : activations) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{3, 1}, {7, 24}, {150, 40}}) {
      all->push_back(ActivationEntry(name, kind, RandomTable(rows, cols, 1, 2), type));
    }
    all->push_back(ActivationEntry(name, kind, Extremes(), type));
  }
  all->push_back(DropoutEntry(5, 24, 0.1, type));
  all->push_back(DropoutEntry(3, 300, 0.5, type));
  all->push_back(DropoutEntry(130, 1, 0.3, type));
  all->push_back(EmbeddingEntry(30, 5, 20, 24, type));
  all->push_back(EmbeddingEntry(1400, 60, 40, 17, type));
  all->push_back(GatherEntry(type));
  for (const bool largest : {false, true}) all->push_back(PoolEntry(largest, type));
}

std::vector<Entry> Entries() {
  std::vector<Entry> all;
  AddTyped(&all, DType::kF32);
  AddTyped(&all, DType::kBf16);
  all.push_back(
      NormEntry({.rows = 3, .cols = 1, .x = true, .residual = true, .keep_z = true, .p_in = 0.5}));
  for (const int64_t n : {1, 37, 70000}) {
    all.push_back(AdamWEntry(n, {0.3f, 0.9f, 0.999f, 1e-8f, 0.0f, 1.0f, true, 1}));
    all.push_back(AdamWEntry(n, {0.3f, 0.9f, 0.98f, 1e-6f, 0.1f, 0.37f, true, 100}));
    all.push_back(AdamWEntry(n, {0.3f, 0.9f, 0.999f, 1e-6f, 0.01f, 0.5f, false, 7}));
    all.push_back(UpdateRatiosEntry(n, {0.3f, 0.9f, 0.98f, 1e-6f, 0.1f, 0.37f, true, 3}));
    all.push_back(UpdateRatiosEntry(n, {0.3f, 0.9f, 0.999f, 0.1f, 0.01f, 0.5f, false, 7}));
    all.push_back(SumSquaresEntry(n));
  }
  return all;
}

class OpConformance : public testing::TestWithParam<Entry> {};

TEST_P(OpConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, OpConformance, testing::ValuesIn(Entries()),
    [](const auto& info) { return info.param.name; });

TEST(Convert, RoundsAsHalfDoes) {
  for (const int64_t cols : {1, 16, 37}) {
    Workspace s(DType::kF32);
    const Table<float> x = RandomTable(70, cols, 1);
    const Mat narrow = s.arena.New(70, cols, DType::kBf16), wide = s.New(70, cols);
    Convert(s.Put(x), narrow);
    Convert(narrow, wide);
    for (size_t i = 0; i < x.v.size(); ++i) {
      ASSERT_EQ(static_cast<Bf16*>(narrow.data)[i].bits, FloatToBf16(x.v[i]).bits);
      ASSERT_EQ(static_cast<float*>(wide.data)[i], Bf16ToFloat(FloatToBf16(x.v[i])));
    }
  }
}

}  // namespace
}  // namespace cloze::reference
