#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/attention.h"
#include "core/ops/rows.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

// Each query sees some rows of the cache, in any order.
const std::vector<int32_t> kSeen = {3, 0, 1, 4, 2, 6, 5, 3, 1, 0, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                               16, 17, 18},
                           kEnds = {1, 4, 22};

Entry DecodeEntry(int heads, int64_t dim, DType type) {
  Entry e;
  const int64_t hidden = heads * dim, queries = kEnds.size();
  e.name = absl::StrCat("Decode_", heads, "x", dim, type == DType::kF32 ? "" : "_bf16");
  e.path = {18 + dim, 4, type};
  e.gradients = false;
  e.inputs = {{"q", Role::kActivation, RandomTable(queries + 1, hidden, 1)},
      {"cache", Role::kActivation, RandomTable(19, 2 * hidden, 2)}};
  e.reference = [=](const Tables<double>& in) {
    Table<double> out(queries + 1, hidden);
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t h = 0; h < heads; ++h) {
        std::vector<double> p;
        double sum = 0;
        const int64_t begin = i > 0 ? kEnds[i - 1] : 0;
        for (int64_t j = begin; j < kEnds[i]; ++j) {
          double score = 0;
          for (int64_t d = h * dim; d < (h + 1) * dim; ++d)
            score += in[0](i, d) * in[1](kSeen[j], d);
          sum += p.emplace_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
        }
        for (int64_t j = begin; j < kEnds[i]; ++j) {
          for (int64_t d = h * dim; d < (h + 1) * dim; ++d)
            out(i, d) += p[j - begin] / sum * in[1](kSeen[j], hidden + d);
        }
      }
    }
    return Tables<double>{out};
  };
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat q = s.Put(p.inputs[0]), rows = s.Put(p.inputs[1]), cache = s.New(19, 2 * hidden),
              out = s.New(queries + 1, hidden);
    std::vector<int32_t> all(19);
    for (int32_t i = 0; i < 19; ++i) all[i] = i;
    KeepRows(rows, all, cache);
    DecodeAttention(q, cache, kSeen, kEnds, heads, s.arena, out);
    return Result{{Workspace::Get(out)}, {}};
  };
  return e;
}

class DecodeConformance : public testing::TestWithParam<Entry> {};

TEST_P(DecodeConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, DecodeConformance,
    testing::Values(DecodeEntry(1, 20, DType::kF32), DecodeEntry(3, 64, DType::kF32),
        DecodeEntry(2, 20, DType::kBf16), DecodeEntry(1, 64, DType::kBf16)),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cloze::reference
