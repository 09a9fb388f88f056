// Conformance of the convolution's input; see tests/reference/conformance.h.
#include <gtest/gtest.h>

#include "core/ops/unfold.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

template <typename S>
Table<S> Unfolded(const Table<S>& x, const std::vector<int32_t>& cu_seqlens, int size) {
  Table<S> y(x.rows, x.cols * size);
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    for (int64_t r = cu_seqlens[s]; r < cu_seqlens[s + 1]; ++r) {
      for (int k = 0; k < size; ++k) {
        const int64_t from = r + k - size / 2;
        for (int64_t c = 0; from >= cu_seqlens[s] && from < cu_seqlens[s + 1] && c < x.cols; ++c)
          y(r, c * size + k) = x(from, c);
      }
    }
  }
  return y;
}

Entry UnfoldEntry(const std::vector<int32_t>& cu, int64_t cols, int size, DType type) {
  constexpr int64_t kTail = 3;
  const int64_t rows = cu.back() + kTail;
  Entry e;
  e.name = absl::StrCat("Unfold_", rows, "x", cols, "_by", size, Suffix(type));
  e.path = {size, 2, type};
  e.live_rows = cu.back();
  e.inputs = {{"x", Role::kStream, RandomTable(rows, cols, 1)}};
  e.SetReference(
      [=]<typename S>(const Tables<S>& in) { return Tables<S>{Unfolded(in[0], cu, size)}; });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat y = s.New(rows, size * cols), dx = s.New(rows, cols);
    UnfoldRows(s.Put(p.inputs[0]), cu, size, y);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    UnfoldRowsBackward(s.Put(p.dout[0]), cu, size, dx);
    r.gradients = {Workspace::Get(dx)};
    return r;
  };
  return e;
}

std::vector<Entry> UnfoldEntries() {
  std::vector<Entry> all;
  for (const DType type : {DType::kF32, DType::kBf16}) {
    all.push_back(UnfoldEntry({0, 1, 3, 12}, 5, 3, type));
    all.push_back(UnfoldEntry({0, 1, 4, 134}, 3, 5, type));
    all.push_back(UnfoldEntry({0, 7}, 17, 1, type));
  }
  return all;
}

class UnfoldConformance : public testing::TestWithParam<Entry> {};

TEST_P(UnfoldConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, UnfoldConformance, testing::ValuesIn(UnfoldEntries()),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cloze::reference
