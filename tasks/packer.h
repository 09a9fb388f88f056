// Packs sequences into batches.
#ifndef CLOZE_TASKS_PACKER_H_
#define CLOZE_TASKS_PACKER_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "encoder/modules/pass.h"
#include "tasks/data/example_store.h"

namespace cloze {

// Appends an example, with its rows and targets, to a batch.
void AddExample(const Example& example, uint64_t number, Batch* batch);

// Returns the tokens of the first of these sequences and of those that are joined to it.
int64_t JoinedTokens(absl::Span<const Example> sequences);

// Fills a batch until the next sequence does not fit, pads it, runs it, and begins another one.
class Packer {
 public:
  // `run` gets the padded batches, which have at most `max_tokens` tokens or a single example.
  Packer(int64_t max_tokens, std::function<absl::Status(Batch batch)> run)
      : max_tokens_(max_tokens), run_(std::move(run)) {}

  // Appends a sequence with its rows and targets; `number` determines its dropout. Runs the batch
  // before if the sequence does not fit into it. Errors of `run`.
  absl::Status Add(const Example& sequence, uint64_t number) {
    return Add(sequence, number, std::ssize(sequence.ids));
  }
  // Appends a sequence that others will be joined to: together they have `tokens` tokens.
  absl::Status Add(const Example& sequence, uint64_t number, int64_t tokens);
  // Runs the batch, if it has a sequence.
  absl::Status Finish();

 private:
  const int64_t max_tokens_;
  std::function<absl::Status(Batch batch)> run_;
  Batch batch_;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_PACKER_H_
