#include "tools/report_sections.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/base/text.h"
#include "tools/html.h"

namespace cloze {
namespace {

constexpr int kSide = 260, kLeft = 44, kTop = 10, kBottom = 34;  // of the square diagrams
constexpr size_t kMaxRows = 200, kErrorBytes = 600;

std::string Text(const Json& value) {
  if (value.is_null()) return "";
  return HtmlEscape(value.is_string()         ? value.get<std::string>()
                    : value.is_number_float() ? ReportNumber(value.get<double>())
                                              : value.dump());
}

// Returns a text of an error, at most kErrorBytes of it.
std::string ErrorText(const Json& error, const char* name) {
  const Json& value = JsonMember(error, name);
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text.size() <= kErrorBytes) return HtmlEscape(text);
  return HtmlEscape(text.substr(0, Utf8Floor(text, kErrorBytes)) + "…");
}

double NumberOf(const Json& object, const char* name) {
  const Json& value = JsonMember(object, name);
  return value.is_number() ? value.get<double>() : 0;
}

// True for a list of objects that is not empty.
bool IsTable(const Json& rows) {
  return rows.is_array() && !rows.empty() &&
         std::all_of(rows.begin(), rows.end(), [](const Json& row) { return row.is_object(); });
}

// The table per_class or per_type, with the F1 also as a bar.
std::string ClassTable(const Json& rows, const char* name) {
  const char* columns[] = {name, "precision", "recall", "f1", "support"};
  std::string out = ReportRow("th", {name, "precision", "recall", "f1", "support", ""});
  for (size_t r = 0; r < std::min(rows.size(), kMaxRows); ++r) {
    std::vector<std::string> cells;
    for (const char* column : columns) cells.push_back(Text(JsonMember(rows[r], column)));
    cells.push_back(absl::StrFormat("<span class=\"bar\" style=\"width:%.1fem\"></span>",
        6 * std::clamp(NumberOf(rows[r], "f1"), 0.0, 1.0)));
    out += ReportRow("td", cells);
  }
  return ReportTable(out, "classes");
}

// Rows are the right labels, columns the predicted ones; shades are shares of the row.
std::string ConfusionTable(const Json& labels, const Json& counts) {
  std::string out = "<tr><th>true \\ predicted</th>";
  for (const Json& label : labels)
    absl::StrAppend(&out, "<th><span class=\"up\">", Text(label), "</span></th>");
  for (size_t r = 0; r < counts.size(); ++r) {
    double sum = 0;
    for (const Json& count : counts[r]) sum += count.is_number() ? count.get<double>() : 0;
    absl::StrAppend(&out, "</tr>\n<tr><td>", r < labels.size() ? Text(labels[r]) : "", "</td>");
    for (const Json& count : counts[r]) {
      const double share = count.is_number() && sum > 0 ? count.get<double>() / sum : 0;
      absl::StrAppendFormat(&out,
          "<td style=\"background:color-mix(in srgb,var(--s0) %.0f%%,transparent)\">%s</td>",
          60 * share, Text(count));
    }
  }
  return ReportTable(out + "</tr>", "confusion");
}

std::string Axis(double x, double y, const char* anchor, const std::string& text) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", x, y, anchor, HtmlEscape(text));
}

std::string Figure(const std::string& caption, const std::string& svg, int width) {
  return absl::StrFormat(
      "<figure class=\"small\"><figcaption>%s</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" "
      "aria-label=\"%s\">%s</svg></figure>\n",
      HtmlEscape(caption), width, kSide + kTop + kBottom, HtmlEscape(caption), svg);
}

// A bar for each bin of scores: the share that is right; on the diagonal, scores are as high as
// that share. Faint bars hold few examples.
std::string CalibrationChart(const Json& bins, const Json& metrics) {
  double most = 1;
  for (const Json& bin : bins) most = std::max(most, NumberOf(bin, "count"));
  const auto x = [](double score) { return kLeft + kSide * std::clamp(score, 0.0, 1.0); };
  const auto y = [](double share) { return kTop + kSide * (1 - std::clamp(share, 0.0, 1.0)); };
  std::string svg;
  for (const double tick : {0.0, 0.5, 1.0}) {
    absl::StrAppendFormat(&svg,
        "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", kLeft, kLeft + kSide,
        y(tick), y(tick));
    svg += Axis(kLeft - 6, y(tick) + 4, "end", absl::StrFormat("%.1f", tick));
    svg += Axis(x(tick), kTop + kSide + 16, "middle", absl::StrFormat("%.1f", tick));
  }
  for (const Json& bin : bins) {
    const double from = NumberOf(bin, "from"), to = NumberOf(bin, "to"),
                 share = NumberOf(bin, "share"), count = NumberOf(bin, "count");
    absl::StrAppendFormat(&svg,
        "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
        "opacity=\"%.2f\"><title>%.0f examples: mean score %.3f, right %.3f</title></rect>",
        x(from) + 1, y(share), std::max(x(to) - x(from) - 2, 1.0), y(0) - y(share),
        0.25 + 0.75 * std::sqrt(std::clamp(count / most, 0.0, 1.0)), count,
        NumberOf(bin, "probability"), share);
  }
  absl::StrAppendFormat(&svg,
      "<line class=\"ideal\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", x(0), y(0), x(1),
      y(1));
  svg += Axis(x(0.5), kTop + kSide + 31, "middle", "score");
  std::string caption = "accuracy by score";
  if (JsonMember(metrics, "ece").is_number())
    absl::StrAppendFormat(&caption, "; calibration error %.4f", NumberOf(metrics, "ece"));
  if (JsonMember(metrics, "temperature").is_number())
    absl::StrAppendFormat(&caption, ", temperature %.3f", NumberOf(metrics, "temperature"));
  return Figure(caption, svg, kLeft + kSide + 12);
}

// The texts that the answers with the highest scores are wrong for.
std::string ErrorTable(const Json& errors) {
  std::string out;
  for (const Json& error : errors) {
    const auto member = [&](const char* name) { return Text(JsonMember(error, name)); };
    const std::string id = member("id"), pair = ErrorText(error, "text_pair"),
                      label = member("label"), token = ErrorText(error, "token");
    const std::string row = !id.empty() ? "id " + id : member("where");
    absl::StrAppendFormat(&out,
        "<tr><td>%s<br><small>%s</small></td><td>%strue: <strong>%s</strong><br>predicted: "
        "<strong>%s</strong> %s</td>"
        "</tr>\n",
        ErrorText(error, "text") + (pair.empty() ? "" : "<br>" + pair),
        row.empty() ? "example " + member("example") : row,
        token.empty() ? "" : "word " + member("word") + ": <strong>" + token + "</strong><br>",
        label.empty() ? "(not a label of the model)" : label, member("predicted"), member("score"));
  }
  return ReportTable(out, "texts errors");
}

// Bars of the histogram of `part`, whose bins have doubling widths.
std::string LengthChart(const std::string& part, const Json& histogram) {
  double most = 1;
  for (const Json& bin : histogram) most = std::max(most, NumberOf(bin, "count"));
  const double step = double(kSide + 60) / static_cast<double>(histogram.size());
  std::string svg;
  for (size_t i = 0; i < histogram.size(); ++i) {
    const double count = NumberOf(histogram[i], "count"), height = (kSide - 20) * count / most;
    const double x = 6 + step * i, y = kTop + kSide - height;
    absl::StrAppendFormat(&svg,
        "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%.0f to "
        "%.0f tokens: %.0f sequences</title></rect>",
        x + 1, y, std::max(step - 2, 1.0), height, NumberOf(histogram[i], "from"),
        NumberOf(histogram[i], "to"), count);
    svg += Axis(x + step / 2, y - 4, "middle", ReportNumber(count));
    svg += Axis(x + step / 2, kTop + kSide + 16, "middle",
        absl::StrFormat("%.0f+", NumberOf(histogram[i], "from")));
  }
  return Figure(absl::StrCat("lengths of ", part, " in tokens"), svg, kSide + 72);
}

// Numbers of the parts of the data side by side, and their labels.
std::string DataTable(const Json& data) {
  std::string out = "<tr><th></th>";
  for (const auto& [part, numbers] : data.items())
    absl::StrAppend(&out, "<th>", HtmlEscape(part), "</th>");
  const auto row = [&](const std::string& name, auto value) {
    absl::StrAppend(
        &out, "</tr>\n<tr><td>", HtmlEscape(absl::StrReplaceAll(name, {{"_", " "}})), "</td>");
    for (const auto& [part, numbers] : data.items())
      absl::StrAppend(&out, "<td>", Text(value(numbers)), "</td>");
  };
  for (const char* name :
      {"examples", "tokens", "empty", "truncated", "cut_tokens", "unknown_tokens", "invalid_bytes"})
    row(name, [&](const Json& part) { return JsonMember(part, name); });
  for (const char* name : {"shortest", "median", "p95", "longest"})
    row(absl::StrCat("length, ", name),
        [&](const Json& part) { return JsonMember(JsonMember(part, "lengths"), name); });
  size_t rows = 0;
  for (const auto& [label, count] : JsonMember(JsonMember(data, "train"), "classes").items()) {
    if (++rows > kMaxRows) break;
    row(absl::StrCat("label ", label), [&label = label](const Json& part) {
      return JsonMember(JsonMember(part, "classes"), label.c_str());
    });
  }
  return ReportTable(out + "</tr>");
}

std::string DataSection(const Json& data) {
  std::string charts;
  for (const auto& [part, numbers] : data.items()) {
    const Json& histogram = JsonMember(JsonMember(numbers, "lengths"), "histogram");
    if (IsTable(histogram)) charts += LengthChart(part, histogram);
  }
  return absl::StrCat("<h3>Data</h3>\n<div class=\"side\">", charts, "</div>\n", DataTable(data));
}

std::string MachineSection(const Json& about) {
  std::string out;
  for (const auto& [name, value] : JsonMember(about, "machine").items())
    out += ReportRow("td", {HtmlEscape(name), Text(value)});
  out += ReportRow("td", {"program", Text(JsonMember(about, "program"))});
  return absl::StrCat("<h3>Machine and versions</h3>\n", ReportTable(out, "texts"));
}

}  // namespace

const char kSectionStyle[] = R"(
.side { display: flex; flex-wrap: wrap; gap: 1.2em; } .small { flex: 0 1 340px; min-width: 0; }
rect.bar { fill: var(--s0); }
.ideal { stroke: var(--s1); stroke-width: 1.5; stroke-dasharray: 5 4; }
.texts td { text-align: left; vertical-align: top; }
.texts th { text-align: left; }
.texts td:last-child, .errors td, .wrap td, .wrap th, .classes td:first-child {
  white-space: normal; overflow-wrap: anywhere; }
.errors td:last-child { min-width: 11em; }
.confusion th { vertical-align: bottom; } .confusion td, .confusion th { padding: .25em .35em; }
.confusion :is(td, th):first-child { white-space: normal; overflow-wrap: anywhere; min-width: 4em; }
.up { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 12em; overflow: hidden; }
@media (max-width: 600px) { .confusion { font-size: .85em; }
  .confusion td, .confusion th { padding: .25em .2em; }
  .classes td:last-child, .classes th:last-child { display: none; } }
)";

std::string ReportNumber(double value) {
  if (std::fabs(value) >= 1e6) return absl::StrFormat("%.4gM", value / 1e6);
  if (std::fabs(value) >= 1e4) return absl::StrFormat("%.4gk", value / 1e3);
  return absl::StrFormat("%.4g", value);
}

std::string ReportRow(const char* tag, const std::vector<std::string>& cells) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) absl::StrAppend(&row, "<", tag, ">", cell, "</", tag, ">");
  return row + "</tr>\n";
}

std::string ReportTable(const std::string& rows, const char* kind) {
  return absl::StrCat(
      "<div class=\"scroll\"><table class=\"", kind, "\">", rows, "</table></div>\n");
}

std::string ResultSections(const Json& metrics) {
  std::string out;
  const Json& confusion = JsonMember(metrics, "confusion");
  const Json &labels = JsonMember(confusion, "labels"), &counts = JsonMember(confusion, "counts");
  if (labels.is_array() && counts.is_array())
    absl::StrAppend(&out, "<h3>Confusion</h3>\n", ConfusionTable(labels, counts));
  for (const auto& [name, column, title] : {std::tuple("per_type", "type", "Types of spans"),
           std::tuple("per_class", "label", "Labels")}) {
    const Json& classes = JsonMember(metrics, name);
    if (IsTable(classes))
      absl::StrAppend(&out, "<h3>", title, "</h3>\n", ClassTable(classes, column));
  }
  const Json& errors = JsonMember(metrics, "errors");
  if (IsTable(errors))
    absl::StrAppend(&out, "<h3>Most confident errors</h3>\n", ErrorTable(errors));
  const Json& bins = JsonMember(metrics, "calibration");
  if (IsTable(bins))
    absl::StrAppend(&out, "<h3>Calibration</h3>\n<div class=\"side\">",
        CalibrationChart(bins, metrics), "</div>\n");
  return out;
}

std::string DataSections(const Json& about) {
  std::string out;
  const Json& data = JsonMember(about, "data");
  if (data.is_object() && !data.empty()) out += DataSection(data);
  if (JsonMember(about, "machine").is_object()) out += MachineSection(about);
  return out;
}

}  // namespace cloze
