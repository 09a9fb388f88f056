// `cloze report`: one HTML page about runs, made from what their folders hold.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/result_sentence.h"
#include "tasks/task.h"
#include "tools/command.h"
#include "tools/html.h"
#include "tools/process.h"
#include "tools/report_charts.h"
#include "tools/report_comparison.h"
#include "tools/report_sections.h"

namespace cloze {
namespace {

constexpr char kStyle[] = R"(
:root { color-scheme: light dark; --ink: #1b2430; --soft: #5b6977; --line: #d5dde5; --page: #fff;
  --s0: #1c6dd0; --s1: #d9480f; --s2: #2b8a3e; --s3: #9c36b5; --s4: #b58900; --s5: #0b7285; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --soft: #9aa7b4; --line: #36414d;
  --page: #14191f; --s0: #6ea8fe; --s1: #ff922b; --s2: #69db7c; --s3: #da77f2; --s4: #ffd43b;
  --s5: #66d9e8; } }
body { margin: 1.4em auto; max-width: 1200px; padding: 0 1.2em; color: var(--ink);
  background: var(--page); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5em; margin: 0 0 .3em; overflow-wrap: anywhere; }
h2 { font-size: 1.2em; margin: 1.8em 0 .5em; overflow-wrap: anywhere; }
h3 { font-size: 1em; margin: 1.4em 0 .4em; } details { margin: .8em 0; }
.lead { font-size: 1.2em; margin: .2em 0; max-width: 46em; }
.facts, small { color: var(--soft); } .facts { margin: .2em 0 1em; } p { overflow-wrap: anywhere; }
.charts { display: grid; gap: 1.2em;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); }
figure { margin: 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; display: block; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.charts svg text { font-size: 16px; }
.grid { stroke: var(--line); } polyline { fill: none; stroke-width: 1.8; stroke-linecap: round; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { white-space: nowrap; padding: .25em .7em; border-bottom: 1px solid var(--line);
  text-align: right; }
th:first-child, td:first-child { text-align: left; }
td .bar { display: block; height: .7em; background: var(--s0); }
@media (max-width: 600px) { body { padding: 0 .8em; } th, td { padding: .25em .35em; } }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; }
pre { overflow-x: auto; padding: .8em; border: 1px solid var(--line); border-radius: 4px; }
)";

// Returns the names of the curves of loss and evaluations, the one that chooses the model first.
std::vector<std::string> CurveNames(const std::vector<RunData>& runs) {
  std::vector<std::string> names = {"smoothed_loss"};
  std::set<std::string> rest;
  for (const RunData& run : runs) {
    for (const auto& [name, points] : run.curves)
      if (absl::StartsWith(name, "validation: ")) rest.insert(name);
  }
  if (!runs[0].names.empty()) names.insert(names.begin(), "validation: " + runs[0].names[0]);
  rest.erase(names[0]);
  names.insert(names.end(), rest.begin(), rest.end());
  return names;
}

std::string CurveSections(const std::vector<RunData>& runs) {
  std::string keys;
  for (size_t i = 0; runs.size() > 1 && i < runs.size(); ++i)
    absl::StrAppend(&keys, Key(i), HtmlEscape(runs[i].path), "&emsp;");
  return absl::StrCat("<h2>Curves by step</h2>\n<p>", keys, "</p>\n",
      Charts(CurveNames(runs), runs),
      "<details><summary>Rate, gradient, speed and memory</summary>\n",
      Charts({"learning_rate", "grad_norm", "tokens_per_second", "memory_bytes"}, runs),
      "</details>\n");
}

// "2026-11-29T04:15:56Z" as "2026-11-29 04:15 UTC".
std::string DateText(const std::string& time) {
  return time.size() < 16 ? time
                          : absl::StrCat(time.substr(0, 10), " ", time.substr(11, 5), " UTC");
}

// The sentence as HTML, without line breaks before percent signs.
std::string SentenceOf(const RunData& run) {
  const bool words = run.loaded.has_value() && run.loaded->spec.has_token_tagging();
  return absl::StrReplaceAll(
      HtmlEscape(ResultSentence(run.metrics, words ? "words" : "texts", run.result)),
      {{" %", "&nbsp;%"}});
}

// One sentence about the result, then what was trained, when, and for how long.
std::string Lead(const RunData& run) {
  std::vector<std::string> facts;
  if (run.loaded.has_value())
    facts.push_back(absl::StrReplaceAll(MakeTask(run.loaded->spec)->name(), {{"_", " "}}));
  facts.push_back(DateText(run.time));
  facts.push_back(absl::StrCat("trained for ", FormatDuration(run.seconds)));
  facts.push_back(run.all_steps > run.steps
                      ? absl::StrCat("step ", run.steps, " of ", run.all_steps)
                      : Counted(run.steps, "step"));
  if (!run.names.empty())
    facts.push_back(
        absl::StrCat("best model at step ", run.best_step, ", chosen by ", run.names[0]));
  return absl::StrCat("<p class=\"lead\">", SentenceOf(run), "</p>\n<p class=\"facts\">",
      HtmlEscape(absl::StrJoin(facts, " · ")), "</p>\n");
}

// The settings that are not the defaults, and all of them.
std::string SpecSection(const RunData& run) {
  std::string rows;
  if (run.loaded.has_value()) {
    for (const auto& [name, value] : FieldsOf(run.loaded->spec, /*changed=*/true))
      rows += ReportRow("td", {HtmlEscape(name), HtmlEscape(value)});
  }
  return absl::StrCat("<h3>Spec</h3>\n", rows.empty() ? "" : ReportTable(rows, "texts"),
      "<details><summary>With all defaults</summary>\n<pre>", HtmlEscape(run.spec),
      "</pre></details>\n");
}

std::string OneRun(const RunData& run) {
  return absl::StrCat("<h1>", HtmlEscape(run.Name()), "</h1>\n", Lead(run), MetricsTable({run}),
      ResultSections(run.metrics), CurveSections({run}), DataSections(run.about), SpecSection(run));
}

std::string SeveralRuns(const std::vector<RunData>& runs) {
  const int best = BestRun(runs);
  std::string body = absl::StrCat("<h1>", runs.size(), " runs</h1>\n");
  if (best >= 0)
    absl::StrAppend(&body, "<p class=\"lead\">Best by ", HtmlEscape(runs[best].names[0]), ": ",
        Key(best), HtmlEscape(runs[best].path), ". ", SentenceOf(runs[best]), "</p>\n");
  absl::StrAppend(&body, MetricsTable(runs), "<h2>Settings that differ</h2>\n",
      DifferencesTable(runs), PairedTable(runs), CurveSections(runs));
  for (size_t i = 0; i < runs.size(); ++i)
    absl::StrAppend(&body, "<h2>", Key(i), HtmlEscape(runs[i].path), "</h2>\n", Lead(runs[i]),
        ResultSections(runs[i].metrics), DataSections(runs[i].about), SpecSection(runs[i]));
  return body;
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
    std::vector<std::string> inner;
    RETURN_IF_ERROR(AddRuns(path, 2, &inner));
    if (inner.empty())
      return Error(Exit::kNoInput, QuotePath(path), ": expected a run directory, with ", kLogName);
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
  const std::string body = absl::StrCat(runs.size() == 1 ? OneRun(runs[0]) : SeveralRuns(runs),
      "<p class=\"facts\">cloze ", Version(), "</p>\n");
  const std::string page = HtmlPage(runs.size() == 1 ? runs[0].Name() : "cloze report",
      absl::StrCat(kStyle, kSectionStyle), body);
  if (!file) return WriteStdout(page);
  RETURN_IF_ERROR(WriteFileAtomically(options.out, page));
  return WriteStdout(absl::StrCat("{\"report\": ", JsonString(options.out), "}\n"));
}

}  // namespace

void AddReport(Command& app) {
  app.AddCommand<ReportOptions>(
      "report",
      "Write one HTML page about runs: the result in a sentence, metrics, confusion, labels, the "
      "most confident errors, calibration, curves, data, machine and spec. For several runs also "
      "the settings that differ and, of classifiers that were measured on the same texts, whether "
      "the difference may be chance. The page loads nothing and has no scripts. It can be written "
      "at any time, even during a run; errors show their original texts if the validation data "
      "are still there.",
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
