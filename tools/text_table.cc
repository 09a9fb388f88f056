#include "tools/text_table.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/base/text.h"
#include "tasks/console/screen.h"

namespace cloze {
namespace {

using Cells = std::vector<std::vector<std::string>>;

constexpr size_t kMaxClasses = 50, kMaxConfusions = 10;
constexpr size_t kLabelBytes = 30;

std::string Label(const OrderedJson& label) { return Quote(label.get<std::string>(), kLabelBytes); }

std::string Metrics(const OrderedJson& results, const TableStyle& style) {
  Cells rows = {{"metric", "value"}};
  for (const auto& [name, value] : results.items()) {
    if (value.is_number() || value.is_null()) rows.push_back({name, MetricText(value)});
  }
  return AlignedTable(rows, style);
}

// per_class or per_type; at the end the means over all rows, of which macro_f1 is one, and the sum
// of support.
std::string Classes(const OrderedJson& classes, const TableStyle& style) {
  if (classes.empty()) return "";
  Cells rows = {{}};
  for (const auto& [name, value] : classes[0].items()) rows[0].push_back(name);
  std::vector<double> sums(rows[0].size());
  for (const OrderedJson& row : classes) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : row.items()) {
      if (value.is_number()) sums[cells.size()] += value.get<double>();
      cells.push_back(value.is_string()           ? Label(value)
                      : value.is_number_integer() ? absl::StrCat(value.get<int64_t>())
                                                  : MetricText(value));
    }
    if (rows.size() <= kMaxClasses) rows.push_back(std::move(cells));
  }
  std::string more;
  if (classes.size() > kMaxClasses)
    more = absl::StrCat("and ", classes.size() - kMaxClasses, " more (--json shows all)\n");
  std::vector<std::string> total = {"mean, sum"};
  for (size_t i = 1; i + 1 < sums.size(); ++i)
    total.push_back(absl::StrFormat("%.4f", sums[i] / static_cast<double>(classes.size())));
  total.push_back(absl::StrFormat("%.0f", sums.back()));
  rows.push_back(std::move(total));
  return absl::StrCat("\n", AlignedTable(rows, style), more);
}

// The largest counts beside the diagonal.
std::string Confusions(
    const OrderedJson& labels, const OrderedJson& counts, const TableStyle& style) {
  struct Pair {
    int64_t count;
    size_t label, predicted;
  };
  std::vector<Pair> pairs;
  for (size_t r = 0; r < counts.size(); ++r) {
    for (size_t c = 0; c < counts[r].size(); ++c) {
      if (r != c && counts[r][c] > 0) pairs.push_back({counts[r][c], r, c});
    }
  }
  if (pairs.empty()) return "";
  std::stable_sort(
      pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count > b.count; });
  Cells rows = {{"true", "predicted", "count"}};
  for (size_t i = 0; i < std::min(pairs.size(), kMaxConfusions); ++i) {
    rows.push_back({Label(labels[pairs[i].label]), Label(labels[pairs[i].predicted]),
        absl::StrCat(pairs[i].count)});
  }
  return absl::StrCat("\nmost frequent confusions\n", AlignedTable(rows, style));
}

std::string Confusion(const OrderedJson& confusion, const TableStyle& style) {
  const OrderedJson &labels = confusion["labels"], &counts = confusion["counts"];
  Cells rows = {{"true \\ predicted"}};
  size_t width = rows[0][0].size();
  for (const OrderedJson& label : labels) {
    rows[0].push_back(Label(label));
    width += 2 + std::max<size_t>(CountCodePoints(rows[0].back()), 3);
  }
  if (width > static_cast<size_t>(style.width)) return Confusions(labels, counts, style);
  for (size_t r = 0; r < counts.size(); ++r) {
    rows.push_back({rows[0][r + 1]});
    for (const OrderedJson& count : counts[r])
      rows.back().push_back(count == 0 ? "." : absl::StrCat(count.get<int64_t>()));
  }
  return absl::StrCat("\n", AlignedTable(rows, style));
}

}  // namespace

TableStyle StyleOf(int fd) {
  const ScreenStyle screen = ScreenStyleOf(fd);
  return screen.width > 0 ? TableStyle{screen.colour, screen.width} : TableStyle{};
}

std::string MetricText(const OrderedJson& value) {
  if (!value.is_number()) return "-";
  return value.is_number_integer() ? absl::StrCat(value.get<int64_t>())
                                   : absl::StrFormat("%.4f", value.get<double>());
}

std::string AlignedTable(Cells rows, const TableStyle& style, size_t best) {
  std::vector<size_t> widths;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::string& cell : row) cell = QuotePath(cell);
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max<size_t>(widths[i], CountCodePoints(row[i]));
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const std::string fill(widths[i] - CountCodePoints(rows[r][i]), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", i == 0 ? rows[r][i] + fill : fill + rows[r][i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    const bool bold = style.colour && (r == 0 || r == best);
    absl::StrAppend(&text, bold ? "\x1b[1m" : "", line, bold ? "\x1b[0m" : "", "\n");
  }
  return text;
}

std::string TokenTables(const OrderedJson& answer, const TableStyle& style) {
  const bool masks = answer.contains("masks");
  std::string title, text;
  for (const char* name : {"text", "word"}) {
    if (answer.contains(name)) title = Quote(answer[name].get<std::string>(), 60);
  }
  if (answer.contains("words"))
    title = absl::StrCat(Label(answer["words"][0]), " - ", Label(answer["words"][1]), " + ",
        Label(answer["words"][2]));
  const OrderedJson all = masks ? answer["masks"] : OrderedJson::array({answer["neighbors"]});
  for (const OrderedJson& tokens : all) {
    Cells rows = {{title, "score"}};
    for (const OrderedJson& token : tokens)
      rows.push_back({Label(token["token"]), MetricText(token["score"])});
    absl::StrAppend(&text, AlignedTable(rows, style), "\n");
  }
  return text;
}

std::string ResultTables(const OrderedJson& results, const TableStyle& style) {
  std::string text = Metrics(results, style);
  for (const char* name : {"per_type", "per_class"}) {
    if (results.contains(name)) text += Classes(results[name], style);
  }
  if (results.contains("confusion") && results["confusion"].is_object())
    text += Confusion(results["confusion"], style);
  return text;
}

}  // namespace cloze
