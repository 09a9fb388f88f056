// Curves of runs as SVG.
#ifndef CLOZE_TOOLS_REPORT_CHARTS_H_
#define CLOZE_TOOLS_REPORT_CHARTS_H_

#include <string>
#include <vector>

#include "tools/report_run.h"

namespace cloze {

// Returns the mark of the colour of a run, as HTML.
std::string Key(size_t run);

// Returns the smallest and the largest value that a metric can have; infinite where it has no
// bound. `name` may begin with "validation: ".
std::pair<double, double> RangeOf(const std::string& name);

// Returns round ticks, at most seven, that cover `low` to `high`, but nothing outside of `range`.
std::vector<double> Ticks(double low, double high, std::pair<double, double> range);

// Returns a chart for each name, with a curve for each run that has it. Curves that are constant
// in all runs become a line of text.
std::string Charts(const std::vector<std::string>& names, const std::vector<RunData>& runs);

}  // namespace cloze

#endif  // CLOZE_TOOLS_REPORT_CHARTS_H_
