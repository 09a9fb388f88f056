// A training run: from a spec to a model folder, resumable at any step.
#ifndef CLOZE_TASKS_TRAINING_TRAINER_H_
#define CLOZE_TASKS_TRAINING_TRAINER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "encoder/model.h"
#include "proto/spec.h"
#include "tasks/feed.h"
#include "tasks/metrics.h"
#include "tasks/training/optimizer.h"
#include "tasks/training/pace.h"
#include "tasks/training/progress.h"
#include "tasks/training/run_lock.h"
#include "tasks/training/setup.h"
#include "tasks/training/skipped_steps.h"

namespace cloze {

int64_t step_ = 0, next_example_ = 0, skipped_ = 0, best_step_ = 0;
SkippedSteps recently_skipped_;
double last_loss_ = 0;
std::string metric_;
std::optional<double> best_value_;
MetricResults best_;
bool evaluation_due_ = false;
int64_t evaluations_without_best_ = 0;
double seconds_ = 0;  // spent by earlier processes
std::string forked_from_;

double done_ = 0, done_before_ = 0;  // share of the run, now and before the last step
int64_t saved_step_ = 0;
int failed_saves_ = 0;
bool cache_is_new_ = false, sources_changed_ = false;
};

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_TRAINER_H_
