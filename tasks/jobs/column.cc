#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/text.h"
#include "tasks/data/label_rule.h"
#include "tasks/jobs/data_guess.h"

namespace cloze {
namespace {

constexpr size_t kMaxValues = 5000, kLongestValue = 200;
constexpr char kListSeparator[] = "\x1f";  // between the items of a list in values_

// True for 1,200 and 12,000,000 with `separator` for the comma.
bool IsGrouped(absl::string_view text, char separator) {
  absl::ConsumePrefix(&text, "-");
  const std::vector<absl::string_view> groups = absl::StrSplit(text, separator);
  return groups.size() > 1 && !groups[0].empty() && groups[0].size() <= 3 && groups[0][0] != '0' &&
         absl::c_all_of(groups, [&](absl::string_view group) {
           return absl::c_all_of(group, absl::ascii_isdigit) &&
                  (group.size() == 3 || group.data() == groups[0].data());
         });
}

}  // namespace

void Column::Add(const std::string& cell) {
  const absl::string_view text = absl::StripAsciiWhitespace(cell);
  ++rows_;
  words_.push_back(std::ssize(std::vector<absl::string_view>(
      absl::StrSplit(text, absl::ByAnyChar(" \t\r\n\x1f"), absl::SkipEmpty()))));
  if (text.empty()) {
    ++empty_;
    return;
  }
  ++filled_;
  bytes_ += std::ssize(cell);
  double number = 0;
  const bool comma = IsGrouped(text, ',') || HasDecimalComma(text), grouped = IsGrouped(text, '.');
  if (comma || grouped || ParseDecimal(text, &number)) {
    ++numbers_;
    commas_ += comma;
    fractions_ |= comma || grouped || number != std::floor(number);
  }
  dates_ +=
      absl::ascii_isdigit(text[0]) && text.find_first_not_of("0123456789-./: TZ") == text.npos;
  if (cell.size() > kLongestValue || (values_.size() == kMaxValues && !values_.contains(cell))) {
    many_ = true;
  } else {
    ++values_[cell];
  }
}

void Column::Add(const OrderedJson& value) {
  if (value.is_string()) return Add(value.get<std::string>());
  const bool list = value.is_array() && absl::c_all_of(value, [](const OrderedJson& item) {
    return item.is_string() || item.is_number_integer();
  });
  if (list) ++lists_;
  if (!list) return Add(value.is_structured() || value.is_null() ? "" : ToJsonLine(value));
  std::string joined = kListSeparator;  // also of an empty list
  for (const auto& item : value) {
    absl::StrAppend(
        &joined, item.is_string() ? item.get<std::string>() : ToJsonLine(item), kListSeparator);
  }
  Add(joined);
}

bool Column::IsQuantity() const {
  return IsNumber() && (fractions_ || (Distinct() > 20 && Distinct() > rows_ / 100));
}

bool Column::IsText() const {
  if (filled_ == 0 || IsNumber() || IsDate() || lists_ > 0) return false;
  const int64_t words = absl::c_accumulate(words_, int64_t{0});
  return (words >= 3 * filled_ || MeanBytes() > 40) && 4 * Distinct() >= filled_;
}

bool Column::IsCategory() const {
  return filled_ > 0 && !IsDate() && !many_ && Distinct() > 1 && 2 * Distinct() <= filled_;
}

std::string Column::Separator() const {
  if (lists_ > 0) return ",";
  if (IsNumber() || IsText()) return "";
  for (const absl::string_view separator : {"|", ";", ","}) {
    const int64_t several = absl::c_count_if(
        values_, [&](const auto& value) { return absl::StrContains(value.first, separator); });
    const std::map<std::string, int64_t> parts = Parts(separator);
    const bool repeat = 3 * std::ssize(parts) <= filled_ && parts.size() < values_.size();
    if (several > 1 && 4 * several >= std::ssize(values_) && repeat && parts.size() > 1)
      return std::string(separator);
  }
  return "";
}

std::map<std::string, int64_t> Column::Parts(absl::string_view separator) const {
  std::map<std::string, int64_t> parts;
  if (lists_ > 0) separator = kListSeparator;
  for (const auto& [value, count] : values_) {
    for (const absl::string_view part : absl::StrSplit(value, separator)) {
      const absl::string_view label = absl::StripAsciiWhitespace(part);
      if (!label.empty()) parts[std::string(label)] += count;
    }
  }
  return parts;
}

bool HasListsOfIntegers(const Column& column) {
  int64_t number = 0;
  return column.IsList() && absl::c_all_of(column.Parts(","), [&](const auto& part) {
    return absl::SimpleAtoi(part.first, &number);
  });
}

bool HasPrintedLists(const Column& column) {
  return !column.values().empty() && absl::c_all_of(column.values(), [](const auto& value) {
    const absl::string_view cell = absl::StripAsciiWhitespace(value.first);
    return absl::StartsWith(cell, "[") && absl::EndsWith(cell, "]");
  });
}

bool MayHaveThousands(const Column& column, char separator) {
  int64_t all = 0, grouped = 0;
  for (const auto& [value, count] : column.values()) {
    all += absl::StrContains(value, separator);
    grouped += IsGrouped(absl::StripAsciiWhitespace(value), separator);
  }
  return column.IsNumber() && grouped > 0 && grouped == all;
}

std::string Column::Describe() const {
  const std::string kind = filled_ == 0   ? "empty"
                           : IsList()     ? "lists"
                           : IsQuantity() ? "numbers"
                           : IsDate()     ? "dates"
                           : IsText()     ? "texts"
                           : IsCategory() ? Counted(Distinct(), "value")
                                          : "different values";
  return absl::StrCat(Quote(name_), " (", kind, ")");
}

}  // namespace cloze
