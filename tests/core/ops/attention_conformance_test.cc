// Conformance of attention; see tests/reference/conformance.h.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/ops/attention.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

struct AttentionCase {
  std::vector<int32_t> lengths;
  int64_t tail;
  int heads;
  int64_t dim;
  float p = 0;
  DType type = DType::kF32;
  Visibility visible = {};
  std::vector<int32_t> prefixes = {};
  std::vector<uint8_t> causal = {};
};

Result RunAttention(const AttentionCase& c, const std::vector<int32_t>& cu, const Inputs& p) {
  const int64_t rows = cu.back() + c.tail, hidden = c.heads * c.dim;
  Workspace s(p.type);
  const Coordinates rows_of(rows);
  const DropoutSite site = rows_of.Site(c.p, 4);
  const AttentionShape shape = {cu, c.heads, c.visible, nullptr, c.prefixes, c.causal};
  const Mat qkv = s.Put(p.inputs[0]), out = s.New(rows, hidden);
  float* lse = s.arena.NewArray<float>(rows * c.heads);
  AttentionForward(qkv, shape, site, s.arena, out, lse);
  Result r = {{Workspace::Get(out)}, {}};
  if (p.dout.empty()) return r;
  const Mat dout = s.Put(p.dout[0]), dqkv = s.New(rows, 3 * hidden);
  AttentionBackward(qkv, out, dout, lse, shape, site, s.arena, dqkv);
  r.gradients = {Workspace::Get(dqkv)};
  return r;
}

Entry AttentionEntry(const AttentionCase& c) {
  const std::vector<int32_t> cu = Offsets(c.lengths);
  const int64_t longest = *std::max_element(c.lengths.begin(), c.lengths.end());
  Entry e;
  e.name = absl::StrCat(
      "Attention_", c.heads, "x", c.dim, "_to", longest, c.p > 0 ? "_dropout" : "", Suffix(c.type));
  const auto [before, after, prefix] = c.visible;
  if (before < kAllKeys || after < kAllKeys) absl::StrAppend(&e.name, "_sees", before, "_", after);
  if (!c.prefixes.empty()) absl::StrAppend(&e.name, "_prefixes");
  if (!c.causal.empty()) absl::StrAppend(&e.name, "_causal");
  e.path = {longest + c.dim, 4, c.type};
  e.live_rows = cu.back();
  e.inputs = {{"qkv", Role::kStream, RandomTable(cu.back() + c.tail, 3 * c.heads * c.dim, 1)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Attention(in[0], cu, c.heads, Coordinates(in[0].rows).Site(c.p, 4), {},
        c.visible, {}, c.prefixes, c.causal)};
  });
  e.run = [=](const Inputs& p) { return RunAttention(c, cu, p); };
  return e;
}

std::vector<Entry> AttentionEntries() {
  std::vector<Entry> all;
  for (const DType type : {DType::kF32, DType::kBf16}) {
    all.push_back(
        AttentionEntry({.lengths = {1, 2, 17}, .tail = 4, .heads = 2, .dim = 8, .type = type}));
    all.push_back(AttentionEntry(
        {.lengths = {17, 2, 1}, .tail = 4, .heads = 1, .dim = 20, .p = 0.3, .type = type}));
    all.push_back(AttentionEntry(
        {.lengths = {49, 1}, .tail = 14, .heads = 2, .dim = 20, .p = 0.1, .type = type}));
    all.push_back(AttentionEntry(
        {.lengths = {2, 130, 17}, .tail = 3, .heads = 3, .dim = 64, .p = 0.1, .type = type}));
    const AttentionCase several = {
        .lengths = {2, 290, 33, 1, 70}, .tail = 3, .heads = 1, .dim = 20, .p = 0.1, .type = type};
    const AttentionCase two = {
        .lengths = {17, 9}, .tail = 6, .heads = 2, .dim = 8, .p = 0.2, .type = type};
    for (const Visibility& visible : {Visibility{0, 0}, {3, 3}, {40, 20}, {kAllKeys, 0}, {0, 5}}) {
      for (AttentionCase c : {several, two}) {
        c.visible = visible;
        all.push_back(AttentionEntry(c));
      }
    }
    // All keys, a causal sequence, prefixes in the first and in a later block of queries.
    AttentionCase prefixes = several;
    prefixes.lengths = {2, 290, 33, 150, 70};
    prefixes.visible = kCausal;
    prefixes.prefixes = {2, 140, 0, 20, 69};
    all.push_back(AttentionEntry(prefixes));
    // Causal sequences beside others.
    AttentionCase mixed = several;
    mixed.causal = {1, 1, 0, 1, 1};
    for (const Visibility& visible : {Visibility{}, {40, 20}}) {
      mixed.visible = visible;
      all.push_back(AttentionEntry(mixed));
    }
  }
  return all;
}

class AttentionConformance : public testing::TestWithParam<Entry> {};

TEST_P(AttentionConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, AttentionConformance, testing::ValuesIn(AttentionEntries()),
    [](const auto& info) { return info.param.name; });

// The content of rows after the last sequence changes nothing else; their results are zero.
TEST(Attention, IgnoresRowsAfterTheLastSequence) {
  const AttentionCase c = {.lengths = {3, 19}, .tail = 5, .heads = 2, .dim = 8, .p = 0.1};
  const std::vector<int32_t> cu = Offsets(c.lengths);
  Inputs clean = {DType::kF32, {RandomTable(27, 48, 1)}, {RandomTable(27, 16, 2)}}, dirty = clean;
  for (int64_t r = 22; r < 27; ++r) {
    for (int64_t i = 0; i < 48; ++i)
      dirty.inputs[0](r, i) = std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = 0; i < 16; ++i) dirty.dout[0](r, i) = 1e30f;
  }
  const Result a = RunAttention(c, cu, clean), b = RunAttention(c, cu, dirty);
  ExpectSameBits("outputs", a.outputs, b.outputs);
  ExpectSameBits("gradients", a.gradients, b.gradients);
  for (int64_t i = 22 * 16; i < 27 * 16; ++i) EXPECT_EQ(b.outputs[0].v[i], 0);
  for (int64_t i = 22 * 48; i < 27 * 48; ++i) EXPECT_EQ(b.gradients[0].v[i], 0);
}

TEST(Attention, ShowsProbabilitiesAndLogSumExp) {
  const std::vector<int32_t> cu = {0, 1, 18, 67};
  const Table<float> qkv = RandomTable(70, 3 * 2 * 20, 1);
  std::vector<double> expected;
  Attention(Widen<double>(qkv), cu, 2, {}, &expected);
  std::vector<double> near;
  Attention(Widen<double>(qkv), cu, 2, {}, &near, {5, 3});
  Workspace s(DType::kF32);
  const Mat out = s.New(70, 40);
  std::vector<float> lse(2 * 70), probs(expected.size());
  AttentionForward(s.Put(qkv), {cu, 2}, {}, s.arena, out, lse.data(), probs.data());
  ExpectClose("probabilities", 1, probs, expected, {49 + 20, 2, DType::kF32});
  std::vector<float> of_window(near.size(), 7), statistics(2 * 70);
  AttentionForward(
      s.Put(qkv), {cu, 2, {5, 3}}, {}, s.arena, out, statistics.data(), of_window.data());
  ExpectClose("probabilities", 1, of_window, near, {49 + 20, 2, DType::kF32});
  EXPECT_NEAR(
      lse[0],
      [&] {
        double score = 0;
        for (int i = 0; i < 20; ++i) score += double{qkv(0, i)} * qkv(0, 40 + i);
        return score / std::sqrt(20.0);
      }(),
      1e-6);
}

}  // namespace
}  // namespace cloze::reference
