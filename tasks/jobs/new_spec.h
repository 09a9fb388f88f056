// `cloze spec new`: a commented spec for data files, by what they hold.
#ifndef CLOZE_TASKS_JOBS_NEW_SPEC_H_
#define CLOZE_TASKS_JOBS_NEW_SPEC_H_

#include <string>
#include <vector>

#include "core/base/status.h"

namespace cloze {

struct NewSpecOptions {
  // Files, patterns or folders. Of several files, or those of a folder, names such as dev.csv are
  // validation data, and names such as test.csv are left out.
  std::vector<std::string> files = {};
  std::string start_from = {};  // a model folder; empty: a new encoder
  std::string text_field = {}, pair_field = {}, label_field = {};  // columns; empty: guessed
  // Standard input was saved as the file: the name that the spec tells the user to save it as.
  std::string save_as = {};
};

struct NewSpec {
  std::string text;       // text format of TaskSpec, with comments
  std::string directory;  // of the run
  bool pretrains = false;
  std::string command;  // that answers with the model: predict, tag
};

// Reads the files and returns a spec for them. kNoInput, kSpec or kData for files that cannot be
// read, or have nothing to learn from; errors of LoadConfig.
absl::StatusOr<NewSpec> GuessSpec(const NewSpecOptions& options);

}  // namespace cloze

#endif  // CLOZE_TASKS_JOBS_NEW_SPEC_H_
