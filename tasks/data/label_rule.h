// Rules for reading the label field of a text: several labels in a cell, spaces, names that are
// replaced, decimal commas.
#ifndef CLOZE_TASKS_DATA_LABEL_RULE_H_
#define CLOZE_TASKS_DATA_LABEL_RULE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cloze {

struct LabelRule {
  std::string separator = ",";  // between the labels of a cell, of Labels::kSeveral
  bool trim = false;            // remove white space around a label
  std::map<std::string, std::string> names = {};  // replacements, after trim

  // False if Clean returns its argument.
  bool changes() const { return trim || !names.empty(); }
  // Returns the label that `label` stands for.
  std::string Clean(const std::string& label) const;
  // Returns the labels that `labels` stand for, each once, in their order.
  std::vector<std::string> Clean(const std::vector<std::string>& labels) const;
};

// Returns "3.2" for "3,2".
std::string WithDecimalPoint(absl::string_view number);
// True if `text` is a number with a decimal comma: "3,2"; not "1,234.5" or "1,234,567".
bool HasDecimalComma(absl::string_view text);

}  // namespace cloze

#endif  // CLOZE_TASKS_DATA_LABEL_RULE_H_
