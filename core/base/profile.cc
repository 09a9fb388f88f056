#include "core/base/profile.h"

namespace cloze {

void Op::Begin(const char* name, const OpCost& cost) {
  profile_ = Profile::active();
  entry_ = &profile_->entries_[name];
  ++entry_->calls;
  entry_->cost.flop += cost.flop;
  entry_->cost.bytes += cost.bytes;
  outer_ = profile_->inner_;
  profile_->inner_ = &inner_;
  start_ = std::chrono::steady_clock::now();
}

void Op::End() {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  entry_->seconds += seconds - inner_;
  profile_->inner_ = outer_;
  if (outer_ != nullptr) *outer_ += seconds;
}

}  // namespace cloze
