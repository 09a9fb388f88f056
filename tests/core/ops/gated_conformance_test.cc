// Conformance of gated activations and rotary positions; see tests/reference/conformance.h.
#include <gtest/gtest.h>

#include "core/ops/rotary.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

// Gated activation of u = [a; g].
Entry GatedEntry(const char* name, ActivationKind kind, int64_t rows, int64_t cols, DType type) {
  Entry e;
  e.name = absl::StrCat("Gated", name, "_", rows, "x", cols, Suffix(type));
  e.path = {1, 3, type};
  e.inputs = {{"u", Role::kStream, RandomTable(rows, 2 * cols, 1, 2)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) { return Tables<S>{Gated(kind, in[0])}; });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat u = s.Put(p.inputs[0]), y = s.New(rows, cols);
    GatedForward(kind, u, y);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    const Mat dy = s.Put(p.dout[0]), du = s.New(rows, 2 * cols);
    GatedBackward(kind, u, dy, du);
    ExpectSameBits("gated activation made again", {Workspace::Get(dy)}, r.outputs);
    r.gradients = {Workspace::Get(du)};
    return r;
  };
  return e;
}

// Rotates the first two thirds of the columns, as queries and keys of qkv.
Entry RotaryEntry(int64_t rows, int64_t heads, int64_t dim, float base, DType type) {
  Entry e;
  e.name = absl::StrCat("Rotary_", rows, "x", heads, "x", dim, Suffix(type));
  e.path = {2, 2, type};
  e.inputs = {{"x", Role::kStream, RandomTable(rows, 3 * heads * dim, 1)}};
  std::vector<int32_t> position;
  for (int64_t r = 0; r < rows; ++r) position.push_back(static_cast<int32_t>(r * 37 % 9000));
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Rotary(in[0], position, 0, 2 * heads * dim, dim, base)};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat table = RotaryTable(9000, dim, base, s.arena), x = s.Put(p.inputs[0]);
    RotaryForward(table, position.data(), Columns(x, 0, 2 * heads * dim));
    Result r = {{Workspace::Get(x)}, {}};
    if (p.dout.empty()) return r;
    const Mat dx = s.Put(p.dout[0]);
    RotaryBackward(table, position.data(), Columns(dx, 0, 2 * heads * dim));
    r.gradients = {Workspace::Get(dx)};
    return r;
  };
  return e;
}

std::vector<Entry> GatedEntries() {
  std::vector<Entry> all;
  const std::pair<const char*, ActivationKind> activations[] = {{"Gelu", ActivationKind::kGelu},
      {"GeluTanh", ActivationKind::kGeluTanh}, {"Relu", ActivationKind::kRelu},
      {"Tanh", ActivationKind::kTanh}, {"Silu", ActivationKind::kSilu}};
  for (const DType type : {DType::kF32, DType::kBf16}) {
    for (const auto& [name, kind] : activations) {
      for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{3, 1}, {20, 19}, {130, 48}})
        all.push_back(GatedEntry(name, kind, rows, cols, type));
    }
    for (const int64_t dim : {2, 10, 64}) all.push_back(RotaryEntry(150, 3, dim, 160000, type));
  }
  return all;
}

class GatedConformance : public testing::TestWithParam<Entry> {};

TEST_P(GatedConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, GatedConformance, testing::ValuesIn(GatedEntries()),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cloze::reference
