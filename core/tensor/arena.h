// Memory of a pass: bump allocation, freed all at once or back to a mark.
#ifndef CLOZE_CORE_TENSOR_ARENA_H_
#define CLOZE_CORE_TENSOR_ARENA_H_

#include <cstdint>
#include <vector>

#include "core/base/large_memory.h"
#include "core/tensor/mat.h"

namespace cloze {

// Not thread-safe. After Reset() everything handed out is invalid; the memory is kept, as one block
// from the second pass on.
class Arena {
 public:
  static constexpr int64_t kAlignment = 64;

  // Returns an arena without memory: it counts, and hands out distinct addresses that end the
  // process when they are dereferenced. For dry runs (core/base/profile.h).
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

  // Uninitialised matrix [rows, cols]; its rows stand without gaps.
  Mat New(int64_t rows, int64_t cols, DType type) {
    return {Allocate(rows * cols * SizeOf(type)), rows, cols, cols, type};
  }
  Mat NewZero(int64_t rows, int64_t cols, DType type);
  // Uninitialised array of `n` elements.
  template <typename T>
  T* NewArray(int64_t n) {
    return static_cast<T*>(Allocate(n * sizeof(T)));
  }

  Mark mark() const { return {block_, used_, total_}; }
  // Frees everything handed out since `mark`.
  void Rewind(Mark mark);
  // Frees everything.
  void Reset();
  // Reset, and room for `bytes` in one block, so that passes which need no more never ask the
  // system again. Pages that no pass touches cost nothing.
  void Reserve(int64_t bytes);
  // Bytes in use, and the most that were ever in use at once.
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
