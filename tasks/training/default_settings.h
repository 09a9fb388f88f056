// Batch size, length and learning rate of a run whose spec does not set them (default_rule 2).
#ifndef CLOZE_TASKS_TRAINING_DEFAULT_SETTINGS_H_
#define CLOZE_TASKS_TRAINING_DEFAULT_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "encoder/model.h"
#include "proto/spec.h"

namespace cloze {

// The facts on which the settings depend.
struct RunFacts {
  double rows = 0;    // sequences of the training data
  double tokens = 0;  // of all of them
  int64_t hidden = 0;
  int64_t labels = 0;       // 0: the task has none
  bool pretrained = false;  // the weights of the encoder come from a folder
};

// A setting that was chosen: "schedule.epochs", "12", and why.
struct ChosenSetting {
  std::string field, value, reason;
};

// Sets OpenSettingsOf(*spec) and returns them; none if all are set. A pure function of its
// arguments.
std::vector<ChosenSetting> ChooseSettings(const RunFacts& facts, TaskSpec* spec);

// "chosen: batch.examples 16 (1,000 rows); ...".
std::string DescribeSettings(const std::vector<ChosenSetting>& settings);

}  // namespace cloze

#endif  // CLOZE_TASKS_TRAINING_DEFAULT_SETTINGS_H_
