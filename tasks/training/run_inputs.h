// The inputs of a run: spec, tokenizer, task, model config, and stores of examples.
#ifndef CLOZE_TASKS_TRAINING_RUN_INPUTS_H_
#define CLOZE_TASKS_TRAINING_RUN_INPUTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/text/tokenizer/tokenizer.h"
#include "encoder/families/model_config.h"
#include "proto/spec.h"
#include "tasks/inference/scorer.h"
#include "tasks/task.h"
#include "tasks/training/default_settings.h"

namespace cloze {

// Word vectors from a file, from which the token embeddings of a new encoder start.
struct StartVectors {
  std::vector<int32_t> ids;   // tokens that are whole words of the file
  std::vector<float> values;  // [ids, cols]; their root mean square is the initializer_range

  // Copies the vectors into rows `ids` of table [vocab, cols].
  void CopyTo(Mat table) const;
  // Returns a line for the user.
  std::string Describe(int64_t vocab) const;
};

// Reads model.encoder.word_vectors; empty without it. Errors name the field: those of
// ReadWordVectors, kMismatch if the dimension is not that of the embeddings or no token is a word.
absl::StatusOr<StartVectors> ReadStartVectors(
    const LoadedSpec& loaded, const ModelConfig& config, const Tokenizer& tokenizer);

// Names of the stores that a run has made of streams, as BuildOptions::made.
struct MadeStores {
  std::string train, validation;
};

struct RunInputs {
  LoadedSpec loaded;  // of a run, with the batch.micro_tokens that it has chosen
  DType compute = DType::kF32;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Task> task;
  ModelConfig config;
  std::optional<BuiltStore> train, validation;
  std::vector<TextPair> pairs;  // of evaluation.pairs
  StartVectors start;           // of model.encoder.word_vectors

  // Returns the facts on which the default settings depend.
  RunFacts facts() const;
  MadeStores stores() const { return {train->name(), validation ? validation->name() : ""}; }
  // Returns a name that changes with what evaluations measure: the validation data, how many of its
  // texts, and the pairs. Requires `validation`.
  std::string EvaluatedData() const;
};

// Returns the metrics of the evaluations of a run: the task's and, with evaluation.pairs,
// pair_accuracy.
std::vector<Metric> MetricsOf(const Task& task, const TaskSpec& spec);

// Verifies the spec, sets the number of threads and returns the type of activations.
absl::StatusOr<DType> ConfigureCompute(const LoadedSpec& loaded);

// kSpec, naming it, if the data have a stream that would be read more than once: because it is
// named twice, or because of `several` runs, of which that text tells (empty: one run).
absl::Status CheckStreams(const LoadedSpec& loaded, absl::string_view several = "");

// Adds the place of `field` to an error about the spec (where files are, how they are read); errors
// about the content of a file have a place already.
absl::Status AtData(const LoadedSpec& loaded, const std::string& field, const absl::Status& status);

// Builds the store of `data`, the spec's train or validation, for the model of `config`. Errors
// name the place in the spec; kMismatch or kSpec if tokens or lengths do not fit the model.
absl::StatusOr<BuiltStore> BuildStore(const LoadedSpec& loaded, Task& task, const DataSpec& data,
    const ModelConfig& config, const Tokenizer& tokenizer, const BuildOptions& options);

// Checks that the files and folders that the spec names exist and fit together: the model and its
// tokenizer, files and their columns, max_tokens. Returns all errors, each with its place in the
// spec or in a file.
std::vector<absl::Status> CheckInputs(const LoadedSpec& loaded);

// Loads or learns the tokenizer, learns labels, and builds the stores. Appends lines for the user
// to `notes`, which may be null: cut texts, rebuilt stores. Leaves `compute` to the caller.
// Requires a spec that has passed VerifySpec; errors name its place.
absl::StatusOr<RunInputs> LoadRunInputs(const LoadedSpec& loaded, const BuildOptions& options,
    const MadeStores& made = {}, std::vector<std::string>* notes = nullptr);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_RUN_INPUTS_H_
