// Prepares a run: tokenizer, task, model config, and stores of examples.
#ifndef CLOZE_TASKS_TRAINING_SETUP_H_
#define CLOZE_TASKS_TRAINING_SETUP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "proto/spec.h"
#include "tasks/build.h"
#include "tasks/inference/scorer.h"
#include "tasks/training/start_vectors.h"

namespace cloze {

struct Setup {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Task> task;
  ModelConfig config;
  std::optional<BuiltStore> train, validation;
  std::vector<TextPair> pairs;     // of evaluation.pairs
  StartVectors start;              // of model.encoder.word_vectors
  std::vector<std::string> notes;  // for the user: cut texts, rebuilt stores ...

  // Returns a name that changes with what evaluations measure: the validation data, how many of
  // its texts (0: all), and the pairs. Requires `validation`.
  std::string EvaluatedData(int64_t max_examples) const;
};

// Returns the metrics of the evaluations of a run: the task's and, with evaluation.pairs,
// pair_accuracy.
std::vector<Metric> MetricsOf(const Task& task, const TaskSpec& spec);

// Verifies the spec, sets the number of threads and returns the type of activations.
absl::StatusOr<DType> ConfigureCompute(const LoadedSpec& loaded);

// kSpec, naming it, if the data have a stream that would be read more than once: because it is
// named twice, or because of `several` runs, of which that text tells (empty: one run).
absl::Status CheckStreams(const LoadedSpec& loaded, absl::string_view several = "");

// Checks that the files and folders that the spec names exist and fit together: the model and its
// tokenizer, files and their columns, max_tokens. Returns all errors, each with its place in the
// spec or in a file.
std::vector<absl::Status> CheckInputs(const LoadedSpec& loaded);

// Names of the stores that a run has made of streams, as BuildOptions::made.
struct MadeStores {
  std::string train, validation;
};

// Loads the tokenizer, learns labels, and builds the stores. Requires a spec that has passed
// VerifySpec; errors name its place.
absl::StatusOr<Setup> Prepare(
    const LoadedSpec& loaded, const BuildOptions& options, const MadeStores& made = {});

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SETUP_H_
