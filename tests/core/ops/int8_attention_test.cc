// Attention with products of int8: the kernels of every instruction set, and AttentionForward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/ops/attention.h"
#include "tests/core/ops/runnable.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

Table<float> Rounded(Table<float> t) {
  for (float& x : t.v) x = Round(x, DType::kBf16);
  return t;
}

class Int8AttentionKernels : public testing::TestWithParam<const Kernels*> {
 public:
  // Attention of one sequence and head by the kernel.
  static Table<float> Run(const Table<float>& qkv, const Visibility& visible) {
    Workspace s(DType::kBf16);
    const int64_t tokens = qkv.rows, dim = qkv.cols / 3;
    const Mat x = s.Put(qkv), out = s.New(tokens, dim);
    const auto part = [&](int64_t i) { return Columns(x, i * dim, dim).data; };
    GetParam()->int8_attention({.queries = tokens,
        .tokens = tokens,
        .head_dim = dim,
        .stride = x.stride,
        .key_stride = x.stride,
        .out_stride = out.stride,
        .q = part(0),
        .k = part(1),
        .v = part(2),
        .out = out.data,
        .lse = s.arena.NewArray<float>(tokens),
        .probs = nullptr,
        .scale = 1 / std::sqrt(static_cast<float>(dim)),
        .visible = visible,
        .dropout = {},
        .scratch = s.arena.NewArray<float>(AttentionScratch(tokens, dim, visible))});
    return Workspace::Get(out);
  }
  static Table<double> Expected(const Table<float>& qkv, const Visibility& visible) {
    const std::vector<int32_t> cu = {0, static_cast<int32_t>(qkv.rows)};
    return Attention<double>(Widen<double>(qkv), cu, 1, {}, nullptr, visible);
  }
};

TEST_P(Int8AttentionKernels, AreCloseToTheReference) {
  for (const auto& [tokens, dim] : {std::pair{1, 8}, {3, 20}, {32, 64}, {33, 16}, {64, 32},
           {65, 80}, {130, 64}, {200, 100}, {517, 24}}) {
    for (const Visibility& visible :
        {Visibility{}, Visibility{64, 64}, Visibility{5, 3}, Visibility{150, 1}}) {
      SCOPED_TRACE(absl::StrCat(tokens, "x", dim, " sees ", visible.before, ", ", visible.after));
      const Table<float> qkv = Rounded(RandomTable(tokens, 3 * dim, tokens));
      EXPECT_LE(RelativeError(Run(qkv, visible), Expected(qkv, visible)), 0.02);
    }
  }
}

// Columns of k and v that are far from zero, and tokens and columns with large values.
TEST_P(Int8AttentionKernels, StayCloseWithOutliers) {
  const int64_t tokens = 150, dim = 64;
  Table<float> qkv = RandomTable(tokens, 3 * dim, 1);
  for (int64_t r = 0; r < tokens; ++r) {
    for (const int64_t c : {dim + 3, 2 * dim - 1}) qkv(r, c) += 16;
    qkv(r, dim + 7) *= 8;
    for (int64_t c = 2 * dim; c < 3 * dim; c += 4) qkv(r, c) -= 4;
  }
  for (int64_t c = 0; c < 2 * dim; ++c) qkv(0, c) *= 4;
  qkv = Rounded(qkv);
  EXPECT_LE(RelativeError(Run(qkv, {}), Expected(qkv, {})), 0.02);
}

TEST_P(Int8AttentionKernels, KeepColumnsOfOneValue) {
  const int64_t tokens = 100, dim = 40;
  Table<float> qkv = Rounded(RandomTable(tokens, 3 * dim, 1));
  for (int64_t r = 0; r < tokens; ++r) {
    for (int64_t c = 0; c < dim; ++c) {
      if (r % 3 == 0) qkv(r, c) = 0;
      qkv(r, dim + c) = -1.5f;
      if (c % 2 == 0) qkv(r, 2 * dim + c) = 0.25f * c;
    }
  }
  const Table<float> out = Run(qkv, {});
  const Table<double> expected = Expected(qkv, {});
  for (int64_t r = 0; r < tokens; ++r) {
    for (int64_t c = 0; c < dim; ++c)
      ASSERT_NEAR(out(r, c), expected(r, c), c % 2 == 0 ? 0.005 * 0.25 * c : 0.02)
          << r << ", " << c;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Int8AttentionKernels, testing::ValuesIn(Runnable()),
    [](const auto& info) { return std::string(info.param->name); });

// Sequences of an attention, and its result.
struct Sequences {
  std::vector<int32_t> lengths;
  Visibility visible = {};
  std::vector<int32_t> prefixes = {};
  std::vector<uint8_t> causal = {};
  DropoutSite dropout = {};

  Table<float> Run(const Table<float>& qkv, int heads, bool int8, DType type = DType::kBf16) const {
    const std::vector<int32_t> cu = Offsets(lengths);
    Workspace s(type);
    const Mat out = s.New(cu.back(), qkv.cols / 3);
    const AttentionShape shape = {cu, heads, visible, nullptr, prefixes, causal, int8};
    AttentionForward(Rows(s.Put(qkv), 0, cu.back()), shape, dropout, s.arena, out,
        s.arena.NewArray<float>(cu.back() * heads));
    return Workspace::Get(out);
  }
};

const Table<float> kQkv = RandomTable(400, 3 * 2 * 20, 1);

TEST(Int8Attention, SameBitsForAnyThreadsAndOtherSequences) {
  const Table<float> first = Sequences{{100}}.Run(kQkv, 2, true);
  for (const int threads : {1, 2, 3}) {
    SetThreads(threads);
    for (const std::vector<int32_t>& lengths :
        std::vector<std::vector<int32_t>>{{100, 300}, {100, 7, 200, 64}}) {
      const Table<float> all = Sequences{lengths}.Run(kQkv, 2, true);
      for (size_t i = 0; i < first.v.size(); ++i) ASSERT_EQ(all.v[i], first.v[i]) << i;
    }
  }
  SetThreads(1);
}

TEST(Int8Attention, LeavesOthersAsTheyAre) {
  const Coordinates rows(400);
  for (const Sequences& c : {Sequences{.lengths = {kInt8AttentionTokens - 1, 30, 1}},
           {{100, 80}, kCausal}, {{100, 80}, kCausal, {50, 0}}, {{100, 80}, {}, {}, {1, 1}},
           {.lengths = {100, 80}, .dropout = rows.Site(0.1f, 4)}}) {
    EXPECT_EQ(c.Run(kQkv, 2, true).v, c.Run(kQkv, 2, false).v);
  }
  EXPECT_EQ(Sequences{{100}}.Run(kQkv, 2, true, DType::kF32).v,
      Sequences{{100}}.Run(kQkv, 2, false, DType::kF32).v);
}

}  // namespace
}  // namespace cloze::reference
