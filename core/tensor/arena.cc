#include "core/tensor/arena.h"

#include <algorithm>
#include <cstring>

#include "core/base/number.h"

namespace cloze {
namespace {

constexpr int64_t kHugePage = 2 << 20;

int64_t WholePages(int64_t bytes) { return RoundUp(bytes, kHugePage); }

}  // namespace

Mat Arena::NewZero(int64_t rows, int64_t cols, DType type) {
  Mat m = New(rows, cols, type);
  if (!counting_) std::memset(m.data, 0, rows * cols * SizeOf(type));
  return m;
}

void* Arena::Allocate(int64_t bytes) {
  bytes = RoundUp(std::max<int64_t>(bytes, 1), kAlignment);
  if (counting_) {
    void* p = NoMemory(total_);
    total_ += bytes;
    peak_ = std::max(peak_, total_);
    return p;
  }
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].bytes()) ++block_, used_ = 0;
  if (block_ == blocks_.size()) {
    blocks_.emplace_back(WholePages(std::max(bytes, total_ / 2)));
    used_ = 0;
  }
  void* p = blocks_[block_].get() + used_;
  used_ += bytes;
  total_ += bytes;
  peak_ = std::max(peak_, total_);
  return p;
}

void Arena::Rewind(Mark mark) {
  block_ = mark.block;
  used_ = mark.used;
  total_ = mark.total;
}

void Arena::Reset() {
  if (blocks_.size() > 1) {
    int64_t size = 0;
    for (const LargeMemory& block : blocks_) size += block.bytes();
    blocks_.clear();
    blocks_.emplace_back(size);
  }
  Rewind({0, 0, 0});
}

void Arena::Reserve(int64_t bytes) {
  blocks_.clear();
  blocks_.emplace_back(WholePages(bytes));
  Rewind({0, 0, 0});
}

}  // namespace cloze
