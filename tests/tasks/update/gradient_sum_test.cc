// The order of the sum over micro-batches.
#include "tasks/update/gradient_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "absl/algorithm/container.h"
#include "tasks/update/sharded_params.h"

namespace cloze {
namespace {

// Numbers whose sum depends on the order.
float Gradient(int64_t number, int64_t i) {
  return std::ldexp(1.0f + static_cast<float>(i) / 64, static_cast<int>(number * 7 % 23)) * 1.1f;
}

// By recursion: the left part has the largest power of two of leaves.
float Expected(int64_t first, int64_t n, int64_t i) {
  if (n == 1) return Gradient(first, i);
  int64_t left = 1;
  while (2 * left < n) left *= 2;
  return Expected(first, left, i) + Expected(first + left, n - left, i);
}

// Messages between threads, each of which stands for a rank.
struct Mail {
  std::mutex mutex;
  std::condition_variable arrived;
  std::map<std::pair<int, int>, std::deque<std::string>> messages;  // by sender and receiver
};

class ThreadRank : public Ranks {
 public:
  ThreadRank(Mail* mail, int rank, int size) : mail_(mail), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Exchange(absl::Span<const Message> send, absl::Span<const Message> receive) override {
    std::unique_lock lock(mail_->mutex);
    for (const Message& m : send)
      mail_->messages[{rank_, m.rank}].emplace_back(m.data, m.data + m.bytes);
    mail_->arrived.notify_all();
    for (const Message& m : receive) {
      std::deque<std::string>& queue = mail_->messages[{m.rank, rank_}];
      mail_->arrived.wait(lock, [&] { return !queue.empty(); });
      absl::c_copy(queue.front(), m.data);
      queue.pop_front();
    }
  }

 private:
  Mail* mail_;
  int rank_, size_;
};

constexpr int64_t kSize = 2 * kSliceFloats + 100;

class GradientSumTest : public testing::Test {
 protected:
  GradientSumTest() { Prepare(&store_); }
  static void Prepare(ParamStore* store) {
    store->AddVector({.name = "a"}, kSize, Init::kZero);
    store->Allocate(true);
  }
  // Adds the micro-batches of a rank.
  static void Step(
      GradientSum& sum, ParamStore& store, Ranks& ranks, const std::vector<int64_t>& starts) {
    const int64_t end = starts[ranks.rank() + 1];
    for (int64_t number = starts[ranks.rank()]; number < end; ++number) {
      const auto pass = [&](GradientSum::Complete complete) {
        const absl::Span<float> grads = store.grads();
        for (int64_t i = std::ssize(grads) - 1; i >= 0; --i) {
          grads[i] += Gradient(number, i);
          if (i % 1000 == 0) complete(i);
        }
      };
      if (number + 1 == end && ranks.size() > 1) return sum.AddLast(number, pass, ranks, starts);
      sum.Add(number, [&] { pass([](int64_t) {}); });
    }
    sum.Finish(ranks, starts);
  }
  ParamStore store_;
};

TEST_F(GradientSumTest, IsATreeOverTheNumbers) {
  GradientSum sum(&store_);
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 11, 19}) {
    Step(sum, store_, OneRank(), {0, n});
    for (int64_t i = 0; i < kSize; i += 61) EXPECT_EQ(store_.grads()[i], Expected(0, n, i)) << n;
    for (float& g : store_.grads()) g = 0;
  }
}

TEST_F(GradientSumTest, IsTheSameTreeWithAnyShares) {
  for (const std::vector<int64_t>& starts : std::vector<std::vector<int64_t>>{{0, 3, 7}, {0, 1, 7},
           {0, 5, 11}, {0, 0, 4}, {0, 3, 4, 9}, {0, 1, 2, 3}, {0, 6, 7, 13}}) {
    const int size = static_cast<int>(starts.size()) - 1;
    Mail mail;
    std::vector<ParamStore> stores(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      Prepare(&stores[rank]);
      threads.emplace_back([&, rank] {
        ThreadRank ranks(&mail, rank, size);
        GradientSum sum(&stores[rank]);
        Step(sum, stores[rank], ranks, starts);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int64_t i = 0; i < kSize; i += 61) {
      float sum = 0;  // one rank has it, the others have 0
      for (ParamStore& store : stores) sum += store.grads()[i];
      EXPECT_EQ(sum, Expected(0, starts.back(), i)) << testing::PrintToString(starts);
    }
  }
}

TEST_F(GradientSumTest, NeedsTheLogarithmOfBuffers) {
  for (const auto& [n, buffers] : {std::pair(1, 0), {2, 1}, {3, 1}, {4, 2}, {7, 2}, {8, 3}})
    EXPECT_EQ(GradientBuffers(n), buffers) << n;
  for (const auto& [n, buffers] : {std::pair(1, 0), {2, 1}, {3, 2}, {4, 2}, {5, 3}, {7, 4}})
    EXPECT_EQ(GradientBuffers(n, true), buffers) << n;
}

}  // namespace
}  // namespace cloze
