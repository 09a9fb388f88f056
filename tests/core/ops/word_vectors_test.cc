#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/kernels/kernels.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

// Rows of the table, some of them repeated, in groups of three.
const std::vector<int32_t> kRowIds = {4, 0, 2, 1, 4, 4, 3, 2, 0, 5, 1, 2};
constexpr int64_t kGroup = 3;

// The sum over rows of -log sigmoid(+-hidden . row).
Entry NegativeSamplingEntry(int64_t cols) {
  Entry e;
  e.name = absl::StrCat("NegativeSampling_", cols);
  e.path = {cols + std::ssize(kRowIds), 6, DType::kF32};
  e.inputs = {{"hidden", Role::kParameter, RandomTable(1, cols, 1)},
      {"table", Role::kParameter, RandomTable(6, cols, 2, 0.3)}};
  e.SetReference([]<typename S>(const Tables<S>& in) {
    using std::exp, std::log;
    Table<S> loss(1, 1);
    for (size_t i = 0; i < kRowIds.size(); ++i) {
      S score = 0;
      for (int64_t c = 0; c < in[0].cols; ++c) score += in[0](0, c) * in[1](kRowIds[i], c);
      loss(0, 0) += log(S(1) + exp(i % kGroup == 0 ? -score : score));
    }
    return Tables<S>{loss};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat hidden = s.Put(p.inputs[0]), table = s.Put(p.inputs[1]), loss = s.New(1, 1),
              dhidden = s.arena.NewZero(1, cols, DType::kF32),
              dtable = s.arena.NewZero(6, cols, DType::kF32);
    const float rate = p.dout.empty() ? 0 : -p.dout[0](0, 0);
    std::vector<float> factors(kRowIds.size());
    std::vector<RowUpdate> updates;
    for (int i = 0; i < p.backwards; ++i) {
      loss.f32()[0] = static_cast<float>(GetKernels().negative_sampling({.cols = cols,
          .hidden = hidden.f32(),
          .table = table.f32(),
          .groups = std::ssize(kRowIds) / kGroup,
          .group_size = kGroup,
          .rows = kRowIds.data(),
          .rate = rate,
          .factors = factors.data(),
          .gradient = dhidden.f32()}));
      updates.clear();
      for (size_t j = 0; j < kRowIds.size(); ++j) updates.push_back({kRowIds[j], 0, factors[j]});
      GetKernels().add_rows(std::ssize(updates), updates.data(), cols, hidden.f32(), dtable.f32());
    }
    Result r = {{Workspace::Get(loss)}, {}};
    if (!p.dout.empty()) r.gradients = {Workspace::Get(dhidden), Workspace::Get(dtable)};
    return r;
  };
  return e;
}

// hidden = sum of rows.
Entry SumTableRowsEntry(int64_t cols) {
  Entry e;
  e.name = absl::StrCat("SumTableRows_", cols);
  e.path = {std::ssize(kRowIds), 1, DType::kF32};
  e.gradients = false;
  e.inputs = {{"table", Role::kParameter, RandomTable(6, cols, 2)}};
  e.reference = [=](const Tables<double>& in) {
    Table<double> sum(1, cols);
    for (const int32_t row : kRowIds) {
      for (int64_t c = 0; c < cols; ++c) sum(0, c) += in[0](row, c);
    }
    return Tables<double>{sum};
  };
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat table = s.Put(p.inputs[0]), sum = s.New(1, cols);
    GetKernels().sum_rows.f32(
        std::ssize(kRowIds), cols, table.f32(), kRowIds.data(), sum.f32(), false);
    return Result{{Workspace::Get(sum)}, {}};
  };
  return e;
}

class WordVectorsConformance : public testing::TestWithParam<Entry> {};

TEST_P(WordVectorsConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, WordVectorsConformance,
    testing::Values(NegativeSamplingEntry(16), NegativeSamplingEntry(112), SumTableRowsEntry(48)),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cloze::reference
