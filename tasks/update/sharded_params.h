// The trainable parameters of a model, divided among ranks: each updates its shard and gives the
// result to the others.
#ifndef CLOZE_TASKS_UPDATE_SHARDED_PARAMS_H_
#define CLOZE_TASKS_UPDATE_SHARDED_PARAMS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/comm/ranks.h"
#include "core/tensor/param_store.h"

namespace cloze {

// Floats in a slice of the flat gradients, which is never divided between ranks: slice i begins at
// i * kSliceFloats and belongs to rank i mod ranks, so that each rank has a part of every layer.
inline constexpr int64_t kSliceFloats = 1 << 17;

inline int OwnerOf(int64_t gradient, int ranks) {
  return static_cast<int>(gradient / kSliceFloats % ranks);
}

// The slices of one rank. Its arrays hold them one after the other.
class Shard {
 public:
  // `n` flat gradients.
  Shard(int rank, int ranks, int64_t n) : rank_(rank), ranks_(ranks), n_(n) {}

  bool Has(int64_t gradient) const { return OwnerOf(gradient, ranks_) == rank_; }
  // Returns the index in the rank's arrays of a gradient that it has.
  int64_t OffsetOf(int64_t gradient) const {
    return gradient / kSliceFloats / ranks_ * kSliceFloats + gradient % kSliceFloats;
  }
  // Calls f(first gradient, number of gradients) for each slice; of one rank, once for all.
  template <typename F>
  void ForEach(F f) const {
    const int64_t n = ranks_ == 1 ? n_ : kSliceFloats;
    for (int64_t at = rank_ * kSliceFloats; at < n_; at += ranks_ * n) f(at, std::min(n, n_ - at));
  }
  // Floats of the arrays.
  int64_t size() const {
    int64_t size = 0;
    ForEach([&](int64_t, int64_t n) { size += n; });
    return size;
  }
  // Returns an upper bound of the floats of any rank's arrays.
  static int64_t MaxSize(int ranks, int64_t n) {
    const int64_t slices = (n + kSliceFloats - 1) / kSliceFloats;
    return std::min(n, (slices + ranks - 1) / ranks * kSliceFloats);
  }

 private:
  int rank_, ranks_;
  int64_t n_;
};

// An array with a float for every gradient, as checkpoints hold it.
struct StateArray {
  std::string prefix;      // of the names in the file
  absl::Span<float> data;  // of this rank's shard
  Ranks* ranks;            // that share the array; OneRank(): each rank has all of it
};

// The part of a trainable parameter in one slice of the gradients, which one rank updates.
struct ParamSlice {
  ParamId param;
  int64_t value, grad, n;  // in values(), in grads(), floats
};

// Returns the slices of all trainable parameters, in their order.
std::vector<ParamSlice> SlicesOf(const ParamStore& store);

class ShardedParams {
 public:
  // The rank that sends a slice of weights to the others.
  enum class Sender : uint8_t {
    kOwner,    // of the gradients
    kUpdater,  // of a parameter that is updated as a whole, the owner of its first slice
  };

  // `store` and `ranks` must outlive this. `whole`: true for parameters that one rank updates as a
  // whole. `product`: the ProductType of the passes. In bf16 they round the operands of products
  // (Param::matmul_only), so ranks give each other only the rounded values, except of `whole` ones.
  ShardedParams(
      ParamStore* store, Ranks* ranks, DType product = DType::kF32,
      absl::FunctionRef<bool(ParamId)> whole = [](ParamId) { return false; });

  // The shard of this rank.
  const Shard& shard() const { return shard_; }
  Ranks& ranks() const { return *ranks_; }
  // Calls f(slice, its offset in arrays of the shard) in parallel for the slices of the shard.
  void ForOwned(absl::FunctionRef<void(const ParamSlice& slice, int64_t offset)> f) const;
  // Returns the sums over the slices of each parameter, by ParamId, of what f returns for each.
  std::vector<double> SumByParam(
      absl::FunctionRef<double(const ParamSlice& slice, int64_t offset)> f) const;
  // Returns the global norm of the gradients, of which each rank needs its shard.
  double GradNorm() const;
  // True if this rank updates the parameter, which is updated as a whole.
  bool UpdatesWhole(const Param& param) const {
    return OwnerOf(param.grad_offset, ranks_->size()) == ranks_->rank();
  }

  // Collects the gradients of parameters that are updated as a whole where they are; other ranks
  // set theirs to zero.
  void GatherWholeGradients();
  // Gives the weights to all ranks, as passes read them. Rounded weights travel in `mail`, which
  // has the size of the gradients and is zero before and after.
  void ShareWeights(Sender sender, absl::Span<float> mail);
  // Gives the exact weights to all ranks. Call before anything but a pass reads them.
  void GatherWeights();

 private:
  struct RoutedSlice : ParamSlice {
    int owner, updater;  // ranks
    bool narrow;         // the other ranks get it rounded to bf16
  };
  // Bytes that one rank gives to another, or to all others if `to` is -1.
  struct Transfer {
    int from = 0, to = 0;
    absl::Span<char> bytes = {};
  };
  // Carries out the transfer of each slice, which may be empty.
  void Exchange(absl::FunctionRef<Transfer(const RoutedSlice&)> of_slice);
  // Calls f(slice, its values [1, n] f32, its part of the mail as [1, n] bf16) in parallel for the
  // narrow slices.
  void ForNarrow(absl::Span<float> mail,
      absl::FunctionRef<void(const RoutedSlice&, Mat exact, Mat rounded)> f);

  ParamStore* store_;
  Ranks* ranks_;
  Shard shard_;
  std::vector<RoutedSlice> slices_;
  std::vector<int64_t> owned_;  // indices in slices_
  bool exact_ = true;           // all ranks have the exact weights
};

}  // namespace cloze

#endif  // CLOZE_TASKS_UPDATE_SHARDED_PARAMS_H_
