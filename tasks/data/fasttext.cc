// FASTTEXT files: lines of a text with labels before it, behind it or in it. As in fastText
// (readWord of its src/dictionary.cc), words are separated by spaces, tabs, vertical tabs, form
// feeds, carriage returns and NULs, and every word with the prefix is a label:
// __label__delivery __label__urgent the box was torn
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

constexpr absl::string_view kPrefix = "__label__", kSeparators("\t\v\f\r \0", 6);

// Returns the place of the next label in `text`, which does not begin with one.
size_t FindLabel(absl::string_view text) {
  for (size_t at = 0; (at = text.find(kPrefix, at + 1)) != absl::string_view::npos;) {
    if (kSeparators.find(text[at - 1]) != absl::string_view::npos) return at;
  }
  return text.size();
}

class FastTextReader : public FileReader {
 public:
  using FileReader::FileReader;

  absl::StatusOr<bool> NextRow(Row* row) override {
    do {
      ASSIGN_OR_RETURN(const bool more, NextLine(&line_));
      if (!more) return false;
    } while (
        Trimmed(line_).empty() && (request_.labels != Labels::kIgnored || !request_.keep_lines));
    row->line = lines_.line_number();
    std::vector<std::string> labels;
    std::string text;
    for (absl::string_view rest = Trimmed(line_); !rest.empty();) {
      if (!absl::ConsumePrefix(&rest, kPrefix)) {
        const size_t end = FindLabel(rest);
        // One separator before a label belongs to neither.
        absl::StrAppend(
            &text, text.empty() ? "" : " ", rest.substr(0, end < rest.size() ? end - 1 : end));
        rest = rest.substr(end);
        continue;
      }
      labels.emplace_back(rest.substr(0, rest.find_first_of(kSeparators)));
      rest = Trimmed(rest.substr(labels.back().size()));
      if (labels.back().empty()) return Fail(row->line, "an empty label: expected __label__NAME");
    }
    if (request_.labels == Labels::kRequired && labels.size() != 1) {
      return Fail(row->line, labels.size(), " labels in the line: expected ",
          labels.empty() ? "__label__NAME TEXT (set format if it is no fastText file)"
                         : "one (kind: MULTI_LABEL learns several)");
    }
    row->values = {std::move(text)};
    if (request_.labels == Labels::kRequired) row->values.push_back(labels[0]);
    if (request_.labels == Labels::kSeveral) row->values.emplace_back(), row->list = labels;
    return true;
  }

 private:
  static absl::string_view Trimmed(absl::string_view text) {
    const size_t first = text.find_first_not_of(kSeparators);
    return first == absl::string_view::npos ? "" : text.substr(first);
  }

  std::string line_;
};

}  // namespace

extern const Format kFastTextFormat = {DataSpec::FASTTEXT, ".ft",
    Format::kTexts | Format::kLabelledTexts, WholeLines, OpenAs<FastTextReader>};

}  // namespace cloze
