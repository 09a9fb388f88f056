// The parts of a report about several runs: their settings, and their answers to the same texts.
#ifndef CLOZE_TOOLS_REPORT_COMPARISON_H_
#define CLOZE_TOOLS_REPORT_COMPARISON_H_

#include <string>
#include <vector>

#include "tools/report_run.h"

namespace cloze {

// Returns the index of the run whose chosen metric is the best; -1 if the runs were not chosen by
// the same one.
int BestRun(const std::vector<RunData>& runs);

// Returns a table of the metrics of the best model of each run.
std::string MetricsTable(const std::vector<RunData>& runs);

// Returns a table of the settings, programs and machines in which runs differ.
std::string DifferencesTable(const std::vector<RunData>& runs);

// Returns a table that compares each classifier with the best one (else the first), if they
// answered the same texts: a paired bootstrap.
std::string PairedTable(const std::vector<RunData>& runs);

}  // namespace cloze

#endif  // CLOZE_TOOLS_REPORT_COMPARISON_H_
