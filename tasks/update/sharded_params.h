// The trainable parameters of a model, divided among ranks: each updates its shard and gives the
// result to the others.
#ifndef CLOZE_TASKS_UPDATE_SHARDED_PARAMS_H_
#define CLOZE_TASKS_UPDATE_SHARDED_PARAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/comm/ranks.h"
#include "core/tensor/param_store.h"
#include "tasks/update/gradient_shard.h"

namespace cloze {

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
