// Where the time of a pass goes: calls, seconds, work and traffic of each kind of op. While nobody
// profiles, an op pays for one test.
#ifndef CLOZE_CORE_BASE_PROFILE_H_
#define CLOZE_CORE_BASE_PROFILE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace cloze {

// What one call of an op has to do.
struct OpCost {
  double flop = 0;   // multiplications and additions of its products
  double bytes = 0;  // read and written at least once
};

// Collects while it lives, from the thread that runs the passes. One at a time; not thread-safe.
class Profile {
 public:
  struct Entry {
    int64_t calls = 0;
    double seconds = 0;  // without the ops inside
    OpCost cost;
  };

  Profile() { active_ = this; }
  ~Profile() { active_ = nullptr; }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  const std::map<std::string, Entry>& entries() const { return entries_; }
  void Clear() { entries_.clear(); }
  static Profile* active() { return active_; }

 private:
  friend class OpTimer;
  inline static Profile* active_ = nullptr;
  std::map<std::string, Entry> entries_;
  double* inner_ = nullptr;  // seconds of the ops inside the one that runs
};

// Times the scope in which it stands as the op `name`; `cost` is called only while somebody
// profiles, and returns an OpCost.
class OpTimer {
 public:
  template <typename Cost>
  OpTimer(const char* name, Cost cost) {
    if (Profile::active() != nullptr) Begin(name, cost());
  }
  ~OpTimer() {
    if (profile_ != nullptr) End();
  }
  OpTimer(const OpTimer&) = delete;
  OpTimer& operator=(const OpTimer&) = delete;

 private:
  void Begin(const char* name, const OpCost& cost);
  void End();

  Profile* profile_ = nullptr;
  Profile::Entry* entry_ = nullptr;
  std::chrono::steady_clock::time_point start_;
  double inner_ = 0;
  double* outer_ = nullptr;
};

}  // namespace cloze

#endif  // CLOZE_CORE_BASE_PROFILE_H_
