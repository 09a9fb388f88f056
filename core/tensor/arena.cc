#include "core/tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace cloze {
namespace {

constexpr int64_t kHugePage = 2 << 20;

int64_t WholePages(int64_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

char* AllocateBlock(int64_t bytes) {
  void* p = std::aligned_alloc(kHugePage, bytes);
  if (p == nullptr) throw std::bad_alloc();
  ::madvise(p, bytes, MADV_HUGEPAGE);
  return static_cast<char*>(p);
}

}  // namespace

Mat Arena::NewZero(int64_t rows, int64_t cols, DType type) {
  Mat m = New(rows, cols, type);
  std::memset(m.data, 0, rows * cols * SizeOf(type));
  return m;
}

void* Arena::Allocate(int64_t bytes) {
  bytes = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (counting_) {
    total_ += bytes;
    peak_ = std::max(peak_, total_);
    return nullptr;
  }
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) ++block_, used_ = 0;
  if (block_ == blocks_.size()) {
    const int64_t size = WholePages(std::max(bytes, total_ / 2));
    blocks_.push_back({std::unique_ptr<char, Free>(AllocateBlock(size)), size});
    used_ = 0;
  }
  void* p = blocks_[block_].data.get() + used_;
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
    for (const Block& block : blocks_) size += block.size;
    blocks_.clear();
    blocks_.push_back({std::unique_ptr<char, Free>(AllocateBlock(size)), size});
  }
  Rewind({0, 0, 0});
}

void Arena::Reserve(int64_t bytes) {
  const int64_t size = WholePages(bytes);
  blocks_.clear();
  blocks_.push_back({std::unique_ptr<char, Free>(AllocateBlock(size)), size});
  Rewind({0, 0, 0});
}

}  // namespace cloze
