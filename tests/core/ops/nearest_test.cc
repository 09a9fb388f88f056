#include "core/ops/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "core/base/threads.h"

namespace cloze {
namespace {

// Small whole numbers, whose products are exact in every type, with many equal scores.
std::vector<float> Numbers(int64_t n, uint64_t seed) {
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i)
    values[i] = static_cast<float>((seed * 2654435761u + i * 40503u * (i % 7 + 1)) % 15) - 7;
  return values;
}

struct Case {
  int64_t rows, cols, queries, top;
  DType type;
};

class NearestTest : public testing::TestWithParam<Case> {
 protected:
  // The table in the type of the case.
  VectorRows Table(const std::vector<float>& values) {
    const Case& c = GetParam();
    bytes_.resize(values.size() * SizeOf(c.type));
    for (size_t i = 0; i < values.size(); ++i) {
      if (c.type == DType::kS8) reinterpret_cast<int8_t*>(bytes_.data())[i] = values[i];
      if (c.type == DType::kF32) reinterpret_cast<float*>(bytes_.data())[i] = values[i];
      if (c.type == DType::kBf16)
        reinterpret_cast<uint16_t*>(bytes_.data())[i] = std::bit_cast<uint32_t>(values[i]) >> 16;
    }
    for (int64_t r = 0; r < c.rows; ++r) scales_.push_back(r % 3 == 0 ? 2 : 1);
    return {bytes_.data(), c.rows, c.cols, c.type, scales_.data()};
  }
  std::vector<char> bytes_;
  std::vector<float> scales_;
};

TEST_P(NearestTest, EqualsASortOfAllProducts) {
  const Case& c = GetParam();
  const std::vector<float> rows = Numbers(c.rows * c.cols, 1),
                           queries = Numbers(c.queries * c.cols, 5);
  const VectorRows table = Table(rows);
  SetThreads(3);
  const auto hits = NearestRows(table, View(queries.data(), c.queries, c.cols), c.top);
  SetThreads(1);
  const auto alone = NearestRows(table, View(queries.data(), c.queries, c.cols), c.top);
  SetThreads(0);
  ASSERT_EQ(std::ssize(hits), c.queries);
  for (int64_t q = 0; q < c.queries; ++q) {
    std::vector<Hit> all;
    for (int64_t r = 0; r < c.rows; ++r) {
      float sum = 0;
      for (int64_t i = 0; i < c.cols; ++i) sum += rows[r * c.cols + i] * queries[q * c.cols + i];
      all.push_back({r, sum * scales_[r]});
    }
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.score > b.score; });
    ASSERT_EQ(std::ssize(hits[q]), std::min(c.top, c.rows));
    for (size_t i = 0; i < hits[q].size(); ++i) {
      EXPECT_EQ(hits[q][i].row, all[i].row) << q << " " << i;
      EXPECT_EQ(hits[q][i].score, all[i].score);
      EXPECT_EQ(alone[q][i].row, all[i].row);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NearestTest,
    testing::Values(Case{1, 1, 1, 5, DType::kF32}, Case{700, 33, 1, 10, DType::kF32},
        Case{700, 33, 40, 10, DType::kF32}, Case{20000, 8, 3, 100, DType::kF32},
        Case{600, 64, 1, 600, DType::kBf16}, Case{600, 64, 9, 20, DType::kBf16},
        Case{600, 40, 2, 20, DType::kS8}, Case{600, 40, 1030, 7, DType::kS8},
        Case{0, 4, 2, 3, DType::kF32}, Case{5, 4, 2, 0, DType::kF32}),
    [](const auto& info) {
      const Case& c = info.param;
      return testing::PrintToString(c.rows) + "x" + testing::PrintToString(c.cols) + "_" +
             testing::PrintToString(c.queries) + "_" + NameOf(c.type);
    });

TEST(Nearest, RoundsQueriesToTheTypeOfTheRowsForAnyNumberOfThem) {
  const uint16_t one = 0x3F80;
  const VectorRows table = {.data = &one, .rows = 1, .cols = 1, .type = DType::kBf16};
  const std::vector<float> queries(6, 1.001f);
  for (const int64_t n : {1, 6})
    EXPECT_EQ(NearestRows(table, View(queries.data(), n, 1), 1)[n - 1][0].score, 1.0f) << n;
}

}  // namespace
}  // namespace cloze
