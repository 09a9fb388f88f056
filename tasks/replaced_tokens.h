// Replaced-token detection (Clark et al. 2020, "ELECTRA"): what the generator samples, and the
// evaluation of both models.
#ifndef CLOZE_TASKS_REPLACED_TOKENS_H_
#define CLOZE_TASKS_REPLACED_TOKENS_H_

#include <memory>
#include <vector>

#include "tasks/task.h"

namespace cloze {

// Predicts the masked tokens of pass.batch, whose targets are the original ones, and writes to
// *replaced the batch with samples in their place: all its tokens are targets, with value 1 where
// the sample is another token, 0 elsewhere. Samples use only Philox(seed of the pass, example,
// position). Returns the generator's loss; with scale != 0 adds its gradients times scale. No
// gradient passes through the samples.
LossSum ReplaceTokens(
    const Model::Generator& generator, const Pass& pass, float scale, Batch* replaced);

// Returns the batch that the model reads in an evaluation: `batch` or, if it has a generator,
// *replaced, after adding the generator's loss to *loss.
const Batch& EvaluatedBatch(
    Model& model, const Batch& batch, DType compute, Batch* replaced, LossSum* loss);

// Returns an evaluation with these metrics: loss, which is generator_loss (nats per masked token)
// plus `weight` times replaced_loss (nats per token); accuracy, precision, recall and f1 of the
// replaced tokens, found if their probability is above 0.5; generator_accuracy of the masked
// tokens.
std::unique_ptr<Evaluation> NewReplacedTokensEvaluation(const Model& model, double weight);
std::vector<Metric> ReplacedTokensMetrics();

}  // namespace cloze

#endif  // CLOZE_TASKS_REPLACED_TOKENS_H_
