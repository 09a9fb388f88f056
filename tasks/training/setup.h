// Everything that a run needs before its first step: tokenizer, model config, stores of examples.
#ifndef CLOZE_TASKS_TRAINING_SETUP_H_
#define CLOZE_TASKS_TRAINING_SETUP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/mat.h"
#include "core/text/tokenizer/tokenizer.h"
#include "encoder/modules/config.h"
#include "proto/spec.h"
#include "tasks/build.h"
#include "tasks/masker.h"

namespace cloze {

struct Setup {
  std::unique_ptr<Tokenizer> tokenizer;
  ModelConfig config;
  std::optional<Masker> masker;  // masked_lm
  std::optional<BuiltStore> train, validation;
  std::vector<float> class_weights;  // of labels in the loss; empty: all 1
  float label_smoothing = 0;
  std::vector<std::string>
      notes;  // for the user: texts that were cut, stores that were rebuilt ...
};

// Head of the task.
HeadKind HeadOf(const TaskSpec& spec);

// Longest sequence of the task in tokens.
int64_t MaxTokens(const TaskSpec& spec);

// Type of activations that the spec asks for; kLimit when this CPU lacks its instructions. AUTO is
// bf16 for training where the CPU has it, and f32 for inference, whose numbers are then those of
// other programs to the fifth digit.
enum class Use { kTraining, kInference };
absl::StatusOr<DType> ComputeOf(RuntimeSpec::Compute compute, Use use);

// Builds the store of `data`, the spec's train or validation, for its task; labels as in `config`.
// An error when its tokens or lengths do not fit the model.
absl::StatusOr<BuiltStore> BuildStore(const LoadedSpec& loaded, const DataSpec& data,
    const ModelConfig& config, const Tokenizer& tokenizer, const BuildOptions& options);

// Loads, learns labels, tokenises. The spec has passed VerifySpec; errors name its place.
absl::StatusOr<Setup> Prepare(const LoadedSpec& loaded, const BuildOptions& options);

// Lines for the user about what went into a store.
std::vector<std::string> DescribeStore(absl::string_view name, const BuiltStore& built);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_SETUP_H_
