// Optimizers that several ranks share, here threads of one process.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tasks/update/optimizer.h"
#include "tasks/update/outer_optimizer.h"
#include "tests/tasks/update/thread_ranks.h"

namespace cloze {
namespace {

constexpr int64_t kFloats = 2 * kSliceFloats + 96;  // a slice for each rank; whole cache lines

// A vector of kFloats floats, and an operand of matrix products with as many.
ParamStore NewStore() {
  ParamStore store;
  store.AddVector({.name = "a"}, kFloats, Init::kZero);
  store.Edit(store.AddMatrix({.name = "b"}, 2, kFloats / 2)).matmul_only = true;
  store.Allocate(true);
  return store;
}

float Gradient(int64_t i) { return std::sin(static_cast<float>(i)); }

class OptimizerOfRanksTest : public testing::TestWithParam<float> {};

TEST_P(OptimizerOfRanksTest, HasTheBitsOfOneRank) {
  OptimizerSpec spec;
  spec.set_muon_rate(GetParam());
  spec.set_clip_updates(true);
  spec.set_ema_decay(0.9f);
  const auto train = [&](Ranks& ranks, ParamStore& store) {
    Optimizer optimizer(&store, spec, &ranks);
    for (int step = 0; step < 3; ++step) {
      for (int64_t i = 0; i < std::ssize(store.grads()); ++i) store.grads()[i] = Gradient(i + step);
      optimizer.Step(0.1, optimizer.GradNorm());
    }
    optimizer.SwapAverage();
  };
  ParamStore one = NewStore();
  train(OneRank(), one);
  ForRanks([&](Ranks& ranks) {
    ParamStore store = NewStore();
    train(ranks, store);
    ASSERT_EQ(store.values(), one.values());
  });
}

INSTANTIATE_TEST_SUITE_P(Rates, OptimizerOfRanksTest, testing::Values(0, 1.5f),
    [](const auto& info) { return info.param > 0 ? "Muon" : "AdamW"; });

// Returns the values that `rank` holds between steps in bf16: it has rounded values of the operands
// that it does not own.
std::vector<float> ForPasses(absl::Span<const float> exact, const ParamStore& store, int rank) {
  std::vector<float> values(exact.begin(), exact.end());
  const Param& operand = store.param(1);
  for (int64_t i = 0; i < operand.size(); ++i) {
    float* const x = &values[operand.offset + i];
    const auto bits = std::bit_cast<uint32_t>(*x);
    if (OwnerOf(operand.grad_offset + i, kRanks) != rank)
      *x = std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
  }
  return values;
}

// Returns the floats of a parameter that `rank` updates.
int64_t Owned(const Param& param, int rank) {
  int64_t n = 0;
  for (int64_t i = 0; i < param.size(); ++i) n += OwnerOf(param.grad_offset + i, kRanks) == rank;
  return n;
}

// Trains in bf16 with a moving average. Calls see(exact) whenever ranks have exchanged weights.
template <typename F>
void TrainInBf16(Ranks& ranks, ParamStore& store, F see) {
  OptimizerSpec spec;
  spec.set_ema_decay(0.9f);
  Optimizer optimizer(&store, spec, &ranks, DType::kBf16);
  const Shard shard(ranks.rank(), ranks.size(), store.grads().size());
  const auto call = [&](auto method, bool exact) { (optimizer.*method)(), see(exact); };
  for (int step = 0; step < 3; ++step) {
    for (int64_t i = 0; i < std::ssize(store.grads()); ++i)
      if (shard.Has(i)) store.grads()[i] = Gradient(i + step);
    optimizer.Step(0.1, optimizer.GradNorm());
    see(false);
    call(&Optimizer::SwapAverage, false);
    if (step == 1) call(&Optimizer::GatherWeights, true);
    call(&Optimizer::SwapAverage, false);
  }
  call(&Optimizer::GatherWeights, true);
}

TEST(RanksTest, OperandsTravelAsBf16ButOwnersKeepThemExact) {
  std::vector<std::vector<float>> expected;  // by call of `see`
  ParamStore one = NewStore();
  TrainInBf16(OneRank(), one,
      [&](bool) { expected.emplace_back(one.values().begin(), one.values().end()); });
  ForRanks([&](ThreadRanks& ranks) {
    ParamStore store = NewStore();
    const int64_t vector = Owned(store.param(0), ranks.rank()),
                  operand = Owned(store.param(1), ranks.rank());
    size_t next = 0;
    TrainInBf16(ranks, store, [&](bool exact) {
      const std::vector<float>& all = expected.at(next++);
      ASSERT_EQ(store.values(), exact ? all : ForPasses(all, store, ranks.rank())) << next;
      ASSERT_EQ(
          ranks.TakeSentBytes(), (kRanks - 1) * (exact ? 4 * operand : 4 * vector + 2 * operand));
      for (const float gradient : store.grads()) ASSERT_EQ(gradient, 0) << next;
    });
    ASSERT_EQ(next, expected.size());
  });
}

TEST(RanksTest, GatherAndBroadcastKeepEveryBit) {
  struct Value {
    double x;
    int64_t n;
    bool odd;
  };
  ForRanks([](Ranks& ranks) {
    const int64_t rank = ranks.rank();
    const std::vector<Value> all = ranks.Gather(Value{0.1 * rank, INT64_MIN + rank, rank % 2 == 1});
    ASSERT_EQ(all.size(), kRanks);
    for (int r = 0; r < kRanks; ++r) {
      EXPECT_EQ(all[r].x, 0.1 * r);
      EXPECT_EQ(all[r].n, INT64_MIN + r);
      EXPECT_EQ(all[r].odd, r % 2 == 1);
    }
    int64_t number = -7 - rank;
    std::string text = rank == 0 ? "of rank 0" : "another";
    ranks.Broadcast(&number);
    ranks.Broadcast(&text);
    EXPECT_EQ(number, -7);
    EXPECT_EQ(text, "of rank 0");
  });
}

TEST(RanksTest, TheOuterStepMovesToTheMean) {
  DistributedSpec spec;
  spec.set_outer_rate(0.5f);
  spec.set_outer_momentum(0.8f);
  ForRanks([&](Ranks& ranks) {
    ParamStore store = NewStore();
    Optimizer inner(&store, OptimizerSpec());
    OuterOptimizer outer(&store, inner.arrays(), spec, &ranks);
    const absl::Span<float> m = inner.arrays()[0].data, v = inner.arrays()[1].data;
    double start = 0, momentum = 0;
    for (int step = 0; step < 3; ++step) {
      outer.Begin();
      for (int64_t i = 0; i < kFloats; ++i) {
        store.values()[i] += static_cast<float>(ranks.rank() + step);
        m[i] = static_cast<float>(ranks.rank());
        v[i] = static_cast<float>(2 * ranks.rank());
      }
      outer.Step();
      const double g = -(1.0 + step);  // the mean of rank + step
      momentum = 0.8 * momentum + g;
      start -= 0.5 * (g + 0.8 * momentum);
      for (int64_t i = 0; i < kFloats; ++i) {
        ASSERT_NEAR(store.values()[i], start, 1e-5) << i;
        ASSERT_EQ(m[i], 1);
        ASSERT_EQ(v[i], 2);
      }
    }
  });
}

}  // namespace
}  // namespace cloze
