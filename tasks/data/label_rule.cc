#include "tasks/data/label_rule.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"
#include "tasks/data/readers.h"

namespace cloze {

std::string LabelRule::Clean(const std::string& label) const {
  const std::string trimmed(trim ? absl::StripAsciiWhitespace(label) : label);
  const auto found = names.find(trimmed);
  return found == names.end() ? trimmed : found->second;
}

std::vector<std::string> LabelRule::Clean(const std::vector<std::string>& labels) const {
  std::vector<std::string> clean;
  for (const std::string& label : labels) {
    std::string name = Clean(label);
    if (!name.empty() && std::find(clean.begin(), clean.end(), name) == clean.end())
      clean.push_back(std::move(name));
  }
  return clean;
}

std::string WithDecimalPoint(absl::string_view number) {
  return absl::StrReplaceAll(number, {{",", "."}});
}

bool HasDecimalComma(absl::string_view text) {
  double value = 0;
  return text.find(',') != text.npos && text.find('.') == text.npos &&
         ParseDecimal(WithDecimalPoint(text), &value);
}

std::vector<std::string> LabelsOf(const TextExample& example, const std::string& separator) {
  if (example.list.has_value()) return *example.list;
  std::vector<std::string> labels;
  for (const absl::string_view part : absl::StrSplit(example.label, separator)) {
    const absl::string_view label = absl::StripAsciiWhitespace(part);
    if (!label.empty()) labels.emplace_back(label);
  }
  return labels;
}

}  // namespace cloze
