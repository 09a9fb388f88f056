#include "core/tensor/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace cloze {
namespace {

bool Aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % Arena::kAlignment == 0; }

TEST(Arena, HandsOutAlignedMatricesApart) {
  Arena arena;
  const Mat a = arena.New(3, 5, DType::kF32), b = arena.New(2, 7, DType::kBf16),
            c = arena.New(0, 5, DType::kF32);
  EXPECT_EQ(a.rows, 3);
  EXPECT_EQ(a.cols, 5);
  EXPECT_EQ(a.stride, 5);
  EXPECT_EQ(b.type, DType::kBf16);
  for (const Mat& m : {a, b, c}) {
    EXPECT_TRUE(Aligned(m.data));
    EXPECT_FALSE(m.empty());
  }
  EXPECT_GE(static_cast<char*>(b.data) - static_cast<char*>(a.data), 3 * 5 * 4);
  EXPECT_GE(static_cast<char*>(c.data) - static_cast<char*>(b.data), 2 * 7 * 2);
}

TEST(Arena, NewZeroClearsUsedMemory) {
  Arena arena;
  const Mat dirty = arena.New(10, 10, DType::kF32);
  std::memset(dirty.data, 0xFF, 400);
  arena.Reset();
  const Mat clean = arena.NewZero(10, 10, DType::kF32);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(clean.f32()[i], 0);
}

TEST(Arena, CountsWithoutMemory) {
  Arena real, counting = Arena::Counting();
  for (Arena* arena : {&real, &counting}) {
    arena->New(3, 5, DType::kF32);
    const Arena::Mark mark = arena->mark();
    arena->NewArray<char>(1000);
    arena->Rewind(mark);
    arena->New(2, 7, DType::kBf16);
  }
  EXPECT_EQ(counting.peak(), real.peak());
  EXPECT_EQ(counting.used(), real.used());
  const Mat huge = counting.New(int64_t{1} << 40, 1024, DType::kF32);
  EXPECT_FALSE(huge.empty());
  EXPECT_NE(counting.NewArray<float>(1), huge.data) << "addresses differ as those of real memory";
  EXPECT_NO_FATAL_FAILURE(counting.NewZero(100, 100, DType::kF32));
  EXPECT_DEATH(static_cast<volatile float*>(huge.data)[0] = 1, "");
}

TEST(Arena, ReservesOneBlock) {
  Arena arena;
  arena.Reserve(3 << 20);
  char* first = arena.NewArray<char>(1 << 20);
  char* second = arena.NewArray<char>(2 << 20);
  EXPECT_EQ(second - first, 1 << 20);
  arena.Reset();
  EXPECT_EQ(arena.NewArray<char>(64), first);
}

TEST(Arena, RewindGivesTheSameMemoryAgain) {
  Arena arena;
  int* kept = arena.NewArray<int>(100);
  kept[99] = 42;
  const Arena::Mark mark = arena.mark();
  void* first = arena.NewArray<char>(1000);
  arena.NewArray<char>(5000);
  arena.Rewind(mark);
  EXPECT_EQ(arena.NewArray<char>(1000), first);
  EXPECT_EQ(kept[99], 42);
}

TEST(Arena, RewindAcrossBlocks) {
  Arena arena;
  arena.NewArray<char>(100);
  const Arena::Mark mark = arena.mark();
  void* first = arena.NewArray<char>(1000);
  for (int i = 0; i < 5; ++i) arena.NewArray<char>(3 << 20);
  arena.Rewind(mark);
  EXPECT_EQ(arena.NewArray<char>(1000), first);
  char* large = arena.NewArray<char>(3 << 20);
  std::memset(large, 1, 3 << 20);  // the sanitizer watches
}

TEST(Arena, AllocationsNeverOverlap) {
  Arena arena;
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<unsigned char*> parts;
    for (int i = 0; i < 40; ++i) {
      parts.push_back(arena.NewArray<unsigned char>(100000 + 4096 * i));
      std::memset(parts.back(), i, 100000 + 4096 * i);
    }
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(parts[i][0], i);
      EXPECT_EQ(parts[i][100000 + 4096 * i - 1], i);
    }
    arena.Reset();
  }
}

TEST(Arena, OneBlockFromTheSecondPassOn) {
  Arena arena;
  const auto pass = [&] {
    std::vector<char*> parts;
    for (int i = 0; i < 20; ++i) parts.push_back(arena.NewArray<char>(1 << 20));
    return parts;
  };
  pass();
  arena.Reset();
  const auto second = pass();
  for (int i = 1; i < 20; ++i) EXPECT_EQ(second[i] - second[i - 1], 1 << 20);
  arena.Reset();
  EXPECT_EQ(pass(), second) << "and no new memory in the third";
}

TEST(Arena, PeakIsTheMostInUse) {
  Arena arena;
  EXPECT_EQ(arena.peak(), 0);
  arena.NewArray<char>(640);
  const Arena::Mark mark = arena.mark();
  arena.NewArray<char>(6400);
  arena.Rewind(mark);
  arena.NewArray<char>(64);
  EXPECT_EQ(arena.peak(), 7040);
  arena.Reset();
  EXPECT_EQ(arena.peak(), 7040);
}

TEST(Mat, ViewsOfPartsShareMemory) {
  float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Mat m = View(data, 3, 4);
  const Mat columns = Columns(m, 1, 2), rows = Rows(m, 1, 2);
  EXPECT_EQ(columns.f32(2)[0], 9);
  EXPECT_EQ(columns.stride, 4);
  EXPECT_EQ(rows.f32(1)[3], 11);
  const ConstMat corner = Columns(ConstMat(rows), 3, 1);
  EXPECT_EQ(corner.rows, 2);
  EXPECT_EQ(corner.f32(0)[0], 7);
}

}  // namespace
}  // namespace cloze
