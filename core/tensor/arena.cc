#include "core/tensor/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace cloze {
namespace {

constexpr int64_t kPage = 4096, kHugePage = 2 << 20;

// Maps one huge page more than needed, and unmaps the rest before and after the aligned part.
char* Map(int64_t bytes, int64_t sparse) {
  const int64_t wanted = RoundUp(bytes, kPage), all = wanted + kHugePage;
  void* const p = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(p);
  char* const data = begin + (RoundUp(reinterpret_cast<uintptr_t>(begin), kHugePage) -
                                 reinterpret_cast<uintptr_t>(begin));
  if (data > begin) ::munmap(begin, data - begin);
  if (begin + all > data + wanted) ::munmap(data + wanted, begin + all - (data + wanted));
  const int64_t small = std::min(RoundUp(sparse, kPage), wanted);
  ::madvise(data, small, MADV_NOHUGEPAGE);
  ::madvise(data + small, wanted - small, MADV_HUGEPAGE);
  return data;
}

char* Allocate(int64_t bytes) {
  void* const p = std::aligned_alloc(kPage, RoundUp(bytes, kPage));
  return p == nullptr ? nullptr : static_cast<char*>(std::memset(p, 0, bytes));
}

}  // namespace

LargeMemory::LargeMemory(int64_t bytes, int64_t sparse) {
  if (bytes == 0) return;
  data_ = {bytes >= kHugePage ? Map(bytes, sparse) : Allocate(bytes), Free(bytes)};
  if (data_ == nullptr) throw std::bad_alloc();
}

void LargeMemory::UseSmallPages() {
  if (bytes() >= kHugePage) ::madvise(data_.get(), bytes(), MADV_NOHUGEPAGE);
}

void LargeMemory::Free::operator()(char* p) const {
  if (bytes >= kHugePage) {
    ::munmap(p, RoundUp(bytes, kPage));
  } else {
    std::free(p);
  }
}

Mat Arena::NewZero(int64_t rows, int64_t cols, DType type) {
  Mat m = New(rows, cols, type);
  if (!counting_) std::memset(m.data, 0, rows * cols * SizeOf(type));
  return m;
}

void* Arena::Allocate(int64_t bytes) {
  bytes = RoundUp(std::max<int64_t>(bytes, 1), kAlignment);
  const int64_t before = std::exchange(total_, total_ + bytes);
  peak_ = std::max(peak_, total_);
  if (counting_) return NoMemory(before);
  while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].bytes()) ++block_, used_ = 0;
  if (block_ == blocks_.size()) {
    blocks_.emplace_back(RoundUp(std::max(bytes, before / 2), kHugePage));
    used_ = 0;
  }
  return blocks_[block_].get() + std::exchange(used_, used_ + bytes);
}

void Arena::Rewind(Mark mark) { block_ = mark.block, used_ = mark.used, total_ = mark.total; }

void Arena::Reset() {
  int64_t size = 0;
  for (const LargeMemory& block : blocks_) size += block.bytes();
  if (blocks_.size() > 1) Reserve(size);
  Rewind({0, 0, 0});
}

void Arena::Reserve(int64_t bytes) {
  blocks_.clear();
  blocks_.emplace_back(RoundUp(bytes, kHugePage));
  Rewind({0, 0, 0});
}

}  // namespace cloze
