// Conformance of the losses of sentence vectors with their references; see
// tests/reference/conformance.h. Their gradients are added, as those of parameters are.
#include <gtest/gtest.h>

#include "core/ops/contrastive.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

Entry NormalizeEntry(int64_t rows, int64_t cols) {
  Entry e;
  e.name = absl::StrCat("Normalize_", rows, "x", cols);
  e.path = {cols, 2, DType::kF32};
  e.inputs = {{"x", Role::kParameter, RandomTable(rows, cols, 1)}};
  e.SetReference([]<typename S>(const Tables<S>& in) { return Tables<S>{Normalize(in[0])}; });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat y = s.New(rows, cols);
    float* lengths = s.arena.NewArray<float>(rows);
    NormalizeForward(s.Put(p.inputs[0]), y, lengths);
    Result r = {{Workspace::Get(y)}, {}};
    if (p.dout.empty()) return r;
    const Mat dx = s.arena.NewZero(rows, cols, DType::kF32);
    for (int i = 0; i < p.backwards; ++i) NormalizeBackward(y, lengths, s.Put(p.dout[0]), dx);
    r.gradients = {Workspace::Get(dx)};
    return r;
  };
  return e;
}

Entry InBatchEntry(int64_t anchors, int64_t candidates, int64_t cols, bool classes) {
  Entry e;
  e.name =
      absl::StrCat("InBatchLoss_", anchors, "x", candidates, "x", cols, classes ? "_classes" : "");
  e.path = {candidates + cols, 3, DType::kF32};
  const float deviation = 1 / std::sqrt(static_cast<float>(cols));
  e.inputs = {{"a", Role::kParameter, RandomTable(anchors, cols, 1, deviation)},
      {"c", Role::kParameter, RandomTable(candidates, cols, 2, deviation)}};
  std::vector<int32_t> targets, of_a, of_c;
  for (int32_t i = 0; i < anchors; ++i) targets.push_back(static_cast<int32_t>(i * 5 % candidates));
  for (int32_t i = 0; classes && i < candidates; ++i) of_c.push_back(i % 4);
  for (int32_t i = 0; classes && i < anchors; ++i) of_a.push_back(of_c[targets[i]]);
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Table<S>(1, 1, {InBatchLoss(in[0], in[1], targets, of_a, of_c, 20)})};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat a = s.Put(p.inputs[0]), c = s.Put(p.inputs[1]);
    const Mat da = s.arena.NewZero(anchors, cols, DType::kF32),
              dc = s.arena.NewZero(candidates, cols, DType::kF32);
    const auto run = [&](float gradient) {
      return InBatchLoss(a, c, {targets, of_a, of_c}, 20, gradient, s.arena, s.matmul, da, dc).loss;
    };
    Result r = {{Table<float>(1, 1, {static_cast<float>(run(0))})}, {}};
    if (p.dout.empty()) return r;
    for (int i = 0; i < p.backwards; ++i) run(p.dout[0].v[0]);
    r.gradients = {Workspace::Get(da), Workspace::Get(dc)};
    return r;
  };
  return e;
}

// A loss of the rows of a matrix.
template <typename Reference, typename Run>
Entry VectorsEntry(const std::string& name, Table<float> v, Reference reference, Run run) {
  Entry e;
  e.name = absl::StrCat(name, "_", v.rows, "x", v.cols);
  e.path = {v.cols + v.rows, 3, DType::kF32};
  e.inputs = {{"v", Role::kParameter, std::move(v)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Table<S>(1, 1, {reference(in[0])})};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat v = s.Put(p.inputs[0]), dv = s.arena.NewZero(v.rows, v.cols, DType::kF32);
    Result r = {{Table<float>(1, 1, {static_cast<float>(run(v, 0.0f, dv))})}, {}};
    if (p.dout.empty()) return r;
    for (int i = 0; i < p.backwards; ++i) run(v, p.dout[0].v[0], dv);
    r.gradients = {Workspace::Get(dv)};
    return r;
  };
  return e;
}

void AddPairLosses(int32_t pairs, int64_t cols, std::vector<Entry>* all) {
  std::vector<float> scores;
  std::vector<ScoredPair> rows;
  std::vector<Triplet> triplets;
  for (int32_t i = 0; i < pairs; ++i) {
    scores.push_back(static_cast<float>(i * 7 % 5) / 4);
    rows.push_back({2 * i, 2 * i + 1, scores.back()});
    triplets.push_back({3 * i, 3 * i + 1, 3 * i + 2});
  }
  const Table<float> v = Normalize(RandomTable(2 * pairs, cols, 3));
  all->push_back(VectorsEntry(
      "CosentLoss", v, [=](const auto& x) { return CosentLoss(x, scores, 20); },
      [=](Mat x, float gradient, Mat dx) { return cloze::CosentLoss(x, rows, 20, gradient, dx); }));
  all->push_back(VectorsEntry(
      "CosineLoss", v, [=](const auto& x) { return CosineLoss(x, scores); },
      [=](Mat x, float gradient, Mat dx) { return cloze::CosineLoss(x, rows, gradient, dx); }));
  all->push_back(VectorsEntry(
      "TripletLoss", RandomTable(3 * pairs, cols, 4),
      [=](const auto& x) { return TripletLoss(x, 0.5); },
      [=](Mat x, float gradient, Mat dx) {
        return cloze::TripletLoss(x, triplets, 0.5, gradient, dx);
      }));
}

std::vector<Entry> Losses() {
  std::vector<Entry> all = {NormalizeEntry(1, 1), NormalizeEntry(7, 33), NormalizeEntry(70, 24),
      InBatchEntry(1, 1, 8, false), InBatchEntry(5, 9, 24, false), InBatchEntry(5, 9, 24, true),
      InBatchEntry(300, 310, 16, true)};
  AddPairLosses(1, 4, &all);
  AddPairLosses(9, 24, &all);
  AddPairLosses(40, 64, &all);
  return all;
}

class ContrastiveConformance : public testing::TestWithParam<Entry> {};

TEST_P(ContrastiveConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, ContrastiveConformance, testing::ValuesIn(Losses()),
    [](const auto& info) { return info.param.name; });

// The numbers of design/frontier.md, computed in f64: A[i,k] = sin(1+3i+k), C[i,k] = cos(2+3i+2k).
class KnownNumbers : public testing::Test {
 protected:
  KnownNumbers() {
    const Mat a = s_.arena.New(3, 4, DType::kF32), c = s_.arena.New(6, 4, DType::kF32);
    for (int i = 0; i < 6; ++i) {
      for (int k = 0; k < 4; ++k) {
        if (i < 3) a.f32(i)[k] = static_cast<float>(std::sin(1 + 3 * i + k));
        c.f32(i)[k] = static_cast<float>(std::cos(2 + 3 * i + 2 * k));
      }
    }
    a_ = Normalized(a, a_lengths_), c_ = Normalized(c, c_lengths_);
  }
  Mat Normalized(Mat x, float* lengths) {
    const Mat y = s_.New(x.rows, x.cols);
    NormalizeForward(x, y, lengths);
    return y;
  }
  // Mean loss with the first `candidates` rows of C; sets da_ to the gradient of A.
  double InBatch(int64_t candidates) {
    const Mat du = s_.arena.NewZero(3, 4, DType::kF32),
              dc = s_.arena.NewZero(candidates, 4, DType::kF32);
    const std::vector<int32_t> targets = {0, 1, 2};
    const double loss = InBatchLoss(
        a_, Rows(c_, 0, candidates), {targets, {}, {}}, 20, 1.0f / 3, s_.arena, s_.matmul, du, dc)
                            .loss;
    da_ = s_.arena.NewZero(3, 4, DType::kF32);
    NormalizeBackward(a_, a_lengths_, du, da_);
    return loss / 3;
  }
  void ExpectFirstRow(const std::vector<float>& expected) {
    for (int k = 0; k < 4; ++k) EXPECT_NEAR(da_.f32(0)[k], expected[k], 1e-4);
  }

  Workspace s_{DType::kF32};
  float a_lengths_[3], c_lengths_[6];
  Mat a_, c_, da_;
};

TEST_F(KnownNumbers, InBatchLoss) {
  EXPECT_NEAR(InBatch(3), 16.06348883, 1e-4);
  ExpectFirstRow({0.40239935f, 2.86648221f, -7.32458905f, 2.52568698f});
  EXPECT_NEAR(InBatch(6), 18.52251401, 1e-4);
  ExpectFirstRow({-1.24183964f, 3.23997236f, -6.39933736f, 1.31877467f});
}

TEST_F(KnownNumbers, CosentLoss) {
  const Mat v = s_.arena.New(6, 4, DType::kF32), dv = s_.arena.NewZero(6, 4, DType::kF32);
  for (int i = 0; i < 3; ++i) {
    std::copy_n(a_.f32(i), 4, v.f32(2 * i));
    std::copy_n(c_.f32(i), 4, v.f32(2 * i + 1));
  }
  const std::vector<ScoredPair> pairs = {{0, 1, 0.2f}, {2, 3, 0.9f}, {4, 5, 0.5f}};
  EXPECT_NEAR(cloze::CosentLoss(v, pairs, 20, 1, dv), 1.48602366, 1e-5);
  const Mat du = s_.arena.New(3, 4, DType::kF32);
  for (int i = 0; i < 3; ++i) std::copy_n(dv.f32(2 * i), 4, du.f32(i));
  da_ = s_.arena.NewZero(3, 4, DType::kF32);
  NormalizeBackward(a_, a_lengths_, du, da_);
  ExpectFirstRow({-0.84027205f, -2.13459023f, 6.05332786f, -2.37023039f});
}

}  // namespace
}  // namespace cloze::reference
