// Memory of large arrays.
#ifndef CLOZE_CORE_BASE_LARGE_MEMORY_H_
#define CLOZE_CORE_BASE_LARGE_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"

namespace cloze {

// Owned zeros from a page's start on. The system gives the pages of a large one as they are
// touched: huge ones where it has them, as looking up the addresses of small ones takes a seventh
// of an optimizer's sweep, or, without `huge`, small ones for who touches few places. Throws
// std::bad_alloc.
class LargeMemory {
 public:
  LargeMemory() {}
  explicit LargeMemory(int64_t bytes, bool huge = true);

  int64_t bytes() const { return data_.get_deleter().bytes; }
  char* get() const { return data_.get(); }
  template <typename T>
  absl::Span<T> as() const {
    return {reinterpret_cast<T*>(data_.get()), bytes() / sizeof(T)};
  }

 private:
  struct Free {
    Free() : bytes(0) {}
    explicit Free(int64_t n) : bytes(n) {}
    void operator()(char* p) const;
    int64_t bytes;
  };
  std::unique_ptr<char, Free> data_;
};

// Returns an address that is not null and that no process can read or write: it is not canonical on
// x86-64. Views of memory that a dry run only counts point there.
inline char* NoMemory(int64_t offset = 0) {
  return reinterpret_cast<char*>((uintptr_t{1} << 62) + offset);
}

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_LARGE_MEMORY_H_
