#include "core/base/large_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/number.h"

namespace cloze {
namespace {

constexpr int64_t kPage = 4096, kHugePage = 2 << 20;

bool Mapped(int64_t bytes) { return bytes >= kHugePage; }

// Maps one huge page more than needed, and unmaps the rest before and after the aligned part.
char* Map(int64_t bytes, bool huge) {
  const int64_t wanted = RoundUp(bytes, kPage), all = wanted + kHugePage;
  void* const p = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(p);
  char* const data = begin + (RoundUp(reinterpret_cast<uintptr_t>(begin), kHugePage) -
                                 reinterpret_cast<uintptr_t>(begin));
  if (data > begin) ::munmap(begin, data - begin);
  if (begin + all > data + wanted) ::munmap(data + wanted, begin + all - (data + wanted));
  ::madvise(data, wanted, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return data;
}

char* Allocate(int64_t bytes) {
  void* const p = std::aligned_alloc(kPage, RoundUp(bytes, kPage));
  return p == nullptr ? nullptr : static_cast<char*>(std::memset(p, 0, bytes));
}

}  // namespace

LargeMemory::LargeMemory(int64_t bytes, bool huge) {
  if (bytes == 0) return;
  data_ = {Mapped(bytes) ? Map(bytes, huge) : Allocate(bytes), Free(bytes)};
  if (data_ == nullptr) throw std::bad_alloc();
}

void LargeMemory::Free::operator()(char* p) const {
  if (Mapped(bytes)) ::munmap(p, RoundUp(bytes, kPage));
  if (!Mapped(bytes)) std::free(p);
}

}  // namespace cloze
