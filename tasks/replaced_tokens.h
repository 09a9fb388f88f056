// Replaced-token detection (Clark et al. 2020, "ELECTRA"): the generator, what it samples, and the
// evaluation of both models.
#ifndef CLOZE_TASKS_REPLACED_TOKENS_H_
#define CLOZE_TASKS_REPLACED_TOKENS_H_

#include <memory>
#include <vector>

#include "tasks/task.h"

namespace cloze {

// Returns the generator for a discriminator: its layers and embeddings, and `size` times its hidden
// and intermediate sizes, with heads of 64. If it shares the embeddings of a family that cannot
// project them, it keeps these sizes and has `size` times the layers.
ModelConfig GeneratorOf(const ModelConfig& discriminator, float size, bool shares_embeddings);

// Predicts the masked tokens of pass.batch, whose targets are the original ones, with the generator
// of `model`, and writes to *replaced the batch with samples in their place: all its tokens are
// targets, with value 1 where the sample is another token, 0 elsewhere. Samples use only
// Philox(seed of the pass, example, position). Returns the generator's loss; with scale != 0 adds
// its gradients times scale. No gradient passes through the samples.
LossSum ReplaceTokens(const Model& model, const Pass& pass, float scale, Batch* replaced);

// Returns an evaluation with these metrics: loss, which is generator_loss (nats per masked token)
// plus `weight` times replaced_loss (nats per token); accuracy, precision, recall and f1 of the
// replaced tokens, found if their probability is above 0.5; generator_accuracy of the masked
// tokens.
std::unique_ptr<Evaluation> NewReplacedTokensEvaluation(const Model& model, double weight);
std::vector<Metric> ReplacedTokensMetrics();

}  // namespace cloze

#endif  // CLOZE_TASKS_REPLACED_TOKENS_H_
