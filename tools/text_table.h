// Tables for people: aligned columns, and the results of an evaluation.
#ifndef CLOZE_TOOLS_TEXT_TABLE_H_
#define CLOZE_TOOLS_TEXT_TABLE_H_

#include <string>
#include <vector>

#include "core/base/json.h"

namespace cloze {

struct TableStyle {
  bool colour = false;
  int width = 80;  // columns
};
// Returns the style of a terminal: see ScreenStyle.
TableStyle StyleOf(int fd);

// Returns the rows as lines. The first column is left-aligned, the others are right-aligned;
// control characters are escaped. The first row and row `best` are bold.
std::string AlignedTable(
    std::vector<std::vector<std::string>> rows, const TableStyle& style, size_t best = 0);

// Returns MetricResults, parsed from their JSON, as tables: metrics, classes, confusion. A matrix
// that is wider than the terminal becomes a list of the most frequent confusions.
std::string ResultTables(const OrderedJson& results, const TableStyle& style);

// Returns the tokens and scores of an answer of fill-mask, neighbors or analogy as tables.
std::string TokenTables(const OrderedJson& answer, const TableStyle& style);

// Returns "0.9123", or "-" for a JSON null.
std::string MetricText(const OrderedJson& value);

}  // namespace cloze

#endif  // CLOZE_TOOLS_TEXT_TABLE_H_
