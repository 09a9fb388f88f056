// Scopes that observe ops: Profile measures them, DryRun skips their work. While neither is active,
// an op costs a few instructions more.
#ifndef CLOZE_CORE_OPS_PROFILE_H_
#define CLOZE_CORE_OPS_PROFILE_H_

#include <cstdint>
#include <map>
#include <string>

#include "core/base/system.h"

namespace cloze {

// Work of one call of an op.
struct OpCost {
  double flop = 0;   // multiplications and additions of its products
  double bytes = 0;  // read and written at least once
};

// Collects calls, seconds and costs of the ops that run on this thread during its lifetime. One at
// a time.
class Profile {
 public:
  struct Entry {
    int64_t calls = 0;
    double seconds = 0;  // without nested ops
    OpCost cost;
  };

  Profile() { active_ = this; }
  ~Profile() { active_ = nullptr; }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  const std::map<std::string, Entry>& entries() const { return entries_; }
  static Profile* active() { return active_; }

 private:
  friend class Op;
  constinit inline static thread_local Profile* active_ = nullptr;
  std::map<std::string, Entry> entries_;
  double* inner_ = nullptr;  // seconds of the ops nested in the running one
};

// During its lifetime, ops on this thread allocate from the arena but neither read nor write their
// operands. A pass on Arena::Counting() thus yields, within microseconds, the memory that it needs.
// One at a time, and not together with a Profile.
class DryRun {
 public:
  DryRun() { active_ = true; }
  ~DryRun() { active_ = false; }
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;
  static bool active() { return active_; }

 private:
  constinit inline static thread_local bool active_ = false;
};

// The first line of every op of a training pass. Times its scope as the op `name`; `cost` returns
// an OpCost and is called only while a Profile is active. An op returns as soon as it has allocated
// its scratch if dry() is true.
class Op {
 public:
  template <typename Cost>
  Op(const char* name, Cost cost) : dry_(DryRun::active()) {
    if (Profile::active() != nullptr) [[unlikely]]
      Begin(name, cost());
  }
  ~Op() {
    if (profile_ != nullptr) [[unlikely]]
      End();
  }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  bool dry() const { return dry_; }

 private:
  void Begin(const char* name, const OpCost& cost) {
    profile_ = Profile::active();
    entry_ = &profile_->entries_[name];
    ++entry_->calls;
    entry_->cost.flop += cost.flop;
    entry_->cost.bytes += cost.bytes;
    outer_ = profile_->inner_;
    profile_->inner_ = &inner_;
    start_ = SteadySeconds();
  }
  void End() {
    const double seconds = SteadySeconds() - start_;
    entry_->seconds += seconds - inner_;
    profile_->inner_ = outer_;
    if (outer_ != nullptr) *outer_ += seconds;
  }

  bool dry_;
  Profile* profile_ = nullptr;
  Profile::Entry* entry_ = nullptr;
  double start_ = 0, inner_ = 0;
  double* outer_ = nullptr;
};

}  // namespace cloze

#endif  // CLOZE_CORE_OPS_PROFILE_H_
