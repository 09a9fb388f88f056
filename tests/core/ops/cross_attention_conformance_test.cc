// Conformance of attention to other sequences with its reference; see
// tests/reference/conformance.h.
#include <gtest/gtest.h>

#include "core/ops/attention.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

// Coordinates of `rows` rows; must outlive the sites made from it.
struct RowsOfSevens {
  std::vector<uint64_t> example;
  std::vector<int32_t> position;
  explicit RowsOfSevens(int64_t rows) {
    for (int64_t r = 0; r < rows; ++r)
      example.push_back(r / 7), position.push_back(static_cast<int32_t>(r % 7));
  }
  DropoutSite Site(float p, uint32_t site) const {
    return {p, 42, site, {example.data(), position.data()}};
  }
};

std::vector<int32_t> FirstRows(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> cu = {0};
  for (const int32_t n : lengths) cu.push_back(cu.back() + n);
  return cu;
}

// Queries and keys of sequences with these lengths, and three rows behind each.
Entry CrossAttentionEntry(const std::vector<int32_t>& queries, const std::vector<int32_t>& keys,
    int heads, int64_t dim, float p, DType type) {
  const std::vector<int32_t> cu = FirstRows(queries), key_cu = FirstRows(keys);
  const int64_t rows = cu.back() + 3, key_rows = key_cu.back() + 3, hidden = heads * dim,
                longest = *std::max_element(keys.begin(), keys.end());
  Entry e;
  e.name = absl::StrCat("CrossAttention_", heads, "x", dim, "_", rows, "to", longest, Suffix(type));
  e.path = {longest + dim, 4, type};
  e.live_rows = cu.back();
  e.inputs = {{"q", Role::kStream, RandomTable(rows, hidden, 1)},
      {"kv", Role::kStream, RandomTable(key_rows, 2 * hidden, 2)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{
        CrossAttention(in[0], in[1], cu, key_cu, heads, RowsOfSevens(rows).Site(p, 4))};
  });
  e.run = [=](const Inputs& in) {
    Workspace s(in.type);
    const RowsOfSevens rows_of(rows);
    const DropoutSite site = rows_of.Site(p, 4);
    const AttentionShape shape = {cu, heads};
    const Mat q = s.Put(in.inputs[0]), kv = s.Put(in.inputs[1]), out = s.New(rows, hidden);
    float* lse = s.arena.NewArray<float>(rows * heads);
    CrossAttentionForward(q, kv, shape, key_cu, site, s.arena, out, lse);
    Result r = {{Workspace::Get(out)}, {}};
    if (in.dout.empty()) return r;
    const Mat dout = s.Put(in.dout[0]), dq = s.New(rows, hidden), dkv = s.New(key_rows, 2 * hidden);
    CrossAttentionBackward(q, kv, out, dout, lse, shape, key_cu, site, s.arena, dq, dkv);
    r.gradients = {Workspace::Get(dq), Workspace::Get(dkv)};
    return r;
  };
  return e;
}

std::vector<Entry> CrossAttentionEntries() {
  std::vector<Entry> all;
  for (const DType type : {DType::kF32, DType::kBf16}) {
    all.push_back(CrossAttentionEntry({1, 17, 3}, {9, 1, 20}, 2, 8, 0.2, type));
    all.push_back(CrossAttentionEntry({70, 0, 2}, {3, 5, 130}, 3, 20, 0.1, type));
    all.push_back(CrossAttentionEntry({5, 90}, {290, 40}, 1, 20, 0, type));
  }
  return all;
}

class CrossAttentionConformance : public testing::TestWithParam<Entry> {};

TEST_P(CrossAttentionConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, CrossAttentionConformance, testing::ValuesIn(CrossAttentionEntries()),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cloze::reference
