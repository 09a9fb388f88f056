// Abseil's hash map, made safe when memory runs out.
#ifndef CLOZE_CORE_TEXT_LEARNING_HASH_MAP_H_
#define CLOZE_CORE_TEXT_LEARNING_HASH_MAP_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace cloze {

// Terminates the process when an allocation fails; `cloze` then exits with 77. flat_hash_map must
// not see std::bad_alloc: its destructor frees a wrong address if the map was growing.
template <typename T>
struct TerminatingAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = TerminatingAllocator<U>;
  };
  TerminatingAllocator() = default;
  template <typename U>
  TerminatingAllocator(const TerminatingAllocator<U>&) {}
  T* allocate(size_t count) noexcept { return std::allocator<T>::allocate(count); }
};

// Only for maps that are dropped when the process runs out of memory; others, such as those of a
// tokenizer that is loaded, are std::unordered_map.
template <typename Key, typename Value>
using HashMap = absl::flat_hash_map<Key, Value, typename absl::flat_hash_map<Key, Value>::hasher,
    typename absl::flat_hash_map<Key, Value>::key_equal,
    TerminatingAllocator<std::pair<const Key, Value>>>;

}  // namespace cloze

#endif  // CLOZE_CORE_TEXT_LEARNING_HASH_MAP_H_
