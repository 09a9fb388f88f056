// Memory: large arrays, and the arena of a pass.
#ifndef CLOZE_CORE_TENSOR_ARENA_H_
#define CLOZE_CORE_TENSOR_ARENA_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/tensor/mat.h"

namespace cloze {

// Owns zeroed memory that starts at a page. The system provides large arrays page by page on first
// access. Uses huge pages if available: with small ones, TLB misses take a seventh of an optimizer
// step. The first `sparse` bytes use small pages, because few of them are accessed. Throws
// std::bad_alloc.
class LargeMemory {
 public:
  LargeMemory() {}
  explicit LargeMemory(int64_t bytes, int64_t sparse = 0);

  int64_t bytes() const { return data_.get_deleter().bytes; }
  char* get() const { return data_.get(); }
  // Uses small pages for memory that is first accessed after this call.
  void UseSmallPages();
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

// A bump allocator that frees everything at once, or back to a mark. Not thread-safe. Reset() keeps
// the memory and replaces several blocks by one, which later passes use.
class Arena {
 public:
  static constexpr int64_t kAlignment = 64;

  // Returns an arena without memory: it counts, and hands out distinct addresses that end the
  // process when they are dereferenced. For dry runs (core/ops/profile.h).
  static Arena Counting() {
    Arena arena;
    arena.counting_ = true;
    return arena;
  }

  struct Mark {
    size_t block;
    int64_t used;
    int64_t total;
  };

  // Returns an uninitialized matrix [rows, cols] without gaps between rows.
  Mat New(int64_t rows, int64_t cols, DType type) {
    return {Allocate(rows * cols * SizeOf(type)), rows, cols, cols, type};
  }
  Mat NewZero(int64_t rows, int64_t cols, DType type);
  // Returns an uninitialized array of `n` elements.
  template <typename T>
  T* NewArray(int64_t n) {
    return static_cast<T*>(Allocate(n * sizeof(T)));
  }

  Mark mark() const { return {block_, used_, total_}; }
  // Frees everything that was allocated after `mark`.
  void Rewind(Mark mark);
  // Frees everything.
  void Reset();
  // Resets, and reserves one block of `bytes`, so that passes within it never allocate from the
  // system. Pages that are never touched take no memory.
  void Reserve(int64_t bytes);
  // Bytes in use, and their maximum so far.
  int64_t used() const { return total_; }
  int64_t peak() const { return peak_; }

 private:
  void* Allocate(int64_t bytes);

  std::vector<LargeMemory> blocks_;
  bool counting_ = false;
  size_t block_ = 0;
  int64_t used_ = 0, total_ = 0, peak_ = 0;
};

}  // namespace cloze

#endif  // CLOZE_CORE_TENSOR_ARENA_H_
