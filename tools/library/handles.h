// Handles of a C API.
#ifndef CLOZE_TOOLS_LIBRARY_HANDLES_H_
#define CLOZE_TOOLS_LIBRARY_HANDLES_H_

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/status.h"

namespace cloze {

// Objects by handles that are used only once, so that one that was closed is known. Thread-safe.
template <typename Handle, typename T>
class Handles {
 public:
  // `kind`, 0 or 1, keeps the handles of two classes apart.
  explicit Handles(uintptr_t kind) : last_(16 * kind) {}

  Handle* Add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    last_ += 32;
    objects_[last_] = std::move(object);
    return reinterpret_cast<Handle*>(last_);
  }
  // kUsage for a handle that is closed or unknown.
  absl::StatusOr<std::shared_ptr<T>> Find(const Handle* handle) { return At(handle, false); }
  absl::StatusOr<std::shared_ptr<T>> Remove(const Handle* handle) { return At(handle, true); }

 private:
  absl::StatusOr<std::shared_ptr<T>> At(const Handle* handle, bool remove) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    if (found == objects_.end())
      return Error(Exit::kUsage,
          handle == nullptr ? "the handle is NULL" : "the handle is closed, or never was one");
    std::shared_ptr<T> object = found->second;
    if (remove) objects_.erase(found);
    return object;
  }

  std::mutex mutex_;
  std::map<uintptr_t, std::shared_ptr<T>> objects_;
  uintptr_t last_;
};

}  // namespace cloze

#endif  // CLOZE_TOOLS_LIBRARY_HANDLES_H_
