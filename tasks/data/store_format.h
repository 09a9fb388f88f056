// The records of a store's files; private to tasks/data.
#ifndef CLOZE_TASKS_DATA_STORE_FORMAT_H_
#define CLOZE_TASKS_DATA_STORE_FORMAT_H_

#include <bit>
#include <cstdint>

#include "tasks/data/example_store.h"

namespace cloze {

static_assert(std::endian::native == std::endian::little, "stores are little endian");

inline constexpr uint64_t kStoreMagic =
    0x31305358455A4C43;  // "CLZEXS01" read as a little-endian number
inline constexpr uint32_t kContinuesBit = uint32_t{1} << 31;
inline constexpr uint32_t kMaxExampleTokens = 1 << 20;
inline constexpr uint32_t kTargetsShift = 28;  // of `num_labels` in the header: its Targets
inline constexpr const char* kStoreFiles[] = {"header", "index", "labels", "tokens"};

struct StoreHeader {
  uint64_t magic;
  uint32_t version, vocab, num_labels, token_bytes;
  int64_t examples, tokens, labels;
  uint64_t index_hash, tokens_hash, labels_hash;
  DataStats stats;
  uint64_t self_hash;  // of all fields before
};
static_assert(sizeof(StoreHeader) == 24 + 48 + sizeof(DataStats) + 8, "no padding");

struct IndexRecord {
  uint64_t first_token, first_label;
  uint32_t length, second, labels, check;
};
static_assert(sizeof(IndexRecord) == 32, "no padding");

struct LabelRecord {
  uint32_t row, label;
};

// Returns the exclusive upper bound of labels in a record.
inline uint32_t LabelLimit(int32_t num_labels, Targets targets) {
  return targets == Targets::kLabels ? num_labels
         : targets == Targets::kSet  ? num_labels + 1
                                     : ~uint32_t{0};
}

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_STORE_FORMAT_H_
