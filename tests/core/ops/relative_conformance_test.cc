// Conformance of attention with terms by distance; see tests/reference/conformance.h.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/attention.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

// Attention with `buckets` rows of tables by distance, of which those of long distances share one.
struct RelativeCase {
  std::vector<int32_t> lengths;
  int heads;
  int64_t dim;
  bool bias, keys, queries;
  int32_t buckets;
  float p = 0;
  DType type = DType::kF32;
  std::vector<int32_t> rows = {};  // of each distance

  void SetRows() {
    const int32_t longest = *std::max_element(lengths.begin(), lengths.end());
    for (int32_t d = 1 - longest; d < longest; ++d)
      rows.push_back(std::clamp(d + buckets / 2, 0, buckets - 1));
  }
};

Result RunRelative(const RelativeCase& c, const std::vector<int32_t>& cu, const Inputs& p) {
  const int64_t rows = cu.back(), hidden = c.heads * c.dim;
  Workspace s(p.type);
  const Coordinates rows_of(rows);
  const DropoutSite site = rows_of.Site(c.p, 4);
  RelativePositions relative = {.rows = c.rows};
  RelativeGrads grads;
  if (c.bias) relative.bias = s.Put(p.inputs[1], DType::kF32);
  if (c.keys) relative.keys = s.Put(p.inputs[2]), grads.keys = s.New(c.buckets, hidden);
  if (c.queries) relative.queries = s.Put(p.inputs[3]), grads.queries = s.New(c.buckets, hidden);
  if (c.bias) grads.bias = s.arena.NewZero(c.buckets, c.heads, DType::kF32);
  const AttentionShape shape = {cu, c.heads, {}, &relative};
  const Mat qkv = s.Put(p.inputs[0]), out = s.New(rows, hidden);
  float* lse = s.arena.NewArray<float>(rows * c.heads);
  AttentionForward(qkv, shape, site, s.arena, out, lse);
  Result r = {{Workspace::Get(out)}, {}};
  if (p.dout.empty()) return r;
  const Mat dout = s.Put(p.dout[0]), dqkv = s.New(rows, 3 * hidden);
  for (int i = 0; i < p.backwards; ++i)
    AttentionBackward(qkv, out, dout, lse, shape, site, s.arena, dqkv, grads);
  r.gradients = {Workspace::Get(dqkv), c.bias ? Workspace::Get(grads.bias) : Table<float>(),
      c.keys ? Workspace::Get(grads.keys) : Table<float>(),
      c.queries ? Workspace::Get(grads.queries) : Table<float>()};
  return r;
}

Entry RelativeEntry(RelativeCase c) {
  c.SetRows();
  const std::vector<int32_t> cu = Offsets(c.lengths);
  const int64_t longest = *std::max_element(c.lengths.begin(), c.lengths.end()),
                hidden = c.heads * c.dim;
  Entry e;
  e.name = absl::StrCat("Relative_", c.heads, "x", c.dim, "_to", longest, c.bias ? "_bias" : "",
      c.keys ? "_c2p" : "", c.queries ? "_p2c" : "", c.p > 0 ? "_dropout" : "", Suffix(c.type));
  e.path = {longest + c.dim, 4, c.type};
  const auto table = [&](const char* name, bool there, Role role, int64_t cols, uint32_t seed) {
    e.inputs.push_back({name, there ? role : Role::kConstant,
        there ? RandomTable(c.buckets, cols, seed) : Table<float>()});
  };
  e.inputs = {{"qkv", Role::kStream, RandomTable(cu.back(), 3 * hidden, 1)}};
  table("bias", c.bias, Role::kParameter, c.heads, 2);
  table("keys", c.keys, Role::kStream, hidden, 3);
  table("queries", c.queries, Role::kStream, hidden, 4);
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    const Relative<S> relative = {c.rows, in[1], in[2], in[3]};
    return Tables<S>{Attention<S>(
        in[0], cu, c.heads, Coordinates(in[0].rows).Site(c.p, 4), nullptr, {}, relative)};
  });
  e.run = [=](const Inputs& p) { return RunRelative(c, cu, p); };
  return e;
}

std::vector<Entry> RelativeEntries() {
  std::vector<Entry> all;
  for (const DType type : {DType::kF32, DType::kBf16}) {
    all.push_back(RelativeEntry({.lengths = {1, 2, 17},
        .heads = 2,
        .dim = 8,
        .bias = true,
        .keys = false,
        .queries = false,
        .buckets = 9,
        .type = type}));
    for (const bool bias : {false, true}) {
      all.push_back(RelativeEntry({.lengths = {17, 2, 1},
          .heads = 1,
          .dim = 20,
          .bias = bias,
          .keys = true,
          .queries = bias,
          .buckets = 40,
          .p = 0.3,
          .type = type}));
      all.push_back(RelativeEntry({.lengths = {2, 130, 17, 64, 65},
          .heads = 3,
          .dim = 64,
          .bias = bias,
          .keys = bias,
          .queries = true,
          .buckets = 100,
          .p = 0.1,
          .type = type}));
    }
  }
  return all;
}

class RelativeConformance : public testing::TestWithParam<Entry> {};

TEST_P(RelativeConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, RelativeConformance, testing::ValuesIn(RelativeEntries()),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cloze::reference
