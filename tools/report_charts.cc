#include "tools/report_charts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "tools/html.h"
#include "tools/report_sections.h"

namespace cloze {
namespace {

constexpr int kColours = 6;  // runs beyond them share colours
constexpr size_t kMaxPoints = 600, kMaxDots = 40;
constexpr int kChartWidth = 640, kChartHeight = 260, kChartLeft = 86, kChartRight = 24,
              kChartTop = 14, kChartBottom = 34;

struct Extent {
  double low = INFINITY, high = -INFINITY;
  void Add(double x) { low = std::min(low, x), high = std::max(high, x); }
};

std::string Caption(const std::string& name) {
  return HtmlEscape(name == "smoothed_loss"  ? "training loss, smoothed"
                    : name == "memory_bytes" ? "peak of resident memory, bytes"
                                             : absl::StrReplaceAll(name, {{"_", " "}}));
}

// Returns the value of a tick with as many digits as the distance of ticks needs.
std::string TickText(double value, double step) {
  if (value == 0) return "0";
  const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  if (digits > 4) return absl::StrFormat("%.6g", value);
  return std::fabs(value) >= 1e4 ? ReportNumber(value) : absl::StrFormat("%.*f", digits, value);
}

// Maps [from, to] to pixels.
struct Scale {
  double from, to, start, end;
  double operator()(double x) const { return start + (end - start) * (x - from) / (to - from); }
};

// The curve of one run, with a dot for each value if there are few.
std::string Curve(
    const Points& points, const Scale& x, const Scale& y, size_t run, const std::string& title) {
  const std::string colour = absl::StrCat("var(--s", run % kColours, ")");
  const size_t stride = points.size() / kMaxPoints + 1;
  std::string line, dots;
  for (size_t p = (points.size() - 1) % stride; p < points.size(); p += stride) {  // and the last
    const double at_x = x(points[p].first), at_y = y(points[p].second);
    absl::StrAppendFormat(&line, "%.1f,%.1f ", at_x, at_y);
    if (points.size() <= kMaxDots)
      absl::StrAppendFormat(&dots,
          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" style=\"fill:%s\"><title>%s: step %.0f: "
          "%.6g</title></circle>",
          at_x, at_y, colour, title, points[p].first, points[p].second);
  }
  return absl::StrCat("<polyline style=\"stroke:", colour, "\" points=\"", line, "\"><title>",
      title, "</title></polyline>", dots);
}

std::string Grid(const std::vector<double>& x_ticks, const std::vector<double>& y_ticks,
    const Scale& x, const Scale& y) {
  std::string svg;
  for (const double tick : y_ticks) {
    absl::StrAppendFormat(&svg,
        "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
        kChartLeft, kChartWidth - kChartRight, y(tick), y(tick), kChartLeft - 8, y(tick) + 5,
        TickText(tick, y_ticks[1] - y_ticks[0]));
  }
  for (const double tick : x_ticks) {
    if (tick > x.to) continue;
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>",
        x(tick), kChartHeight - 10, TickText(tick, x_ticks[1] - x_ticks[0]));
  }
  return svg;
}

std::string Chart(
    const std::string& name, const std::vector<RunData>& runs, Extent values, double last_step) {
  const auto range = RangeOf(name);
  // A small change of a share must not look like a collapse.
  const double least = std::isfinite(range.second) ? 0.1 : 0.05 * std::fabs(values.high);
  const double missing = std::max(0.0, least - (values.high - values.low)) / 2;
  const std::vector<double> y_ticks = Ticks(values.low - missing, values.high + missing, range),
                            x_ticks = Ticks(0, last_step, {0, INFINITY});
  const Scale x = {0, last_step, kChartLeft, kChartWidth - kChartRight},
              y = {y_ticks.front(), y_ticks.back(), kChartHeight - kChartBottom, kChartTop};
  std::string svg = Grid(x_ticks, y_ticks, x, y);
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto curve = runs[i].curves.find(name);
    if (curve != runs[i].curves.end())
      svg += Curve(curve->second, x, y, i, HtmlEscape(runs[i].path));
  }
  return absl::StrFormat(
      "<figure><figcaption>%s</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" "
      "aria-label=\"%s by step\">%s</svg></figure>\n",
      Caption(name), kChartWidth, kChartHeight, Caption(name), svg);
}

}  // namespace

std::string Key(size_t run) {
  return absl::StrCat(
      "<span class=\"key\" style=\"background:var(--s", run % kColours, ")\"></span>");
}

std::pair<double, double> RangeOf(const std::string& name) {
  const absl::string_view metric = absl::StripPrefix(name, "validation: ");
  for (const char* share : {"accuracy", "f1", "precision", "recall", "auc", "ece", "exact_match"})
    if (absl::StrContains(metric, share)) return {0, 1};
  if (metric == "mcc" || metric == "pearson" || metric == "spearman") return {-1, 1};
  return {0, INFINITY};
}

std::vector<double> Ticks(double low, double high, std::pair<double, double> range) {
  low = std::max(low, range.first), high = std::min(high, range.second);
  if (!(high > low)) high = low + std::max(std::fabs(low) * 0.1, 1e-9);
  const double raw = (high - low) / 4, unit = std::pow(10, std::floor(std::log10(raw)));
  const double step = raw <= unit       ? unit
                      : raw <= 2 * unit ? 2 * unit
                      : raw <= 5 * unit ? 5 * unit
                                        : 10 * unit;
  std::vector<double> ticks;
  for (double i = std::floor(low / step + 1e-9);
       ticks.size() < 2 || ticks.back() < high - step * 1e-9; ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::string Charts(const std::vector<std::string>& names, const std::vector<RunData>& runs) {
  std::string charts, constants;
  for (const std::string& name : names) {
    Extent values;
    double last = 1;
    for (const RunData& run : runs) {
      const auto curve = run.curves.find(name);
      if (curve == run.curves.end()) continue;
      last = std::max(last, curve->second.back().first);
      for (const auto& [step, value] : curve->second) values.Add(value);
    }
    if (values.low < values.high) charts += Chart(name, runs, values, last);
    if (values.low == values.high)
      absl::StrAppend(&constants, constants.empty() ? "<p>Constant: " : ", ", Caption(name), " ",
          ReportNumber(values.low));
  }
  return absl::StrCat("<div class=\"charts\">\n", charts, "</div>\n", constants,
      constants.empty() ? "" : ".</p>\n");
}

}  // namespace cloze
