// `cloze report`: one HTML page about runs, made from what their folders hold.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "proto/spec.h"
#include "tasks/run/checkpoint.h"
#include "tools/command.h"
#include "tools/html.h"
#include "tools/process.h"
#include "tools/report_sections.h"

namespace cloze {
namespace {

constexpr int64_t kMaxLog = 256 << 20;
constexpr int kColours = 6;  // runs beyond them share colours
constexpr size_t kMaxPoints = 600;
constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --ink: #1b2430; --soft: #5b6977; --line: #d5dde5; --page: #fff;
  --s0: #1c6dd0; --s1: #d9480f; --s2: #2b8a3e; --s3: #9c36b5; --s4: #b58900; --s5: #0b7285; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --soft: #9aa7b4; --line: #36414d;
  --page: #14191f; --s0: #6ea8fe; --s1: #ff922b; --s2: #69db7c; --s3: #da77f2; --s4: #ffd43b;
  --s5: #66d9e8; } }
body { margin: 1.4em auto; max-width: 1400px; padding: 0 1.2em; color: var(--ink);
  background: var(--page); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin: 1.6em 0 .5em; }
.charts { display: grid; gap: 1.2em;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.charts svg text { font-size: 16px; }
.grid { stroke: var(--line); } polyline { fill: none; stroke-width: 1.8; stroke-linecap: round; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { white-space: nowrap; padding: .25em .7em; border-bottom: 1px solid var(--line);
  text-align: right; }
th:first-child, td:first-child { text-align: left; }
td .bar { display: block; height: .7em; background: var(--s0); }
@media (max-width: 600px) { body { padding: 0 .8em; } th, td { padding: .25em .35em; } }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
pre { overflow-x: auto; padding: .8em; border: 1px solid var(--line); border-radius: 4px; }
)";

using Points = std::vector<std::pair<double, double>>;  // step, value

struct RunData {
  std::string path, spec;
  std::map<std::string, Points> curves;  // by name
  Json metrics;                          // of the best model; null without validation
  Json about;                            // null in runs of older versions
  int64_t best_step = 0, steps = 0;
};

std::string Caption(const std::string& name) {
  return HtmlEscape(name == "smoothed_loss"  ? "training loss, smoothed"
                    : name == "memory_bytes" ? "peak of resident memory, bytes"
                                             : absl::StrReplaceAll(name, {{"_", " "}}));
}

void DropFrom(double step, Points* points) {
  while (!points->empty() && points->back().first >= step) points->pop_back();
}

void AddNumbers(const Json& object, const std::string& prefix, double step, RunData* run) {
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number()) continue;
    Points& points = run->curves[prefix + name];
    DropFrom(step, &points);
    points.emplace_back(step, value.get<double>());
  }
}

// The last line may be torn by a kill; lines that are not JSON are left out. After a kill a run
// repeats the steps since its checkpoint, and the later lines count.
void ReadLog(absl::string_view text, RunData* run) {
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const absl::StatusOr<Json> json = ParseJson(line, kLogName);
    if (!json.ok() || !JsonMember(*json, "step").is_number_unsigned()) continue;
    const double step = json->at("step").get<double>();
    if (step < run->steps)
      for (auto& [name, points] : run->curves) DropFrom(step, &points);
    run->steps = json->at("step").get<int64_t>();
    const Json& evaluation = JsonMember(*json, "evaluation");
    evaluation.is_object() ? AddNumbers(evaluation, "validation: ", step, run)
                           : AddNumbers(*json, "", step, run);
  }
}

// Returns the object in the file, or null if there is no file.
absl::StatusOr<Json> ReadIfThere(const std::string& path) {
  if (!PathExists(path)) return Json();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 64 << 20));
  return ParseJson(text, path);
}

absl::StatusOr<RunData> ReadRun(const std::string& path) {
  RunData run;
  run.path = path;
  ASSIGN_OR_RETURN(const std::string log, ReadFile(JoinPath(path, kLogName), kMaxLog));
  ReadLog(log, &run);
  if (run.curves.empty())
    return Error(Exit::kData, QuotePath(JoinPath(path, kLogName)), ": no step yet");
  ASSIGN_OR_RETURN(run.spec, ReadFile(JoinPath(path, kSpecName), kMaxSpecBytes));
  ASSIGN_OR_RETURN(const Json best, ReadIfThere(JoinPath(path, "metrics.json")));
  run.metrics = JsonMember(best, "metrics");
  if (JsonMember(best, "step").is_number_unsigned()) run.best_step = best["step"].get<int64_t>();
  ASSIGN_OR_RETURN(run.about, ReadIfThere(JoinPath(path, "about.json")));
  return run;
}

std::string Key(size_t run) {
  return absl::StrCat(
      "<span class=\"key\" style=\"background:var(--s", run % kColours, ")\"></span>");
}

// The curves of one name, one colour per run.
std::string Chart(const std::string& name, const std::vector<RunData>& runs) {
  constexpr int kWidth = 640, kHeight = 260, kLeft = 98, kRight = 16, kTop = 12, kBottom = 34;
  double last = 1, low = INFINITY, high = -INFINITY;
  for (const RunData& run : runs) {
    const auto curve = run.curves.find(name);
    if (curve == run.curves.end()) continue;
    for (const auto& [step, value] : curve->second) {
      last = std::max(last, step), low = std::min(low, value), high = std::max(high, value);
    }
  }
  if (!(high > low)) low -= 0.5, high += 0.5;
  const double across = (kWidth - kLeft - kRight) / last;
  const double up = (kHeight - kTop - kBottom) / (high - low);
  std::string svg;
  for (int tick = 0; tick <= 4; ++tick) {
    const double value = low + (high - low) * tick / 4, y = kHeight - kBottom - (value - low) * up;
    const double x = kLeft + across * last * tick / 4;
    absl::StrAppendFormat(&svg,
        "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>"
        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>",
        kLeft, kWidth - kRight, y, y, kLeft - 6, y + 4, ReportNumber(value), x, kHeight - 10,
        last * tick / 4);
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto curve = runs[i].curves.find(name);
    if (curve == runs[i].curves.end()) continue;
    const size_t stride = curve->second.size() / kMaxPoints + 1;
    absl::StrAppend(&svg, "<polyline style=\"stroke:var(--s", i % kColours, ")\" points=\"");
    const Points& points = curve->second;
    for (size_t p = (points.size() - 1) % stride; p < points.size(); p += stride) {  // and the last
      const auto& [step, value] = points[p];
      const std::string at = absl::StrFormat(
          "%.1f,%.1f ", kLeft + step * across, kHeight - kBottom - (value - low) * up);
      absl::StrAppend(&svg, at, points.size() == 1 ? at : "");  // a line of no length is a dot
    }
    absl::StrAppend(&svg, "\"><title>", HtmlEscape(runs[i].path), "</title></polyline>");
  }
  return absl::StrFormat(
      "<figure><figcaption>%s</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\" "
      "aria-label=\"%s by step\">%s</svg></figure>\n",
      Caption(name), kWidth, kHeight, Caption(name), svg);
}

std::string Charts(const std::vector<RunData>& runs) {
  std::string out = "<div class=\"charts\">\n";
  std::map<std::string, Points> all;
  for (const RunData& run : runs) all.insert(run.curves.begin(), run.curves.end());
  if (all.count("smoothed_loss") > 0) out += Chart("smoothed_loss", runs);
  for (const auto& [name, points] : all) {
    if (name.rfind("validation: ", 0) == 0) out += Chart(name, runs);
  }
  for (const char* name : {"learning_rate", "grad_norm", "tokens_per_second", "memory_bytes"})
    if (all.count(name) > 0) out += Chart(name, runs);
  return out + "</div>\n";
}

// One row per run: the metrics of its best model.
std::string Summary(const std::vector<RunData>& runs) {
  std::vector<std::string> names;
  for (const RunData& run : runs) {
    for (const auto& [name, value] : run.metrics.items()) {
      if (value.is_number() && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  std::string out = "<div class=\"scroll\"><table><tr><th>run</th><th>steps</th><th>best at</th>";
  for (const std::string& name : names) absl::StrAppend(&out, "<th>", HtmlEscape(name), "</th>");
  for (size_t i = 0; i < runs.size(); ++i) {
    absl::StrAppend(&out, "</tr>\n<tr><td>", Key(i), HtmlEscape(runs[i].path), "</td><td>",
        runs[i].steps, "</td><td>",
        runs[i].metrics.is_null() ? "" : absl::StrCat(runs[i].best_step), "</td>");
    for (const std::string& name : names) {
      const Json& value = JsonMember(runs[i].metrics, name.c_str());
      absl::StrAppend(&out, "<td>",
          value.is_number() ? ReportNumber(value.get<double>()) : std::string(), "</td>");
    }
  }
  return out + "</tr></table></div>\n";
}

std::string Details(const RunData& run) {
  return absl::StrCat(RunSections(run.metrics, run.about), "<h3>Spec</h3>\n<pre>",
      HtmlEscape(run.spec), "</pre>\n");
}

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out = "report.html";
  bool force = false;
};

// Adds `path` to *runs if it is the directory of a run; else the runs in it and in its folders,
// down to `depth` levels: a sweep has runs, or repeated runs.
absl::Status AddRuns(const std::string& path, int depth, std::vector<std::string>* runs) {
  if (PathExists(JoinPath(path, kLogName))) {
    runs->push_back(path);
    return absl::OkStatus();
  }
  if (depth == 0 || !IsDirectory(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names)
    RETURN_IF_ERROR(AddRuns(JoinPath(path, name), depth - 1, runs));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> RunsIn(const std::string& path) {
  std::vector<std::string> runs;
  RETURN_IF_ERROR(AddRuns(path, 2, &runs));
  if (!runs.empty()) return runs;
  return Error(Exit::kNoInput, QuotePath(path), ": expected a run directory, with ", kLogName);
}

// True if `path` is a file that begins as a report does.
bool IsHtml(const std::string& path) {
  std::string start(9, '\0');
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) &&
         std::ifstream(path).read(start.data(), start.size()) && start == "<!DOCTYPE";
}

absl::Status Report(const ReportOptions& options) {
  const bool file = options.out != "-";
  RETURN_IF_ERROR(CheckExtension(options.out, {"html", "htm"}));
  if (file) RETURN_IF_ERROR(CheckOutput(options.out, options.force || IsHtml(options.out)));
  std::vector<RunData> runs;
  for (const std::string& path : options.runs) {
    ASSIGN_OR_RETURN(const std::vector<std::string> inner, RunsIn(path));
    absl::Status left_out;  // the error of a run of several that has no step yet
    const size_t before = runs.size();
    for (const std::string& directory : inner) {
      absl::StatusOr<RunData> run = ReadRun(directory);
      if (run.ok()) {
        runs.push_back(*std::move(run));
      } else if (const Exit exit = ExitOf(run.status());
                 directory != path && (exit == Exit::kData || exit == Exit::kNoInput)) {
        std::fprintf(stderr, "cloze: left out %s\n", std::string(run.status().message()).c_str());
        left_out = run.status();
      } else {
        return run.status();
      }
    }
    if (runs.size() == before) return left_out;
  }
  std::string body = absl::StrCat("<h1>", runs.size() == 1 ? HtmlEscape(runs[0].path) : "Runs",
      "</h1>\n", Summary(runs), "<h2>Curves by step</h2>\n", Charts(runs));
  for (size_t i = 0; i < runs.size(); ++i)
    absl::StrAppend(&body, "<h2>", Key(i), HtmlEscape(runs[i].path), "</h2>\n", Details(runs[i]));
  absl::StrAppend(&body, "<p>cloze ", Version(), "</p>\n");
  const std::string page = HtmlPage("cloze report", absl::StrCat(kStyle, kSectionStyle), body);
  if (!file) return WriteStdout(page);
  RETURN_IF_ERROR(WriteFileAtomically(options.out, page));
  return WriteStdout(absl::StrCat("{\"report\": ", JsonString(options.out), "}\n"));
}

}  // namespace

void AddReport(Command& app) {
  app.AddCommand<ReportOptions>(
      "report",
      "Write one HTML page about runs: metrics, curves, labels, confusion, calibration, the most "
      "confident errors, data, machine and spec. The page loads nothing and has no scripts. It can "
      "be written at any time, even during a run.",
      "  cloze report runs/sst2\n"
      "  cloze report runs/a runs/b --out compare.html",
      [](Command& command, ReportOptions& options) {
        command.Add("run", &options.runs,
            "Run directories, or directories of runs (of a sweep, or with `repeat`).",
            {.required = true});
        command.Add("--out", &options.out,
            "HTML file to write; - is standard output. An older HTML file is replaced.");
        command.Add("--force", &options.force, "Replace any file.");
      },
      Report);
}

}  // namespace cloze
