// AdamW and Muon over the parameters of a model, of which each rank updates its shard.
#ifndef CLOZE_TASKS_TRAINING_OPTIMIZER_H_
#define CLOZE_TASKS_TRAINING_OPTIMIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/comm/ranks.h"
#include "core/ops/kernels/adamw.h"
#include "core/tensor/param_store.h"
#include "proto/task.pb.h"
#include "tasks/training/muon.h"
#include "tasks/training/shard.h"

namespace cloze {

// Optimizer state with one number for every trainable value, as checkpoints hold it.
struct StateArray {
  std::string prefix;      // of the names in the file
  absl::Span<float> data;  // of this rank's shard
  Ranks* ranks;            // that share the array; OneRank(): each rank has all of it
};

// AdamW over a parameter store, with clipping and a moving average of the weights; with muon_rate,
// Muon over its matrices, whose second moments stay zero. Holds the moments of the trainable
// parameters in this rank's shard, in the layout of the store's gradients.
class Optimizer {
 public:
  // A part of a trainable parameter, which one rank updates.
  struct Piece {
    ParamId param;
    int64_t value, grad, n;  // in values(), in grads(), floats
    bool decay;
    float rate;   // multiplies the learning rate
    int owner;    // rank
    int source;   // rank that computes its new weights: of a matrix, the owner of its first piece
    bool narrow;  // the other ranks get it rounded to bf16
    bool matrix;  // updated by Muon
  };

  // `store` and `ranks` must outlive the optimizer. With layer_decay, each layer below the store's
  // highest has a lower rate. `product`: the ProductType of the passes. In bf16 they round the
  // operands of products (Param::operand), so ranks give each other only the rounded values.
  Optimizer(ParamStore* store, const OptimizerSpec& spec, Ranks* ranks = &OneRank(),
      DType product = DType::kF32);

  // Returns the global norm of the gradients, of which each rank needs its shard.
  double GradNorm() const;
  // Takes one step; scales gradients of norm `norm` down to clip_norm if they exceed it. Sets the
  // gradients to zero; those of other shards must be zero already. Gives the new weights to all
  // ranks, as passes read them.
  void Step(double rate, double norm);
  // Starts the moving average, if there is one, with the present weights. The constructor does so.
  void StartAverage();
  // Exchanges the weights and their moving average, if there is one. Gradients must be zero.
  void SwapAverage();
  // Gives the exact weights to all ranks. Call before anything but a pass reads them.
  void GatherWeights();

  // Sets the number of steps taken: the exponent in the bias correction.
  void set_steps(int64_t steps) { steps_ = steps; }
  // The moments of the shard.
  absl::Span<float> m() { return m_.as<float>(); }
  absl::Span<float> v() { return v_.as<float>(); }
  // Moving average of the shard's weights; empty without ema_decay.
  absl::Span<float> average() { return average_.as<float>(); }
  // All of these.
  std::vector<StateArray> arrays();
  // The parts of all trainable parameters, in their order.
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  // Returns the settings of each piece for a step. With clip_updates the rate of a tensor is
  // divided by the root mean square of g / sqrt(v) if that is above 1 (StableAdamW).
  std::vector<AdamW> PieceSettings(const AdamW& all);
  // Calls f(i, place of piece i in the shard) in parallel for the pieces of the shard.
  void ForPieces(absl::FunctionRef<void(int64_t i, int64_t place)> f) const;
  // Takes Muon's step. The gradients of matrices hold the directions before orthogonalization.
  void StepMatrices(float rate);
  // Calls f(weights, average, n) in parallel for parts of the shard, if there is an average.
  void ForAverage(absl::FunctionRef<void(float*, float*, int64_t)> f);
  // Sends the weights of each piece from the rank in its member `from` to all others, narrow pieces
  // rounded to bf16.
  void ShareWeights(int Piece::*from);
  // Bytes that one rank gives to another, or to all others if `to` is -1.
  struct Transfer {
    int from = 0, to = 0;
    absl::Span<char> bytes = {};
  };
  // Carries out the transfer of each piece, which may be empty.
  void Exchange(absl::FunctionRef<Transfer(const Piece&)> of_piece);
  // Calls f(piece, its values [1, n] f32, its gradients' memory as [1, n] bf16) in parallel for the
  // narrow pieces.
  void ForNarrow(absl::FunctionRef<void(const Piece&, Mat exact, Mat rounded)> f);

  ParamStore* store_;
  OptimizerSpec spec_;
  Ranks* ranks_;
  Shard shard_;
  std::vector<Piece> pieces_;
  std::vector<int64_t> own_;  // numbers of the shard's pieces
  LargeMemory m_, v_, average_;
  Muon muon_;
  std::vector<Muon::Matrix> matrices_;  // that this rank updates
  int64_t steps_ = 0;
  bool exact_ = true;  // all ranks have the exact weights
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_OPTIMIZER_H_
