#include "tasks/update/gradient_sum.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/threads.h"
#include "core/ops/profile.h"
#include "tasks/update/sharded_params.h"

namespace cloze {
namespace {

constexpr int64_t kChunk = 1 << 16;  // floats of a unit of work

// Slices of each rank that are summed at once. Fewer wait more often, more need more memory.
int64_t SlicesAtOnce(int ranks) { return std::clamp(64 / ranks, 1, 4); }

// The sum of micro-batches [first, first + size).
struct Partial {
  int64_t first, size;
  float* data = nullptr;
};

bool AreSiblings(int64_t first, int64_t size, int64_t next_size) {
  return size == next_size && first % (2 * size) == 0;
}

// The subtrees into which Add gathers micro-batches [begin, end).
std::vector<Partial> SubtreesOf(int64_t begin, int64_t end) {
  std::vector<Partial> subtrees;
  while (begin < end) {
    int64_t size = begin == 0 ? std::bit_floor(static_cast<uint64_t>(end)) : begin & -begin;
    while (begin + size > end) size /= 2;
    subtrees.push_back({begin, size});
    begin += size;
  }
  return subtrees;
}

// Merges neighbouring partial sums of n floats: siblings only or, with `all`, every part. The
// result overwrites the leftmost of the merged buffers.
void MergeParts(std::vector<Partial>* parts, int64_t n, bool all) {
  std::vector<Partial> sums;
  const auto merge = [&] {
    const Partial right = sums.back();
    sums.pop_back();
    float* left = sums.back().data;
    for (int64_t i = 0; i < n; ++i) left[i] += right.data[i];
    sums.back().size += right.size;
  };
  for (const Partial& part : *parts) {
    sums.push_back(part);
    while (sums.size() > 1 &&
           AreSiblings((sums.end() - 2)->first, (sums.end() - 2)->size, sums.back().size))
      merge();
  }
  while (all && sums.size() > 1) merge();
  *parts = std::move(sums);
}

void SetZero(absl::Span<float> x) {
  ParallelChunks(x.size(), kChunk,
      [&](int64_t begin, int64_t end) { std::fill(x.begin() + begin, x.begin() + end, 0.0f); });
}

// *sum += *more; *more = 0.
void MoveInto(absl::Span<float> sum, absl::Span<float> more) {
  const Op op("gradient sum", [&] { return OpCost{.bytes = 16.0 * sum.size()}; });
  ParallelChunks(sum.size(), kChunk, [&](int64_t begin, int64_t end) {
    float *a = sum.data(), *b = more.data();
    for (int64_t i = begin; i < end; ++i) a[i] += b[i], b[i] = 0;
  });
}

}  // namespace

int64_t GradientBytes(const ParamStore& store, int64_t passes, int ranks) {
  const int64_t buffers = 1 + GradientBuffers(CeilDiv(passes, ranks), /*anywhere=*/ranks > 1);
  return buffers * store.grads().size() * sizeof(float);
}

int GradientBuffers(int64_t n, bool anywhere) {
  const auto log2 = [](uint64_t k) { return static_cast<int>(std::bit_width(k)) - 1; };
  int most = log2(n);
  // The first `left` batches may end at a multiple of a large power of two. They then keep one sum
  // per set bit of `left`, and the rest starts a new tree.
  for (int64_t left = 1; left < n && anywhere; ++left)
    most = std::max(most, std::popcount(static_cast<uint64_t>(left)) + log2(n - left));
  return most;
}

void GradientSum::Add(int64_t number, absl::FunctionRef<void()> pass) {
  KeepNewest();
  pass();
  newest_ = {number, 1};
  const auto completes = [&](const Subtree& left) {
    return AreSiblings(left.first, left.size, newest_.size);
  };
  while (!subtrees_.empty() && completes(subtrees_.back())) Merge();
}

void GradientSum::AddLast(int64_t number, absl::FunctionRef<void(Complete)> pass, Ranks& ranks,
    absl::Span<const int64_t> starts) {
  KeepNewest();
  newest_ = {number, 1};
  std::mutex mutex;
  std::condition_variable changed;
  int64_t complete = store_->grads().size();
  ranks.set_background(true);
  std::thread exchange([&] {
    Reduce(ranks, starts, [&](int64_t from) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return complete <= from; });
    });
  });
  const auto tell = [&](int64_t from) {
    const std::lock_guard lock(mutex);
    complete = std::min(complete, from);
    changed.notify_one();
  };
  pass(tell);
  tell(0);
  ranks.set_background(false);
  exchange.join();
  Clear(ranks);
}

void GradientSum::KeepNewest() {
  if (newest_.size == 0) return;
  if (spare_.empty()) spare_.emplace_back(store_->grads().size() * sizeof(float));
  std::swap(newest_.gradients, spare_.back());
  spare_.pop_back();
  store_->SwapGrads(&newest_.gradients);
  subtrees_.push_back(std::move(newest_));
}

void GradientSum::Merge() {
  Subtree& left = subtrees_.back();
  MoveInto(left.gradients.as<float>(), store_->grads());
  store_->SwapGrads(&left.gradients);
  newest_ = {left.first, left.size + newest_.size};
  spare_.push_back(std::move(left.gradients));
  subtrees_.pop_back();
}

void GradientSum::Finish(Ranks& ranks, absl::Span<const int64_t> starts) {
  if (ranks.size() > 1) Reduce(ranks, starts, [](int64_t) {});
  Clear(ranks);
}

void GradientSum::Clear(const Ranks& ranks) {
  while (ranks.size() == 1 && !subtrees_.empty()) Merge();
  for (Subtree& subtree : subtrees_) {
    SetZero(subtree.gradients.as<float>());
    spare_.push_back(std::move(subtree.gradients));
  }
  subtrees_.clear();
  newest_ = {};
  const absl::Span<float> grads = store_->grads();
  for (int r = 0; r < ranks.size(); ++r) {
    if (r == ranks.rank()) continue;
    Shard(r, ranks.size(), grads.size()).ForEach([&](int64_t at, int64_t n) {
      SetZero(grads.subspan(at, n));
    });
  }
}

void GradientSum::Reduce(
    Ranks& ranks, absl::Span<const int64_t> starts, absl::FunctionRef<void(int64_t)> wait) {
  const absl::Span<float> grads = store_->grads();
  std::vector<Partial> mine;
  for (const Subtree& subtree : subtrees_)
    mine.push_back({subtree.first, subtree.size, subtree.gradients.as<float>().data()});
  if (newest_.size > 0) mine.push_back({newest_.first, newest_.size, grads.data()});
  std::vector<std::vector<float>> buffers;
  const int64_t n = grads.size(), stripe = SlicesAtOnce(ranks.size()) * ranks.size() * kSliceFloats;
  for (int64_t begin = (n - 1) / stripe * stripe; begin >= 0; begin -= stripe) {
    wait(begin);
    std::vector<Ranks::Message> send, receive;
    std::vector<std::pair<int64_t, std::vector<Partial>>> sums;  // of this rank, by gradient
    size_t used = 0;
    for (int64_t at = begin; at < std::min(begin + stripe, n); at += kSliceFloats) {
      const int64_t count = std::min(kSliceFloats, n - at);
      std::vector<Partial> own = mine;
      for (Partial& part : own) part.data += at;
      MergeParts(&own, count, false);
      const int owner = OwnerOf(at, ranks.size());
      if (owner != ranks.rank()) {
        for (const Partial& part : own) send.push_back(MessageOf(owner, part.data, count));
        continue;
      }
      std::vector<Partial>& parts = sums.emplace_back(at, std::vector<Partial>()).second;
      for (int r = 0; r < ranks.size(); ++r) {
        if (r == ranks.rank()) {
          parts.insert(parts.end(), own.begin(), own.end());
          continue;
        }
        for (const Partial& subtree : SubtreesOf(starts[r], starts[r + 1])) {
          if (used == buffers.size()) buffers.emplace_back(kSliceFloats);
          parts.push_back({subtree.first, subtree.size, buffers[used++].data()});
          receive.push_back(MessageOf(r, parts.back().data, count));
        }
      }
    }
    ranks.Exchange(send, receive);
    for (auto& [at, parts] : sums) {
      const int64_t count = std::min(kSliceFloats, n - at);
      MergeParts(&parts, count, true);
      if (!parts.empty() && parts[0].data != &grads[at])
        std::copy_n(parts[0].data, count, &grads[at]);
    }
  }
}

}  // namespace cloze
