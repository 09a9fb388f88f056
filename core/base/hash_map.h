// Abseil's hash tables. Their order is salted: nothing that is written or computed may depend on
// it.
#ifndef CLOZE_CORE_BASE_HASH_MAP_H_
#define CLOZE_CORE_BASE_HASH_MAP_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace cloze {

// Calls std::terminate with std::bad_alloc if memory fails (tools/main.cc then reports it), because
// a table whose growth ends with an exception cannot be destroyed.
template <typename T>
struct TableAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = TableAllocator<U>;
  };
  TableAllocator() = default;
  template <typename U>
  TableAllocator(const TableAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t n) noexcept { return std::allocator<T>::allocate(n); }
};

template <typename K, typename V>
using HashMap = absl::flat_hash_map<K, V, typename absl::flat_hash_map<K, V>::hasher,
    typename absl::flat_hash_map<K, V>::key_equal, TableAllocator<std::pair<const K, V>>>;

template <typename K>
using HashSet = absl::flat_hash_set<K, typename absl::flat_hash_set<K>::hasher,
    typename absl::flat_hash_set<K>::key_equal, TableAllocator<K>>;

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_HASH_MAP_H_
