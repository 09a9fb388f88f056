// FASTTEXT files: lines of a text with labels before it, behind it or in it, as https://fasttext.cc
// reads them:
// __label__delivery __label__urgent the box was torn
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tasks/data/format.h"

namespace cloze {
namespace {

constexpr char kPrefix[] = "__label__", kInside[] = " __label__";

class FastTextReader : public FileReader {
 public:
  using FileReader::FileReader;

  absl::StatusOr<bool> NextRow(Row* row) override {
    do {
      ASSIGN_OR_RETURN(const bool more, NextLine(&line_));
      if (!more) return false;
    } while (IsBlank(line_));
    row->line = lines_.line_number();
    std::vector<std::string> labels;
    std::string text;
    for (absl::string_view rest = Trimmed(line_); !rest.empty();) {
      if (!absl::ConsumePrefix(&rest, kPrefix)) {
        const size_t end = rest.find(kInside);
        absl::StrAppend(&text, text.empty() ? "" : " ", rest.substr(0, end));
        rest = Trimmed(rest.substr(std::min(end, rest.size())));
        continue;
      }
      labels.emplace_back(rest.substr(0, rest.find_first_of(" \t")));
      rest = Trimmed(rest.substr(labels.back().size()));
      if (labels.back().empty()) return Fail(row->line, "an empty label: expected __label__NAME");
    }
    if (wanted_.labels == Labels::kRequired && labels.size() != 1) {
      return Fail(row->line, labels.size(), " labels in the line: expected ",
          labels.empty() ? "__label__NAME TEXT (set format if it is no fastText file)"
                         : "one (kind: MULTI_LABEL learns several)");
    }
    row->values = {std::move(text)};
    if (wanted_.labels == Labels::kRequired) row->values.push_back(labels[0]);
    if (wanted_.labels == Labels::kSeveral) row->values.emplace_back(), row->list = labels;
    return true;
  }

 private:
  static absl::string_view Trimmed(absl::string_view text) {
    const size_t first = text.find_first_not_of(" \t\r");
    return first == absl::string_view::npos ? "" : text.substr(first);
  }

  std::string line_;
};

}  // namespace

extern const Format kFastTextFormat = {DataSpec::FASTTEXT, ".ft",
    Format::kTexts | Format::kLabelledTexts, WholeLines, OpenAs<FastTextReader>};

}  // namespace cloze
