// Optimizers that several ranks share, here threads of one process.
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <thread>

#include "tasks/training/outer_optimizer.h"

namespace cloze {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kSize = 2 * kPiece + 100;  // a piece for each rank

// What the ranks of a job share.
struct Job {
  std::barrier<> barrier{kRanks};
  absl::Span<double> numbers[kRanks];
  std::vector<Ranks::Message> sent[kRanks];
};

class ThreadRanks : public Ranks {
 public:
  ThreadRanks(Job* job, int rank) : job_(*job), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return kRanks; }
  void Sum(absl::Span<double> numbers) override {
    std::vector<double> sums(numbers.size());
    job_.numbers[rank_] = numbers;
    job_.barrier.arrive_and_wait();
    for (const absl::Span<double> of_rank : job_.numbers) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += of_rank[i];
    }
    job_.barrier.arrive_and_wait();
    std::copy(sums.begin(), sums.end(), numbers.begin());
  }
  void Exchange(absl::Span<const Message> send, absl::Span<const Message> receive) override {
    job_.sent[rank_].assign(send.begin(), send.end());
    job_.barrier.arrive_and_wait();
    size_t next[kRanks] = {};
    for (const Message& wanted : receive) {
      const std::vector<Message>& sent = job_.sent[wanted.rank];
      size_t& i = next[wanted.rank];
      while (sent.at(i).rank != rank_) ++i;
      ASSERT_EQ(sent[i].bytes, wanted.bytes);
      std::copy_n(sent[i++].data, wanted.bytes, wanted.data);
    }
    job_.barrier.arrive_and_wait();
  }

 private:
  Job& job_;
  int rank_;
};

// Calls f(ranks, store of one parameter) for each rank, at once.
template <typename F>
void ForRanks(F f) {
  Job job;
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&job, &f, r] {
      ThreadRanks ranks(&job, r);
      ParamStore store;
      store.AddVector({.name = "a"}, kSize, Init::kZero);
      store.Allocate(true);
      f(ranks, store);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

float Gradient(int64_t i) { return std::sin(static_cast<float>(i)); }

TEST(RanksTest, TheOptimizerHasTheBitsOfOneRank) {
  OptimizerSpec spec;
  spec.set_clip_updates(true);
  spec.set_ema_decay(0.9f);
  const auto train = [&](Ranks& ranks, ParamStore& store) {
    Optimizer optimizer(&store, spec, &ranks);
    for (int step = 0; step < 3; ++step) {
      for (int64_t i = 0; i < kSize; ++i) store.grads()[i] = Gradient(i + step);
      optimizer.Step(0.1, optimizer.GradNorm());
    }
    optimizer.SwapAverage();
  };
  ParamStore one;
  one.AddVector({.name = "a"}, kSize, Init::kZero);
  one.Allocate(true);
  train(OneRank(), one);
  ForRanks([&](Ranks& ranks, ParamStore& store) {
    train(ranks, store);
    for (int64_t i = 0; i < kSize; ++i) ASSERT_EQ(store.values()[i], one.values()[i]) << i;
  });
}

TEST(RanksTest, TheOuterStepMovesToTheMean) {
  DistributedSpec spec;
  spec.set_outer_rate(0.5f);
  spec.set_outer_momentum(0.8f);
  ForRanks([&](Ranks& ranks, ParamStore& store) {
    Optimizer inner(&store, OptimizerSpec());
    OuterOptimizer outer(&store, &inner, spec, &ranks);
    double start = 0, momentum = 0;
    for (int step = 0; step < 3; ++step) {
      outer.Begin();
      for (int64_t i = 0; i < kSize; ++i) {
        store.values()[i] += static_cast<float>(ranks.rank() + step);
        inner.m()[i] = static_cast<float>(ranks.rank());
        inner.v()[i] = static_cast<float>(2 * ranks.rank());
      }
      outer.Step();
      const double g = -(1.0 + step);  // the mean of rank + step
      momentum = 0.8 * momentum + g;
      start -= 0.5 * (g + 0.8 * momentum);
      for (int64_t i = 0; i < kSize; ++i) {
        ASSERT_NEAR(store.values()[i], start, 1e-5) << i;
        ASSERT_EQ(inner.m()[i], 1);
        ASSERT_EQ(inner.v()[i], 2);
      }
    }
  });
}

}  // namespace
}  // namespace cloze
