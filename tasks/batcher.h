// Packs the examples of a store into the micro-batches of each optimizer step.
#ifndef CLOZE_TASKS_BATCHER_H_
#define CLOZE_TASKS_BATCHER_H_

#include <cstdint>
#include <vector>

#include "encoder/modules/pass.h"
#include "proto/task.pb.h"
#include "tasks/objective.h"

namespace cloze {

// The micro-batches of one optimizer step.
struct StepData {
  std::vector<Batch> micro;
  int64_t next = 0;              // global number of the first example of the following step
  std::vector<int64_t> waiting;  // earlier ones that the following step begins with
  int64_t tokens = 0;            // without padding rows
};

// Examples get global numbers: epoch * size + place in the epoch's order. The order is a keyed
// permutation, so one integer states the position in the data, and any position is reached in O(1).
// Const methods are thread-safe.
class Batcher {
 public:
  // The store and the task must outlive the batcher.
  Batcher(const ExampleStore& store, const Objective& task, const BatchSpec& spec, uint64_t seed)
      : store_(store), task_(task), spec_(spec), order_(seed, Purpose::kShuffle) {}

  // Returns the step that begins with the examples `waiting`, then `next`; `done` is the share of
  // the run that is done, 0 to 1. Takes as many examples as the spec's tokens or examples allow at
  // that time, at least one; fewer if too many wait because of Objective::TextKeys. Batches are
  // padded; the joined sequences of an example are in one of them.
  absl::StatusOr<StepData> Next(
      int64_t next, double done, const std::vector<int64_t>& waiting = {}) const;

  // Returns the mean number of optimizer steps per pass over the store, over the whole run.
  absl::StatusOr<double> StepsPerEpoch() const;
  // Returns StepsPerEpoch() as earlier versions counted it: each batch has the mean size exactly.
  double FullStepsPerEpoch() const;

  // Returns the mean batch size over the rest of the run, relative to the batch size at `done`.
  double LaterBatches(double done) const;

 private:
  // Index in the store of the example with a global number.
  int64_t IndexOf(int64_t number) const;
  // Returns the mean number of examples in the batches when `done` of the run is done; for batches
  // of tokens, of those that the first `sample` examples fill.
  absl::StatusOr<double> MeanExamples(double done, int64_t sample) const;
  // Returns the size of a batch, relative to full size.
  double Share(double done) const;
  int64_t MaxStepExamples(double done) const;
  int64_t MaxStepTokens(double done) const;

  const ExampleStore& store_;
  const Objective& task_;
  BatchSpec spec_;
  Philox order_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_BATCHER_H_
