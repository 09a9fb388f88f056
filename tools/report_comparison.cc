#include "tools/report_comparison.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/text/files/tokenizer_files.h"
#include "tasks/paired_bootstrap.h"
#include "tools/html.h"
#include "tools/report_charts.h"
#include "tools/report_sections.h"

namespace cloze {
namespace {

std::string NumberText(const Json& value) {
  return value.is_number() ? ReportNumber(value.get<double>()) : "";
}

// The settings of a run, and where it ran.
std::vector<std::pair<std::string, std::string>> SettingsOf(const RunData& run) {
  std::vector<std::pair<std::string, std::string>> settings;
  if (run.loaded.has_value()) settings = FieldsOf(run.loaded->spec);
  std::erase_if(settings, [](const auto& s) { return absl::StartsWith(s.first, "output."); });
  for (const auto& [name, value] : JsonMember(run.about, "machine").items())
    settings.emplace_back(absl::StrCat("(", name, ")"), value.dump());
  if (const Json& program = JsonMember(run.about, "program"); program.is_string())
    settings.emplace_back("(program)", program.get<std::string>());
  return settings;
}

// True if the runs' tokenizers, which each may have learned, give the same ids.
bool HaveSameIds(const std::vector<RunData>& runs) {
  std::unique_ptr<Tokenizer> first;
  for (const RunData& run : runs) {
    auto tokenizer = LoadTokenizer(run.path, /*lowercase=*/false);
    if (!tokenizer.ok() || (first != nullptr && !first->SameIds(**tokenizer))) return false;
    if (first == nullptr) first = *std::move(tokenizer);
  }
  return true;
}

// The answers of a run with labels of equal names as equal numbers.
struct AnsweredTexts {
  std::vector<int32_t> labels, predicted;
};

AnsweredTexts AnswersOf(const RunData& run, std::map<std::string, int32_t>* ids) {
  const Json& names = JsonMember(run.answers, "labels");
  const auto read = [&](const char* member) {
    std::vector<int32_t> out;
    for (const Json& item : JsonMember(run.answers, member)) {
      const size_t id = item.is_number_unsigned() ? item.get<size_t>() : SIZE_MAX;
      const bool known = id < names.size() && names[id].is_string();
      const std::string name =
          known ? names[id].get<std::string>() : absl::StrCat("\n", id - names.size());
      out.push_back(ids->emplace(name, static_cast<int32_t>(ids->size())).first->second);
    }
    return out;
  };
  return {read("true"), read("predicted")};
}

std::string DifferenceText(const MetricDifference& d) {
  return absl::StrFormat("%+.1f (%+.1f to %+.1f)", 100 * d.value, 100 * d.low, 100 * d.high);
}

std::vector<std::string> PairedRow(const AnsweredTexts& first, const AnsweredTexts& second) {
  const PairedComparison c = ComparePaired(first.labels, first.predicted, second.predicted);
  return {DifferenceText(c.accuracy), absl::StrFormat("%.2g", c.accuracy.p),
      DifferenceText(c.macro_f1), absl::StrFormat("%.2g", c.macro_f1.p),
      absl::StrCat(c.only_second), absl::StrCat(c.only_first), absl::StrCat(c.texts)};
}

}  // namespace

int BestRun(const std::vector<RunData>& runs) {
  int best = -1;
  const std::optional<Metric> metric = runs[0].Chosen();
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::optional<Metric> chosen = runs[i].Chosen();
    if (!metric.has_value() || !chosen.has_value() || chosen->name != metric->name) return -1;
    const auto value = [&](int r) { return runs[r].metrics[metric->name].get<double>(); };
    if (best < 0 || IsBetter(*metric, value(i), value(best))) best = static_cast<int>(i);
  }
  return best;
}

std::string MetricsTable(const std::vector<RunData>& runs) {
  std::vector<std::string> names;
  for (const RunData& run : runs)
    for (const std::string& name : run.names)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  const int best = runs.size() > 1 ? BestRun(runs) : -1;
  std::vector<std::vector<std::string>> rows(names.size() + 3, {""});
  rows[0] = {"metric"}, rows[names.size() + 1] = {"best at step"}, rows.back() = {"steps"};
  for (size_t r = 0; r < names.size(); ++r) rows[r + 1] = {HtmlEscape(names[r])};
  if (!runs[0].names.empty()) rows[1][0] += " <small>(chooses the best model)</small>";
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool is_best = best == static_cast<int>(i);
    rows[0].push_back(runs.size() == 1 ? "value"
                                       : absl::StrCat(Key(i), HtmlEscape(runs[i].path),
                                             is_best ? " <small>best</small>" : ""));
    for (size_t r = 0; r < names.size(); ++r) {
      const std::string text = NumberText(JsonMember(runs[i].metrics, names[r].c_str()));
      const bool bold = r == 0 && (is_best || runs.size() == 1);
      rows[r + 1].push_back(bold ? absl::StrCat("<strong>", text, "</strong>") : text);
    }
    rows[names.size() + 1].push_back(names.empty() ? "" : absl::StrCat(runs[i].best_step));
    rows.back().push_back(absl::StrCat(runs[i].steps));
  }
  std::string table;
  // Many runs are rows, few are columns.
  if (runs.size() <= 3) {
    for (size_t r = 0; r < rows.size(); ++r) table += ReportRow(r == 0 ? "th" : "td", rows[r]);
  } else {
    for (size_t i = 0; i < rows[0].size(); ++i) {
      std::vector<std::string> row;
      for (const auto& column : rows)
        row.push_back(i == 0 && &column == &rows[0] ? "run" : column[i]);
      table += ReportRow(i == 0 ? "th" : "td", row);
    }
  }
  return ReportTable(table, runs.size() <= 3 ? "wrap" : "");
}

std::string DifferencesTable(const std::vector<RunData>& runs) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> values;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (const auto& [name, value] : SettingsOf(runs[i])) {
      auto [found, added] = values.try_emplace(name, runs.size());
      if (added) order.push_back(name);
      found->second[i] = value;
    }
  }
  std::string rows;
  bool other_loss = false;
  for (const std::string& name : order) {
    std::vector<std::string>& row = values[name];
    const bool vocabulary = name == "model.tokenizer";
    if (std::equal(row.begin() + 1, row.end(), row.begin()) || (vocabulary && HaveSameIds(runs)))
      continue;
    const bool pretrains = runs[0].loaded.has_value() && runs[0].loaded->spec.has_masked_lm();
    other_loss |= absl::StartsWith(name, "masked_lm.") || (vocabulary && pretrains);
    for (std::string& value : row) value = value.empty() ? "–" : HtmlEscape(value);
    row.insert(row.begin(), HtmlEscape(name));
    rows += ReportRow("td", row);
  }
  if (rows.empty()) return "<p>None.</p>\n";
  std::vector<std::string> head = {"setting"};
  for (size_t i = 0; i < runs.size(); ++i) head.push_back(Key(i) + HtmlEscape(runs[i].path));
  return ReportTable(ReportRow("th", head) + rows, "wrap texts") +
         (other_loss ? "<p>The losses of these runs measure different things: what is masked, or "
                       "the vocabulary, is not the same.</p>\n"
                     : "");
}

std::string PairedTable(const std::vector<RunData>& runs) {
  const size_t base = std::max(BestRun(runs), 0);
  std::map<std::string, int32_t> ids;
  const AnsweredTexts first = AnswersOf(runs[base], &ids);
  std::string rows, left_out;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i == base) continue;
    const AnsweredTexts second = AnswersOf(runs[i], &ids);
    if (first.labels.empty() || second.labels != first.labels ||
        second.predicted.size() != second.labels.size()) {
      absl::StrAppend(&left_out, left_out.empty() ? "" : ", ", HtmlEscape(runs[i].path));
      continue;
    }
    std::vector<std::string> row = PairedRow(first, second);
    row.insert(row.begin(), Key(i) + HtmlEscape(runs[i].path));
    rows += ReportRow("td", row);
  }
  if (rows.empty()) return "";
  return absl::StrCat("<h2>The same texts, compared</h2>\n<p>Each run against ", Key(base),
      HtmlEscape(runs[base].path),
      ": the difference in points, with its 95 % interval, and the "
      "probability p of such a difference by chance (paired bootstrap). Below 0.05, the "
      "difference is hardly chance.</p>\n",
      ReportTable(ReportRow("th", {"run", "accuracy", "p", "macro F1", "p", "only it right",
                                      "only the other right", "texts"}) +
                      rows,
          "wrap"),
      left_out.empty() ? ""
                       : absl::StrCat("<p>Not compared, because the texts or their labels "
                                      "differ or are not known: ",
                             left_out, ".</p>\n"));
}

}  // namespace cloze
