// Scores of methods without a network, on the held-out data of a run, to compare its model with.
#ifndef CLOZE_TASKS_BASELINES_H_
#define CLOZE_TASKS_BASELINES_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "encoder/families/model_config.h"
#include "proto/task.pb.h"
#include "tasks/data/example_store.h"

namespace cloze {

// NaN: not defined for the task.
struct Baselines {
  std::string metric;  // of both: accuracy, micro_f1, pearson or span_f1; empty: the task has none
  int64_t examples = 0;  // held-out texts; of taggers, words
  // One answer for everything: the most frequent label of the held-out texts; the most frequent tag
  // of the training data; of several labels, those that most training texts have, at least one.
  double most_frequent = std::numeric_limits<double>::quiet_NaN();
  // Classification: a linear model on token counts. Taggers: the tag that the training
  // data give a word most often; for other words the most frequent tag.
  double words = std::numeric_limits<double>::quiet_NaN();
};

// Measures them in about a second, on evaluation.max_examples texts: trains on at most 3 million
// tokens, evenly spaced over the data. The linear model sees each text as log(1 + count) of its
// tokens times log(texts / texts with the token), at length 1, and has a penalty of 0.1 (C = 10 in
// scikit-learn). Its size is limited: with many labels it learns from fewer texts and from the most
// frequent tokens only, and with more than 10,000 labels there is none. kInterrupted when stopped.
absl::StatusOr<Baselines> MeasureBaselines(const TaskSpec& spec, const ModelConfig& config,
    const Tokenizer& tokenizer, const ExampleStore& train, const ExampleStore& validation,
    const std::atomic<bool>* stop);

}  // namespace cloze

#endif  // CLOZE_TASKS_BASELINES_H_
