// The vocabulary that a run learns from its training texts if its spec names neither a tokenizer
// nor a model to start from.
#ifndef CLOZE_TASKS_TRAINING_LEARNED_VOCAB_H_
#define CLOZE_TASKS_TRAINING_LEARNED_VOCAB_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "core/text/learning/vocab_trainer.h"
#include "core/text/tokenizer/tokenizer.h"
#include "proto/spec.h"

namespace cloze {

// Returns the kind and the size for `text_bytes` of texts, of whose letters `unspaced` (a share)
// belong to scripts without spaces between words. Unigram for those and for sequence_to_sequence,
// else WordPiece: lower-case for classification, in the case of the text for tags, whose names
// begin with capitals, and for pretraining. Accents stay.
VocabOptions VocabOptionsFor(const TaskSpec& spec, int64_t text_bytes, double unspaced);

struct LearnOptions {
  std::function<void(int64_t done, int64_t total)> progress = {};  // bytes of files; may be empty
  const std::atomic<bool>* stop = nullptr;                         // true: end with kInterrupted
  int64_t most_bytes = std::numeric_limits<int64_t>::max();        // of texts to learn from
};

// Learns a tokenizer from the texts of spec.train, except those that are held out; the same bits
// for any number of threads. Sets *report (may be null) to a line for the user. kSpec for a stream,
// which can be read only once.
absl::StatusOr<std::unique_ptr<Tokenizer>> LearnTokenizer(
    const TaskSpec& spec, const LearnOptions& options, std::string* report = nullptr);

// Makes VocabFolder(spec) complete on disk: restores it, if it is missing, from `checkpoint`, whose
// run has learned it; learns it for a new run, which has none (""). kCannotCreate if the folder
// holds something else.
absl::Status MakeVocabFolder(const TaskSpec& spec, const std::string& checkpoint,
    const LearnOptions& options, std::string* report);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_LEARNED_VOCAB_H_
