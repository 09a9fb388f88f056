// A training run on several ranks.
#ifndef CLOZE_TESTS_TASKS_TRAINING_TRAIN_ON_RANKS_H_
#define CLOZE_TESTS_TASKS_TRAINING_TRAIN_ON_RANKS_H_

#include <gtest/gtest.h>

#include "tasks/training/trainer.h"
#include "tests/tasks/update/thread_ranks.h"

namespace cloze {

// Runs `spec` on all ranks of ForRanks and expects success. Its progress is not printed.
inline void TrainOnRanks(const LoadedSpec& spec) {
  testing::internal::CaptureStderr();
  ForRanks([&](ThreadRanks& ranks) {
    const auto trainer = Trainer::Create(spec, {.ranks = &ranks});
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    EXPECT_TRUE((*trainer)->Run().ok());
  });
  testing::internal::GetCapturedStderr();
}

}  // namespace cloze

#endif  // CLOZE_TESTS_TASKS_TRAINING_TRAIN_ON_RANKS_H_
