// The parts of a report about one run: labels, confusion, calibration, errors, data, machine.
#ifndef CLOZE_TOOLS_REPORT_SECTIONS_H_
#define CLOZE_TOOLS_REPORT_SECTIONS_H_

#include <string>

#include "core/base/json.h"

namespace cloze {

// Returns "1.235", "12.3k" or "4.5M".
std::string ReportNumber(double value);

// Returns the sections as HTML. `metrics` are those of the best model as in metrics.json, `about`
// is that of about.json. Leaves out sections whose members are missing or of another type.
std::string RunSections(const Json& metrics, const Json& about);

// The style of the sections.
extern const char kSectionStyle[];

}  // namespace cloze

#endif  // CLOZE_TOOLS_REPORT_SECTIONS_H_
