// The parts of a run that a report reads.
#ifndef CLOZE_TOOLS_REPORT_RUN_H_
#define CLOZE_TOOLS_REPORT_RUN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "proto/spec.h"
#include "tasks/metrics.h"

namespace cloze {

using Points = std::vector<std::pair<double, double>>;  // step, value

struct RunData {
  std::string path, spec;                // its folder; the text of its spec
  std::optional<LoadedSpec> loaded;      // the spec, if this program reads it
  std::map<std::string, Points> curves;  // by name; those of evaluations begin with "validation: "
  Json metrics;                          // of the best model; null without validation
  std::vector<std::string> names;        // of its numbers, the one that chose the model first
  Json about, answers, result;           // the files of these names; null if there is none
  int64_t best_step = 0, steps = 0, all_steps = 0;  // all_steps: 0 if unknown
  double seconds = 0;
  std::string time;  // of the last line of the log: "2026-11-29T04:15:56Z"

  // The name of the folder, or of the one above for a run like "seed-7".
  std::string Name() const;
  // The metric that chose the model, with its direction; none if it is unknown.
  std::optional<Metric> Chosen() const;
};

// Reads the run in the folder `path`, also while it goes on. kNoInput without a log, kData if it
// has no step yet. Errors of the table `errors` get the members "text" (the original in place of
// tokens), "text_pair", "id" and "where" if the validation data still are as the run read them.
absl::StatusOr<RunData> ReadRun(const std::string& path);

}  // namespace cloze

#endif  // CLOZE_TOOLS_REPORT_RUN_H_
