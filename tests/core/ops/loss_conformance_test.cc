// Conformance of the losses with their references; see tests/reference/conformance.h.
#include <gtest/gtest.h>

#include "core/ops/crf.h"
#include "tests/reference/conformance.h"

namespace cloze::reference {
namespace {

Entry LossEntry(int64_t rows, int64_t labels, float spread, DType type) {
  Entry e;
  e.name = absl::StrCat(
      "SoftmaxCrossEntropy_", rows, "x", labels, "_", static_cast<int>(spread), Suffix(type));
  e.path = {labels + rows, 2, type};
  e.inputs = {{"logits", Role::kActivation, RandomTable(rows, labels, 1, spread)}};
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < rows; ++r)
    targets.push_back(
        static_cast<int32_t>((labels - 1) * (rows - 1 - r) / std::max<int64_t>(1, rows - 1)));
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Table<S>(1, 1, {CrossEntropy(in[0], targets)})};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat logits = s.Put(p.inputs[0]);
    const LossSum sum = SoftmaxCrossEntropy(
        logits, targets.data(), p.dout.empty() || !p.need_dx ? 0 : p.dout[0].v[0], s.arena);
    Result r = {{Table<float>(1, 1, {static_cast<float>(sum.loss)})}, {}};
    if (p.dout.empty() || !p.need_dx)
      ExpectSameBits("logits", {Workspace::Get(logits)}, {p.inputs[0]});
    if (!p.dout.empty()) r.gradients = {p.need_dx ? Workspace::Get(logits) : Table<float>()};
    return r;
  };
  return e;
}

Entry CrfEntry(const std::vector<int32_t>& lengths, int64_t labels, float spread, DType type) {
  Entry e;
  std::vector<int32_t> cu = {0}, targets;
  for (const int32_t length : lengths) cu.push_back(cu.back() + length);
  for (int32_t r = 0; r < cu.back(); ++r) targets.push_back(static_cast<int32_t>(r * 7 % labels));
  e.name =
      absl::StrCat("CrfLoss_", cu.back(), "x", labels, "_", static_cast<int>(spread), Suffix(type));
  e.path = {labels + cu.back(), 2, type};
  e.inputs = {{"logits", Role::kStream, RandomTable(cu.back(), labels, 1, spread)},
      {"start", Role::kParameter, RandomTable(1, labels, 2)},
      {"between", Role::kParameter, RandomTable(labels, labels, 3)},
      {"end", Role::kParameter, RandomTable(1, labels, 4)}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Table<S>(1, 1, {CrfLoss(in[0], lengths, targets, in[1].v, in[2], in[3].v)})};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat start = s.Put(p.inputs[1], DType::kF32), between = s.Put(p.inputs[2], DType::kF32),
              end = s.Put(p.inputs[3], DType::kF32);
    const Crf crf = {start.f32(), between.f32(), end.f32()};
    Table<float> d1(1, labels), d2(labels, labels), d3(1, labels);
    Mat logits = s.Put(p.inputs[0]);
    const double loss = CrfLoss(logits, cu, targets.data(), crf, 0, {}, s.arena).loss;
    ExpectSameBits("logits", {Workspace::Get(logits)}, {p.inputs[0]});
    Result r = {{Table<float>(1, 1, {static_cast<float>(loss)})}, {}};
    if (p.dout.empty()) return r;
    for (int i = 0; i < p.backwards; ++i) {
      logits = s.Put(p.inputs[0]);
      EXPECT_EQ(CrfLoss(logits, cu, targets.data(), crf, p.dout[0].v[0],
                    {d1.v.data(), d2.v.data(), d3.v.data()}, s.arena)
                    .loss,
          loss);
    }
    r.gradients = {Workspace::Get(logits), d1, d2, d3};
    return r;
  };
  return e;
}

// A loss of f32 logits: `reference` defines it, `run` computes it with its gradient in place.
template <typename F>
Entry FloatLossEntry(const std::string& name, const Table<float>& logits, F reference,
    std::function<LossSum(Mat, float, Arena&)> run) {
  Entry e;
  e.name = absl::StrCat(name, "_", logits.rows, "x", logits.cols);
  e.path = {logits.cols + logits.rows, 2, DType::kF32};
  e.inputs = {{"logits", Role::kActivation, logits}};
  e.SetReference([=]<typename S>(const Tables<S>& in) {
    return Tables<S>{Table<S>(1, 1, {reference(in[0])})};
  });
  e.run = [=](const Inputs& p) {
    Workspace s(p.type);
    const Mat x = s.Put(p.inputs[0]);
    const bool gradient = !p.dout.empty() && p.need_dx;
    const LossSum sum = run(x, gradient ? p.dout[0].v[0] : 0, s.arena);
    Result r = {{Table<float>(1, 1, {static_cast<float>(sum.loss)})}, {}};
    if (!gradient) ExpectSameBits("logits", {Workspace::Get(x)}, {p.inputs[0]});
    if (!p.dout.empty()) r.gradients = {gradient ? Workspace::Get(x) : Table<float>()};
    return r;
  };
  return e;
}

void AddFloatLosses(std::vector<Entry>* all) {
  for (const auto& [rows, labels] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {130, 17}}) {
    const Table<float> logits = RandomTable(rows, labels, 1, 2);
    std::vector<int32_t> targets;
    std::vector<float> weights, sets, numbers = RandomTable(rows, labels, 2, 3).v;
    for (int64_t r = 0; r < rows; ++r)
      targets.push_back(static_cast<int32_t>((7 * r + 1) % labels));
    for (int64_t c = 0; c < labels; ++c)
      weights.push_back(c == 1 ? 0 : 0.25f * static_cast<float>(c + 1));
    for (const float x : numbers) sets.push_back(x > 0 ? 1 : 0);
    for (const float smoothing : {0.0f, 0.1f}) {
      for (const std::vector<float>& w : {std::vector<float>(), weights}) {
        all->push_back(FloatLossEntry(
            absl::StrCat("WeightedCrossEntropy", w.empty() ? "" : "_weights",
                smoothing > 0 ? "_smooth" : ""),
            logits,
            [=](const auto& x) { return WeightedCrossEntropy(x, targets, w, double{smoothing}); },
            [=](Mat x, float scale, Arena& arena) {
              return cloze::WeightedCrossEntropy(x, targets.data(), {w, smoothing}, scale, arena);
            }));
      }
    }
    all->push_back(FloatLossEntry(
        "BinaryCrossEntropy", logits, [=](const auto& x) { return BinaryCrossEntropy(x, sets); },
        [=](Mat x, float scale, Arena& arena) {
          return cloze::BinaryCrossEntropy(x, sets.data(), scale, arena);
        }));
    all->push_back(FloatLossEntry(
        "SquaredError", logits, [=](const auto& x) { return SquaredError(x, numbers); },
        [=](Mat x, float scale, Arena& arena) {
          return cloze::SquaredError(x, numbers.data(), scale, arena);
        }));
  }
}

std::vector<Entry> Losses() {
  std::vector<Entry> entries, *all = &entries;
  for (const DType type : {DType::kF32, DType::kBf16}) {
    all->push_back(LossEntry(1, 1, 1, type));
    all->push_back(LossEntry(5, 24, 1, type));
    all->push_back(LossEntry(7, 3, 30, type));
    all->push_back(LossEntry(9, 1031, 3, type));
    all->push_back(CrfEntry({1}, 3, 1, type));
    all->push_back(CrfEntry({4, 0, 1, 7}, 5, 2, type));
    all->push_back(CrfEntry(std::vector<int32_t>(40, 2), 2, 10, type));
  }
  AddFloatLosses(all);
  return entries;
}

class LossConformance : public testing::TestWithParam<Entry> {};

TEST_P(LossConformance, Holds) { CheckConformance(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, LossConformance, testing::ValuesIn(Losses()),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cloze::reference
