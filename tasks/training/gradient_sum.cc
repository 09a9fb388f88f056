#include "tasks/training/gradient_sum.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/profile.h"
#include "core/base/threads.h"
#include "tasks/training/shard.h"

namespace cloze {
namespace {

constexpr int64_t kChunk = 1 << 16;  // floats of a unit of work
constexpr int64_t kRound = 1 << 18;  // floats that a rank sums at once

// The part of a shard that is summed in the round at `offset`.
Shard RoundOf(const Shard& shard, int64_t offset) {
  return {shard.begin + offset, std::min(kRound, shard.n - offset)};
}

Ranks::Message MessageOf(int rank, float* data, int64_t n) {
  return {rank, reinterpret_cast<char*>(data), n * static_cast<int64_t>(sizeof(float))};
}

// The sum of micro-batches [first, first + size).
struct Partial {
  int64_t first, size;
  float* data = nullptr;
};

bool AreSiblings(int64_t first, int64_t size, int64_t next_size) {
  return size == next_size && first % (2 * size) == 0;
}

// The blocks into which Add gathers micro-batches [begin, end).
std::vector<Partial> BlocksOf(int64_t begin, int64_t end) {
  std::vector<Partial> blocks;
  while (begin < end) {
    int64_t size = begin == 0 ? std::bit_floor(static_cast<uint64_t>(end)) : begin & -begin;
    while (begin + size > end) size /= 2;
    blocks.push_back({begin, size});
    begin += size;
  }
  return blocks;
}

// Adds up n floats of consecutive pieces. Returns the sum, which is in one of them.
const float* AddPieces(const std::vector<Partial>& pieces, int64_t n) {
  std::vector<Partial> sums;
  const auto merge = [&] {
    const Partial right = sums.back();
    sums.pop_back();
    float* left = sums.back().data;
    for (int64_t i = 0; i < n; ++i) left[i] += right.data[i];
    sums.back().size += right.size;
  };
  for (const Partial& piece : pieces) {
    sums.push_back(piece);
    while (sums.size() > 1 &&
           AreSiblings((sums.end() - 2)->first, (sums.end() - 2)->size, sums.back().size))
      merge();
  }
  while (sums.size() > 1) merge();
  return sums.front().data;
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

int GradientBuffers(int64_t n, bool anywhere) {
  const auto log2 = [](uint64_t k) { return static_cast<int>(std::bit_width(k)) - 1; };
  int most = log2(n);
  // `left` of them may end at a multiple of a power of two that is larger than both parts.
  for (int64_t left = 1; left < n && anywhere; ++left)
    most = std::max(most, std::popcount(static_cast<uint64_t>(left)) + log2(n - left));
  return most;
}

void GradientSum::Add(int64_t number, absl::FunctionRef<void()> pass) {
  if (newest_.size > 0) {
    if (spare_.empty()) spare_.emplace_back(store_->grads().size() * sizeof(float));
    std::swap(newest_.gradients, spare_.back());
    spare_.pop_back();
    store_->SwapGrads(&newest_.gradients);
    blocks_.push_back(std::move(newest_));
  }
  pass();
  newest_ = {number, 1};
  const auto completes = [&](const Block& left) {
    return AreSiblings(left.first, left.size, newest_.size);
  };
  while (!blocks_.empty() && completes(blocks_.back())) Merge();
}

void GradientSum::Merge() {
  Block& left = blocks_.back();
  MoveInto(left.gradients.as<float>(), store_->grads());
  store_->SwapGrads(&left.gradients);
  newest_ = {left.first, left.size + newest_.size};
  spare_.push_back(std::move(left.gradients));
  blocks_.pop_back();
}

void GradientSum::Finish(Ranks& ranks, absl::Span<const int64_t> starts) {
  if (ranks.size() == 1) {
    while (!blocks_.empty()) Merge();
  } else {
    Reduce(ranks, starts);
    for (Block& block : blocks_) {
      SetZero(block.gradients.as<float>());
      spare_.push_back(std::move(block.gradients));
    }
    blocks_.clear();
    const absl::Span<float> grads = store_->grads();
    const Shard shard = ShardOf(ranks.rank(), ranks.size(), grads.size());
    SetZero(grads.first(shard.begin));
    SetZero(grads.subspan(shard.begin + shard.n));
  }
  newest_ = {};
}

void GradientSum::Reduce(Ranks& ranks, absl::Span<const int64_t> starts) {
  const absl::Span<float> grads = store_->grads();
  std::vector<float*> mine;
  for (const Block& block : blocks_) mine.push_back(block.gradients.as<float>().data());
  if (newest_.size > 0) mine.push_back(grads.data());
  const int me = ranks.rank();
  const Shard own = ShardOf(me, ranks.size(), grads.size());
  const int64_t most = grads.size() / ranks.size() + kPiece;
  std::vector<std::vector<float>> buffers;
  for (int64_t offset = 0; offset < most; offset += kRound) {
    std::vector<Ranks::Message> send, receive;
    std::vector<Partial> pieces;
    size_t used = 0;
    for (int r = 0; r < ranks.size(); ++r) {
      const Shard theirs = RoundOf(ShardOf(r, ranks.size(), grads.size()), offset);
      for (float* block : mine) {
        if (r != me && theirs.n > 0) send.push_back(MessageOf(r, block + theirs.begin, theirs.n));
      }
      const Shard wanted = RoundOf(own, offset);
      const std::vector<Partial> blocks = BlocksOf(starts[r], starts[r + 1]);
      for (size_t i = 0; i < blocks.size() && wanted.n > 0; ++i) {
        pieces.push_back(blocks[i]);
        if (r == me) {
          pieces.back().data = mine[i] + wanted.begin;
          continue;
        }
        if (used == buffers.size()) buffers.emplace_back(kRound);
        pieces.back().data = buffers[used++].data();
        receive.push_back(MessageOf(r, pieces.back().data, wanted.n));
      }
    }
    ranks.Exchange(send, receive);
    const Shard wanted = RoundOf(own, offset);
    if (wanted.n <= 0 || pieces.empty()) continue;
    const float* sum = AddPieces(std::move(pieces), wanted.n);
    if (sum != grads.data() + wanted.begin) std::copy_n(sum, wanted.n, &grads[wanted.begin]);
  }
}

}  // namespace cloze
