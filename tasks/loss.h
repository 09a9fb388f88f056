// The loss that a model's config asks for.
#ifndef CLOZE_TASKS_LOSS_H_
#define CLOZE_TASKS_LOSS_H_

#include "encoder/model.h"

namespace cloze {

// Head::Loss with the loss of the config's problem, or of the CRF. `weights` are those of labels.
LossSum Loss(const Model& model, const Pass& pass, ConstMat hidden, float scale, Mat dhidden,
    const LabelWeights& weights = {});

// The divisor of a batch's loss, to be summed over all batches of a step: the number of targets,
// the sum of their weights, or targets times labels for several labels at once.
double LossWeight(const ModelConfig& config, const Batch& batch, const LabelWeights& weights);

}  // namespace cloze

#endif  // CLOZE_TASKS_LOSS_H_
