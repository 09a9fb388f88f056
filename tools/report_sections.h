// The parts of a report about one run: labels, confusion, calibration, errors, data, machine.
#ifndef CLOZE_TOOLS_REPORT_SECTIONS_H_
#define CLOZE_TOOLS_REPORT_SECTIONS_H_

#include <string>
#include <vector>

#include "core/base/json.h"

namespace cloze {

// Returns "1.235", "12.3k" or "4.5M".
std::string ReportNumber(double value);

// Returns a row of these cells, which are HTML; `tag` is that of each: "th" or "td".
std::string ReportRow(const char* tag, const std::vector<std::string>& cells);

// Returns a table with these rows, which are HTML. `kind`: classes; "wrap": its cells have several
// lines where the page is narrow, in place of a scroll bar.
std::string ReportTable(const std::string& rows, const char* kind = "");

// Return sections as HTML: confusion, labels, errors and calibration of `metrics`, those of the
// best model as in metrics.json; data and machine of `about`, that of about.json. They leave out
// sections whose members are missing or of another type.
std::string ResultSections(const Json& metrics);
std::string DataSections(const Json& about);

// The style of the sections.
extern const char kSectionStyle[];

}  // namespace cloze

#endif  // CLOZE_TOOLS_REPORT_SECTIONS_H_
