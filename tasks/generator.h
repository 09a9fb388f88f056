// The generator of ELECTRA's pretraining at work.
#ifndef CLOZE_TASKS_GENERATOR_H_
#define CLOZE_TASKS_GENERATOR_H_

#include "encoder/model.h"

namespace cloze {

// Predicts the masked tokens of pass.batch, whose targets are the original ones, and writes to
// *replaced the batch with samples in their place: all its tokens are targets, with value 1 where
// the sample is another token, 0 elsewhere. Samples use only Philox(seed of the pass, example,
// position). Returns the generator's loss; with scale != 0 adds its gradients times scale. No
// gradient passes through the samples (Clark et al. 2020).
LossSum ReplaceTokens(
    const Model::Generator& generator, const Pass& pass, float scale, Batch* replaced);

// Returns the batch that the model reads in an evaluation: `batch` or, if it has a generator,
// *replaced, after adding the generator's loss to *loss.
const Batch& EvaluatedBatch(
    Model& model, const Batch& batch, DType compute, Batch* replaced, LossSum* loss);

}  // namespace cloze

#endif  // CLOZE_TASKS_GENERATOR_H_
