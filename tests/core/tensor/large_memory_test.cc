#include "core/tensor/arena.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cloze {
namespace {

TEST(LargeMemory, IsZeroAlignedAndWritableToItsEnd) {
  for (const int64_t sparse : {int64_t{0}, int64_t{5000}, int64_t{3} << 20, int64_t{1} << 40}) {
    for (const int64_t bytes :
        {int64_t{1}, int64_t{4097}, int64_t{2} << 20, (int64_t{4} << 20) + 3}) {
      const LargeMemory memory(bytes, sparse);
      EXPECT_EQ(memory.bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 4096, 0);
      const absl::Span<char> all = memory.as<char>();
      ASSERT_EQ(all.size(), bytes);
      EXPECT_EQ(std::count(all.begin(), all.end(), 0), bytes);
      std::fill(all.begin(), all.end(), 'x');
    }
  }
}

TEST(LargeMemory, OfNoBytesIsEmpty) {
  EXPECT_EQ(LargeMemory().bytes(), 0);
  EXPECT_EQ(LargeMemory(0).get(), nullptr);
}

TEST(LargeMemory, HasAnOwner) {
  LargeMemory first(int64_t{3} << 20);
  first.get()[5] = 7;
  LargeMemory second = std::move(first);
  EXPECT_EQ(second.get()[5], 7);
  second = LargeMemory(100);
  EXPECT_EQ(second.get()[5], 0);
}

TEST(LargeMemory, ThatIsNotThereThrows) {
  EXPECT_THROW(LargeMemory(int64_t{1} << 60), std::bad_alloc);
}

}  // namespace
}  // namespace cloze
