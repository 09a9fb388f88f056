// Samples against a distribution function in double, and their frequencies.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/threads.h"
#include "core/ops/profile.h"
#include "core/ops/rows.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

class SampleRowsTest : public testing::TestWithParam<DType> {};

TEST_P(SampleRowsTest, TakesTheFirstLabelBehindTheNumber) {
  constexpr int64_t kRows = 300, kLabels = 67;
  const Table<float> logits = RandomTable(kRows, kLabels, 1, 3);
  Workspace s(GetParam());
  const Mat x = s.Put(logits);
  const Table<float> stored = Workspace::Get(x);
  std::vector<float> uniforms;
  for (int64_t r = 0; r < kRows; ++r) uniforms.push_back(static_cast<float>(r) / kRows);
  std::vector<int32_t> samples(kRows), again(kRows);
  SampleRows(x, uniforms.data(), samples.data());
  for (int64_t r = 0; r < kRows; ++r) {
    double sum = 0, before = 0;
    for (int64_t c = 0; c < kLabels; ++c) sum += std::exp(double{stored(r, c)});
    for (int64_t c = 0; c < samples[r]; ++c) before += std::exp(double{stored(r, c)}) / sum;
    const double own = std::exp(double{stored(r, samples[r])}) / sum;
    EXPECT_LE(before, uniforms[r] + 1e-5) << r;
    EXPECT_GT(before + own, uniforms[r] - 1e-5) << r;
  }
  const int threads = Threads();
  SetThreads(3);
  SampleRows(x, uniforms.data(), again.data());
  SetThreads(threads);
  EXPECT_EQ(samples, again);
}

INSTANTIATE_TEST_SUITE_P(Types, SampleRowsTest, testing::Values(DType::kF32, DType::kBf16));

TEST(SampleRows, NeverTakesWhatIsImpossible) {
  constexpr float kNo = -std::numeric_limits<float>::infinity(), kNan = NAN;
  std::vector<float> logits = {kNo, 0, kNo, 0, kNo, /**/ kNan, kNan, kNan, kNan, kNan};
  const float last = 1 - 0x1p-24f;
  std::vector<int32_t> samples(2, -1);
  SampleRows(View(static_cast<const float*>(logits.data()), 2, 5), std::vector{last, last}.data(),
      samples.data());
  EXPECT_EQ(samples[0], 3);
  EXPECT_EQ(samples[1], 0);
  SampleRows(View(static_cast<const float*>(logits.data()), 1, 5), std::vector{0.0f}.data(),
      samples.data());
  EXPECT_EQ(samples[0], 1);
}

TEST(SampleRows, ReadsNothingInADryRun) {
  const DryRun dry;
  SampleRows(View(static_cast<const float*>(nullptr), 2, 5), nullptr, nullptr);
}

}  // namespace
}  // namespace cloze::reference
