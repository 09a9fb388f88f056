// `--set` of the commands that read files of texts without a spec: how the files are written.
#ifndef CLOZE_TOOLS_FILE_OPTIONS_H_
#define CLOZE_TOOLS_FILE_OPTIONS_H_

#include <string>
#include <vector>

#include "core/base/status.h"
#include "proto/training.pb.h"
#include "tools/command.h"

namespace cloze {

// Adds `--set FIELD=VALUE`; `default_text` describes the default in the help.
void AddFileOptions(
    Command& command, std::vector<std::string>* overrides, const std::string& default_text);

inline constexpr char kReadAsTrained[] = "as in the spec of the model's run";

// Applies the values of `--set` to the fields delimiter, encoding and header of *data. kUsage for
// other fields, kSpec for wrong values.
absl::Status OverrideFileOptions(const std::vector<std::string>& overrides, DataSpec* data);

}  // namespace cloze

#endif  // CLOZE_TOOLS_FILE_OPTIONS_H_
