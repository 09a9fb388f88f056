// `--set` of the commands that read files of texts without a spec: how the files are written.
#ifndef CLOZE_TOOLS_READING_H_
#define CLOZE_TOOLS_READING_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "proto/training.pb.h"
#include "tools/command.h"

namespace cloze {

// Adds `--set FIELD=VALUE`; `otherwise` ends the help: how files are read without it.
void AddReading(
    Command& command, std::vector<std::string>* overrides, const std::string& otherwise);

// Applies the values of `--set` to the fields delimiter, encoding and header of *data. kUsage for
// other fields, kSpec for wrong values.
absl::Status OverrideReading(const std::vector<std::string>& overrides, DataSpec* data);

}  // namespace cloze

#endif  // CLOZE_TOOLS_READING_H_
