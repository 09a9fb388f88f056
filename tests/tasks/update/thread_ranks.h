// Ranks that are threads of one process.
#ifndef CLOZE_TESTS_TASKS_UPDATE_THREAD_RANKS_H_
#define CLOZE_TESTS_TASKS_UPDATE_THREAD_RANKS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm/ranks.h"

namespace cloze {

inline constexpr int kRanks = 3;

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
    for (const Message& message : send) sent_bytes_ += message.bytes;
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

  // Returns the bytes sent since the last call.
  int64_t TakeSentBytes() { return std::exchange(sent_bytes_, 0); }

 private:
  Job& job_;
  int rank_;
  int64_t sent_bytes_ = 0;
};

// Calls f(ranks) for each rank, at once.
template <typename F>
void ForRanks(F f) {
  Job job;
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&job, &f, r] {
      ThreadRanks ranks(&job, r);
      f(ranks);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cloze

#endif  // CLOZE_TESTS_TASKS_UPDATE_THREAD_RANKS_H_
