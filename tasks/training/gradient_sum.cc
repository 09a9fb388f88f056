#include "tasks/training/gradient_sum.h"

#include <bit>
#include <utility>

#include "core/base/profile.h"
#include "core/base/threads.h"

namespace cloze {
namespace {

// *sum += *more; *more = 0.
void MoveInto(absl::Span<float> sum, absl::Span<float> more) {
  constexpr int64_t kChunk = 1 << 16;
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
    return left.size == newest_.size && left.first % (2 * left.size) == 0;
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

void GradientSum::Finish() {
  while (!blocks_.empty()) Merge();
  newest_ = {};
}

}  // namespace cloze
