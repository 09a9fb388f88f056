#include "tasks/training/gradient_sum.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/profile.h"
#include "core/base/threads.h"

namespace cloze {
namespace {

constexpr int64_t kChunk = 1 << 16;  // floats of a unit of work, and of a rank's range
constexpr int64_t kRound = 1 << 18;  // floats that a rank sums at once

struct Range {
  int64_t begin, n;
  // The part of it that is summed in the round at `offset`.
  Range From(int64_t offset) const { return {begin + offset, std::min(kRound, n - offset)}; }
};

// The gradients that a rank sums, of `n`.
Range RangeOf(int rank, int ranks, int64_t n) {
  const auto begin = [&](int64_t r) {
    return std::min(n, (n + kChunk - 1) / kChunk * r / ranks * kChunk);
  };
  return {begin(rank), begin(rank + 1) - begin(rank)};
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

// Every rank gets the ranges that the others have summed.
void Gather(Ranks& ranks, absl::Span<float> grads) {
  std::vector<Ranks::Message> send, receive;
  const auto range = [&](int r) { return RangeOf(r, ranks.size(), grads.size()); };
  const Range own = range(ranks.rank());
  for (int r = 0; r < ranks.size(); ++r) {
    if (r == ranks.rank()) continue;
    send.push_back(MessageOf(r, &grads[0] + own.begin, own.n));
    receive.push_back(MessageOf(r, &grads[0] + range(r).begin, range(r).n));
  }
  ranks.Exchange(send, receive);
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

int GradientBuffers(int64_t n) { return std::bit_width(static_cast<uint64_t>(n)) - 1; }

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
      const absl::Span<float> used = block.gradients.as<float>();
      ParallelChunks(used.size(), kChunk, [&](int64_t begin, int64_t end) {
        std::fill(used.begin() + begin, used.begin() + end, 0.0f);
      });
      spare_.push_back(std::move(block.gradients));
    }
    blocks_.clear();
    Gather(ranks, store_->grads());
  }
  newest_ = {};
}

void GradientSum::Reduce(Ranks& ranks, absl::Span<const int64_t> starts) {
  const absl::Span<float> grads = store_->grads();
  std::vector<float*> mine;
  for (const Block& block : blocks_) mine.push_back(block.gradients.as<float>().data());
  if (newest_.size > 0) mine.push_back(grads.data());
  const int me = ranks.rank();
  const Range own = RangeOf(me, ranks.size(), grads.size());
  const int64_t most = grads.size() / ranks.size() + kChunk;
  std::vector<std::vector<float>> buffers;
  for (int64_t offset = 0; offset < most; offset += kRound) {
    std::vector<Ranks::Message> send, receive;
    std::vector<Partial> pieces;
    size_t used = 0;
    for (int r = 0; r < ranks.size(); ++r) {
      const Range theirs = RangeOf(r, ranks.size(), grads.size()).From(offset);
      for (float* block : mine) {
        if (r != me && theirs.n > 0) send.push_back(MessageOf(r, block + theirs.begin, theirs.n));
      }
      const Range wanted = own.From(offset);
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
    const Range wanted = own.From(offset);
    if (wanted.n <= 0 || pieces.empty()) continue;
    const float* sum = AddPieces(std::move(pieces), wanted.n);
    if (sum != grads.data() + wanted.begin) std::copy_n(sum, wanted.n, &grads[wanted.begin]);
  }
}

}  // namespace cloze
