#include "tools/report_run.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "tasks/data/readers.h"
#include "tasks/run/checkpoint.h"
#include "tasks/run/result_sentence.h"
#include "tasks/task.h"
#include "tasks/training/run_inputs.h"

namespace cloze {
namespace {

constexpr int64_t kMaxLog = 256 << 20;

void DropFrom(double step, Points* points) {
  while (!points->empty() && points->back().first >= step) points->pop_back();
}

void AddNumbers(const Json& object, const std::string& prefix, double step, RunData* run) {
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number() || name == "temperature") continue;
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
    const Json &evaluation = JsonMember(*json, "evaluation"), &all = JsonMember(*json, "steps"),
               &seconds = JsonMember(*json, "seconds"), &time = JsonMember(*json, "time");
    evaluation.is_object() ? AddNumbers(evaluation, "validation: ", step, run)
                           : AddNumbers(*json, "", step, run);
    if (all.is_number_unsigned()) run->all_steps = all.get<int64_t>();
    if (seconds.is_number()) run->seconds = seconds.get<double>();
    if (time.is_string()) run->time = time.get<std::string>();
  }
}

// Returns the object in the file, or null if there is no file. *text, if not null, receives the
// text of the file.
absl::StatusOr<Json> ReadIfThere(const std::string& path, std::string* text = nullptr) {
  if (!PathExists(path)) return Json();
  ASSIGN_OR_RETURN(std::string content, ReadFile(path, 64 << 20));
  auto json = ParseJson(content, path);
  if (text != nullptr) *text = std::move(content);
  return json;
}

// Returns the value of the column or member "id" as text; "" if there is none.
std::string RowId(const LabelledRecord& row) {
  const std::vector<std::string>& cells = row.record.cells;
  for (size_t i = 0; i < std::min(row.columns.size(), cells.size()); ++i)
    if (absl::EqualsIgnoreCase(row.columns[i], "id")) return cells[i];
  if (!row.columns.empty() || cells.empty() || cells[0].empty() || cells[0][0] != '{') return "";
  const absl::StatusOr<Json> json = ParseJson(cells[0], "");
  const Json id = json.ok() ? JsonMember(*json, "id") : Json();
  return id.is_null() ? "" : id.is_string() ? id.get<std::string>() : id.dump();
}

// Adds the original texts, see ReadRun.
void AddOriginals(TaskSpec spec, Json* errors) {
  KeepRules(spec, &spec);
  if (spec.validation().files_size() == 0 || HasStream(spec.validation())) return;
  const auto task = MakeTask(spec);
  const auto reader = task->OpenLabelled(spec.validation());
  if (!reader.ok()) return;
  const auto number = [](const Json& error, const char* name) {
    const Json& count = JsonMember(error, name);
    return count.is_number_unsigned() ? count.get<int64_t>() : 0;
  };
  int64_t last = 0;
  for (const Json& error : *errors) last = std::max(last, number(error, "example"));
  LabelledRecord row;
  for (int64_t n = 1; n <= last; ++n) {
    const absl::StatusOr<bool> more = (*reader)(&row);
    if (!more.ok() || !*more) return;
    for (Json& error : *errors) {
      if (number(error, "example") != n) continue;
      const std::vector<std::string>& words = row.record.words;
      const size_t word = number(error, "word") - 1;  // of a whole text: larger than any
      const Json label = JsonMember(error, "label"), answer = row.answer;
      const Json& tags = JsonMember(answer, "true_tags");
      const Json& there = word < tags.size() ? tags[word] : JsonMember(answer, "true_label");
      if (there.is_null() || (!label.is_null() && label != there)) return;  // other data
      if (word < words.size()) error["token"] = words[word];
      error.update({{"text", words.empty() ? row.record.text : absl::StrJoin(words, " ")},
          {"text_pair", row.record.text_pair}, {"id", RowId(row)}, {"where", row.where}});
    }
  }
}

}  // namespace

std::string RunData::Name() const {
  const std::string full = AbsolutePath(path);
  const std::string name = BaseName(full);
  const bool part = absl::StartsWith(name, "seed-") || absl::StrContains(name, "=");
  return part ? absl::StrCat(BaseName(DirectoryOf(full)), "/", name) : name;
}

std::optional<Metric> RunData::Chosen() const {
  if (!loaded.has_value() || names.empty()) return std::nullopt;
  const auto metric = FindMetric(MetricsOf(*MakeTask(loaded->spec), loaded->spec), names[0]);
  return metric.ok() ? std::optional<Metric>(*metric) : std::nullopt;
}

absl::StatusOr<RunData> ReadRun(const std::string& path) {
  RunData run;
  run.path = path;
  ASSIGN_OR_RETURN(const std::string log, ReadFile(JoinPath(path, kLogName), kMaxLog));
  ReadLog(log, &run);
  if (run.curves.empty())
    return Error(Exit::kData, QuotePath(JoinPath(path, kLogName)), ": no step yet");
  const std::string spec = JoinPath(path, kSpecName), metrics = JoinPath(path, "metrics.json");
  ASSIGN_OR_RETURN(run.spec, ReadFile(spec, kMaxSpecBytes));
  if (auto loaded = LoadVerifiedSpec(spec, {}); loaded.ok()) run.loaded = *std::move(loaded);
  std::string text;
  ASSIGN_OR_RETURN(const Json best, ReadIfThere(metrics, &text));
  run.metrics = JsonMember(best, "metrics");
  if (JsonMember(best, "step").is_number_unsigned()) run.best_step = best["step"].get<int64_t>();
  if (run.metrics.is_object()) run.names = MetricNames(text);
  if (run.loaded.has_value() && run.metrics.is_object()) {
    const TaskSpec& task = run.loaded->spec;
    const auto first = absl::c_find(run.names, task.evaluation().metric());
    if (first != run.names.end()) std::rotate(run.names.begin(), first, first + 1);
    const auto errors = run.metrics.find("errors");
    if (errors != run.metrics.end() && errors->is_array()) AddOriginals(task, &*errors);
  }
  ASSIGN_OR_RETURN(run.about, ReadIfThere(JoinPath(path, "about.json")));
  ASSIGN_OR_RETURN(run.result, ReadIfThere(JoinPath(path, "result.json")));
  ASSIGN_OR_RETURN(run.answers, ReadIfThere(JoinPath(path, kAnswersName)));
  return run;
}

}  // namespace cloze
