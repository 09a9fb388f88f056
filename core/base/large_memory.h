// Memory for large arrays.
#ifndef CLOZE_CORE_BASE_LARGE_MEMORY_H_
#define CLOZE_CORE_BASE_LARGE_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"

namespace cloze {

// Owns zeroed memory that starts at a page. The system provides pages of
// large arrays on first access: with `huge`, huge pages if available,
// because TLB misses of small pages take a seventh of an optimizer's
// sweep; without it small ones, for sparse access. Throws std::bad_alloc.
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

// Returns a non-null address that no process can read or write, because it is not canonical on
// x86-64. Views in a dry run point there.
inline char* NoMemory(int64_t offset = 0) {
  return reinterpret_cast<char*>((uintptr_t{1} << 62) + offset);
}

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_LARGE_MEMORY_H_
