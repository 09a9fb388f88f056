// `cloze pretrain` and `cloze finetune`: train a model as a spec describes.
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "tasks/jobs/plan.h"
#include "tasks/jobs/sweep.h"
#include "tasks/run/run_folder.h"
#include "tools/command.h"
#include "tools/model_card.h"
#include "tools/process.h"
#include "tools/ranks.h"
#include "tools/text_table.h"

namespace cloze {
namespace {

struct TrainOptions {
  std::string spec, fork, network;
  std::vector<std::string> overrides, sweeps;
  bool plan = false, json = false;
  int ranks = 1;
};

struct Row {
  std::string name, value, remark = {};
};

std::vector<Row> MemoryRows(const TaskSpec& spec, const RunPlan& plan) {
  const TrainingNeed& need = plan.memory.need;
  const bool limited = spec.runtime().memory_limit_mb() > 0;
  const ParamCount& count = plan.parameters;
  return {{"parameters", FormatCount(count.all),
              absl::StrCat(count.trained, " of ", count.all, " are trained")},
      {"weights", Megabytes(need.weights), "f32"},
      {"optimizer", Megabytes(need.optimizer), need.optimizer_parts},
      {"packed weights", Megabytes(need.packed),
          absl::StrCat("at most; copies in ", NameOf(plan.compute))},
      {"activations", Megabytes(need.activations),
          spec.runtime().recompute() ? "blocks are recomputed in backward" : ""},
      {"scratch", Megabytes(need.scratch)},
      {"other", Megabytes(need.other), "program, kernels, vocabulary, batches"},
      {"expected peak", Megabytes(need.total()),
          absl::StrCat(
              limited ? "runtime.memory_limit_mb: " : "free here: ", Megabytes(plan.memory.limit))},
      {"micro_tokens", absl::StrCat(plan.memory.micro_tokens), plan.memory.note}};
}

Row DataRow(const char* name, const DataEstimate& data) {
  const std::string share =
      data.read < data.bytes
          ? absl::StrFormat("; estimated by %.1f of %.1f MB", data.read / 1e6, data.bytes / 1e6)
          : "";
  return {name, FormatCount(data.tokens),
      absl::StrCat("tokens in ", FormatCount(data.sequences), " sequences", share)};
}

std::vector<Row> TimeRows(const RunPlan& plan, const TrainOptions& options, int repeat) {
  const Speed& speed = plan.speed;
  std::vector<Row> rows = {DataRow("training data", plan.train)};
  if (plan.validation.tokens > 0) rows.push_back(DataRow("validation data", plan.validation));
  for (const auto& [field, value, reason] : plan.settings)
    rows.push_back({field.substr(field.find('.') + 1), value, absl::StrCat("chosen: ", reason)});
  rows.push_back({"steps", FormatCount(plan.steps),
      absl::StrCat(
          FormatCount(plan.tokens), " tokens", plan.timed ? " within the time budget" : "")});
  rows.push_back({"tokens/s", FormatCount(plan.tokens_per_second),
      absl::StrFormat("measured: steps of this model on these data, passes of %d tokens, %d "
                      "threads, %s, %.1f s",
          speed.pass_tokens, Threads(), NameOf(plan.compute), speed.seconds)});
  if (options.ranks > 1) {
    rows.push_back({"ranks", absl::StrCat(options.ranks),
        absl::StrFormat("a step takes %.3g s, %.1f %% of it to communicate%s", plan.step_seconds,
            100 * plan.network_seconds / plan.step_seconds,
            options.network.empty() ? "" : absl::StrCat(" at ", options.network, "/s"))});
  }
  std::vector<std::string> remarks;
  if (plan.evaluations > 0)
    remarks.push_back(absl::StrFormat("%s of it for %.0f evaluations",
        FormatDuration(plan.evaluation_seconds), plan.evaluations));
  if (repeat > 1) remarks.push_back(absl::StrCat("each of ", repeat, " runs"));
  rows.push_back({"time to finish", FormatDuration(plan.seconds()), absl::StrJoin(remarks, "; ")});
  return rows;
}

absl::Status PrintRows(const std::vector<Row>& rows) {
  std::string text;
  for (const auto& [name, value, remark] : rows)
    absl::StrAppend(&text, absl::StrFormat("%-18s %12s", name, value), remark.empty() ? "" : "   ",
        remark, "\n");
  return WriteStdout(text);
}

OrderedJson PlanJson(const RunPlan& plan) {
  const TrainingNeed& need = plan.memory.need;
  OrderedJson json = {{"parameters", plan.parameters.all}, {"trained", plan.parameters.trained},
      {"compute", NameOf(plan.compute)}, {"micro_tokens", plan.memory.micro_tokens},
      {"memory_bytes",
          {{"weights", need.weights}, {"optimizer", need.optimizer}, {"packed", need.packed},
              {"activations", need.activations}, {"scratch", need.scratch}, {"other", need.other},
              {"total", need.total()}, {"free", plan.memory.limit}}},
      {"fits", plan.memory.fits.ok()}};
  if (!plan.memory.fits.ok()) return json;
  const auto data = [](const DataEstimate& estimate) -> OrderedJson {
    return {{"sequences", estimate.sequences}, {"tokens", estimate.tokens}};
  };
  json["train"] = data(plan.train);
  json["validation"] = data(plan.validation);
  for (const auto& [field, value, reason] : plan.settings)
    json["chosen"][field] = {{"value", OrderedJson::parse(value)}, {"reason", reason}};
  json["steps"] = plan.steps;
  json["tokens"] = plan.tokens;
  json["evaluations"] = plan.evaluations;
  json["tokens_per_second"] = plan.tokens_per_second;
  json["seconds"] = plan.seconds();
  return json;
}

// "10Gb" and "500Mb" are bits per second; "": no limit.
absl::StatusOr<double> BitsPerSecond(absl::string_view text) {
  absl::string_view number = text;
  const double unit = absl::ConsumeSuffix(&number, "Gb") ? 1e9 : 1e6;
  double value = 0;
  if (text.empty()) return value;
  if ((unit == 1e9 || absl::ConsumeSuffix(&number, "Mb")) && absl::SimpleAtod(number, &value) &&
      std::isfinite(value) && value > 0)
    return value * unit;
  return UsageError(absl::StrCat(
      "--network: \"", Quote(text), "\": expected bits per second, for example 10Gb or 500Mb"));
}

// Prints the memory and time that the run would need. Creates no run directory. kLimit, after
// printing the part about memory, if the run does not fit.
absl::Status PrintPlan(
    const LoadedSpec& loaded, const TrainOptions& options, const std::atomic<bool>* stop) {
  ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::Create());
  PlanOptions how = {.scratch = scratch.path(), .stop = stop, .ranks = options.ranks};
  ASSIGN_OR_RETURN(how.network, BitsPerSecond(options.network));
  ASSIGN_OR_RETURN(const RunPlan plan, PlanRun(loaded, how));
  if (options.json) {
    RETURN_IF_ERROR(WriteStdout(ToJsonLine(PlanJson(plan)) + "\n"));
    return plan.memory.fits;
  }
  RETURN_IF_ERROR(PrintRows(MemoryRows(loaded.spec, plan)));
  RETURN_IF_ERROR(plan.memory.fits);
  return PrintRows(TimeRows(plan, options, loaded.spec.repeat()));
}

void ShowPreparing(absl::string_view stage, int64_t done, int64_t total) {
  if (!::isatty(2)) return;
  std::fprintf(stderr, "\r%s %3.0f %%", std::string(stage).c_str(),
      total > 0 ? 100.0 * done / total : 100.0);
  if (done >= total) std::fputs("\r\x1b[K", stderr);
}

// True if the result is for a person.
bool PrintsTables(const TrainOptions& options) { return !options.json && ::isatty(1) == 1; }

// Prints tables on a terminal, else one line of JSON. `validation` may be null.
absl::Status PrintResult(
    const TrainOptions& options, const OrderedJson& json, const MetricResults* validation) {
  if (!ProgramRanks().first()) return absl::OkStatus();
  std::string line = ToJsonLine(json);
  if (!PrintsTables(options)) {
    line.pop_back();
    if (validation != nullptr) absl::StrAppend(&line, ", \"validation\": ", validation->ToJson());
    return WriteStdout(line + "}\n");
  }
  std::string text = "\n";
  if (validation != nullptr)
    text += ResultTables(OrderedJson::parse(validation->ToJson()), StyleOf(1)) + "\n";
  return WriteTables(absl::StrCat(text, line, "\n"));
}

// A row for each run, the best one in bold and named below.
std::string SweepTable(const SweepSummary& summary) {
  std::vector<std::vector<std::string>> rows = {summary.fields};
  rows[0].insert(rows[0].end(), {summary.metric.name, "steps", ""});
  for (const SweepSummary::Run& run : summary.runs) {
    rows.push_back(run.values);
    if (run.values.empty()) rows.back() = {run.folder};  // of an earlier sweep
    rows.back().resize(summary.fields.size());
    const bool best = rows.size() - 2 == static_cast<size_t>(summary.best);
    if (run.status.ok())
      rows.back().insert(
          rows.back().end(), {MetricText(run.value), absl::StrCat(run.steps), best ? "best" : ""});
    else
      rows.back().insert(rows.back().end(), {"-", "-", "failed"});
  }
  return AlignedTable(rows, StyleOf(1), summary.best + 1);
}

// Writes the model card of a finished run or, with `several`, of each of them and of the best. The
// models are there without it, so an error is a warning.
void WriteCards(const std::string& directory, const SweepSummary* several = nullptr) {
  if (!ProgramRanks().first()) return;
  absl::Status status;
  std::string best = directory;
  if (several != nullptr) {
    best = JoinPath(directory, several->runs[several->best].folder);
    for (const SweepSummary::Run& run : several->runs) {
      const std::string folder = JoinPath(directory, run.folder);
      if (run.status.ok()) status.Update(WriteModelCard(folder, folder));
    }
  }
  status.Update(WriteModelCard(directory, best));
  if (!status.ok())
    std::fprintf(stderr, "warning: no README.md: %s\n", std::string(status.message()).c_str());
}

absl::Status Sweep(
    const TrainOptions& options, const LoadedSpec& loaded, const Trainer::Options& how) {
  ASSIGN_OR_RETURN(const SweepSummary summary, TrainSweep(loaded, options.sweeps, how));
  WriteCards(loaded.spec.output().directory(), &summary);
  const SweepSummary::Run& best = summary.runs[summary.best];
  if (PrintsTables(options)) {
    return WriteTables(
        absl::StrCat("\n", SweepTable(summary), "\n", QuotePath(loaded.spec.output().directory()),
            " holds the best model, of ", QuotePath(best.folder), "\n"));
  }
  OrderedJson json = {{"model", loaded.spec.output().directory()}, {"best_by", summary.metric.name},
      {"best", best.folder}, {"runs", OrderedJson::array()}};
  for (const SweepSummary::Run& run : summary.runs) {
    OrderedJson row = {{"folder", run.folder}};
    for (size_t i = 0; i < run.values.size(); ++i) row[summary.fields[i]] = run.values[i];
    row["value"] = run.status.ok() ? OrderedJson(run.value) : OrderedJson();
    if (run.status.ok()) row["steps"] = run.steps;
    if (!run.status.ok()) row["error"] = run.status.message();
    json["runs"].push_back(std::move(row));
  }
  return PrintResult(options, json, &best.results);
}

// Adds how a new run begins with the weights of the run in `directory`, which does not fit the
// spec.
absl::Status WithForkHint(const absl::Status& status, const std::string& directory) {
  if (ExitOf(status) != Exit::kMismatch || SpecOfRun(directory).empty()) return status;
  return Error(Exit::kMismatch, status.message(), "\na new run with its weights: --fork ",
      QuotePath(directory), " --set output.directory=...");
}

absl::Status Train(const TrainOptions& options, bool pretrain) {
  ASSIGN_OR_RETURN(const LoadedSpec loaded, LoadVerifiedSpec(options.spec, options.overrides));
  const auto task = MakeTask(loaded.spec);
  if (task->pretrains() != pretrain)
    return SpecError(
        loaded, task->name(), "is a task for `cloze ", pretrain ? "finetune" : "pretrain", "`");
  Ranks& ranks = ProgramRanks();
  if (ranks.size() > 1 && (options.plan || !options.sweeps.empty() || loaded.spec.repeat() > 1))
    return UsageError("--plan, --sweep and repeat are for one rank");
  const std::atomic<bool>* stop = StopOnSignals();  // saves and ends
  if (options.plan && (!options.sweeps.empty() || !options.fork.empty()))
    return UsageError("--plan: is for one new run: expected neither --sweep nor --fork");
  if (!options.plan && (options.ranks > 1 || !options.network.empty()))
    return UsageError("--ranks and --network: expected --plan; mpirun -n gives the ranks of a run");
  if (options.ranks <= 1 && !options.network.empty()) return UsageError("--network needs --ranks");
  if (options.plan) return PrintPlan(loaded, options, stop);
  const Trainer::Options how = {.preparing = ranks.first() ? ShowPreparing : nullptr,
      .stop = stop,
      .after_step = nullptr,
      .fork = options.fork,
      .ranks = &ranks,
      .program = absl::StrCat("cloze ", Version(), " (", kCommit, ")")};
  if (!options.sweeps.empty()) return Sweep(options, loaded, how);
  OrderedJson json = {{"model", loaded.spec.output().directory()}};
  if (loaded.spec.repeat() > 1) {
    ASSIGN_OR_RETURN(const SweepSummary all, TrainRepeatedly(loaded, how));
    WriteCards(loaded.spec.output().directory(), &all);
    json.update({{"best_by", all.metric.name}, {"mean", all.mean}, {"deviation", all.deviation},
        {"best_seed", loaded.spec.seed() + all.best}});
    for (const SweepSummary::Run& run : all.runs) json["values"].push_back(run.value);
    return PrintResult(options, json, &all.runs[all.best].results);
  }
  const auto trainer = Trainer::Create(loaded, how);
  if (!trainer.ok()) return WithForkHint(trainer.status(), loaded.spec.output().directory());
  ASSIGN_OR_RETURN(const Trainer::Summary summary, (*trainer)->Run());
  WriteCards(loaded.spec.output().directory());
  json["steps"] = summary.steps;
  json["train_loss"] = summary.loss;
  if (!summary.result.is_null()) json["result"] = summary.result;
  if (summary.metric.name.empty()) return PrintResult(options, json, nullptr);
  json["best_by"] = summary.metric.name;
  return PrintResult(options, json, &summary.best);
}

void AddTrain(Command& app, const std::string& name, const std::string& help,
    const std::string& arguments, bool pretrain) {
  const auto declare = [](Command& command, TrainOptions& options) {
    command.Add("spec", &options.spec, "Spec file; `cloze spec explain` describes its fields.",
        {.required = true});
    AddSetOption(command, &options.overrides);
    command.Add("--fork", &options.fork,
        "Start a new run in output.directory, at step 0, from the weights of the newest "
        "checkpoint of the run directory FOLDER.",
        {.type = "FOLDER"});
    command.Add("--plan", &options.plan,
        "Estimate memory and time, from a few real steps, without training.");
    command.Add("--ranks", &options.ranks,
        "With --plan: number of ranks of cloze-mpi, each on a machine like this one.",
        {.min = 1, .max = 4096, .type = "N"});
    command.Add("--network", &options.network,
        "With --plan --ranks: bits per second that a rank can send, as 10Gb or 500Mb. Without: no "
        "limit.",
        {.type = "RATE"});
    command.Add("--sweep", &options.sweeps,
        "Train a run for each value of a field: --sweep optimizer.learning_rate=1e-4,2e-4. "
        "Repeatable: all combinations. Each run has a folder in output.directory, named "
        "FIELD=VALUE, and all of them stay; output.directory itself gets the best model by "
        "evaluation.metric, and sweep.json. The same command again resumes; finished runs are not "
        "trained again.",
        {.type = "FIELD=V1,V2,...", .repeatable = true});
    command.Add("--json", &options.json, "Print the result as JSON on a terminal too.");
  };
  const std::string example = absl::StrCat("  cloze ", name, " ", arguments);
  app.AddCommand<TrainOptions>(
      name, help,
      absl::StrCat(example, "\n", example, " --plan\n  cloze ", name, " ",
          arguments.substr(0, arguments.find(' ')), " --sweep optimizer.learning_rate=1e-4,5e-4"),
      declare, [=](const TrainOptions& options) { return Train(options, pretrain); },
      /*ranks=*/true);
}

}  // namespace

void AddPretrain(Command& app) {
  AddTrain(app, "pretrain",
      "Pretrain a model on unlabelled text (masked or causal language modelling). Resumes from the "
      "newest checkpoint of the run directory, if there is one.",
      "tools/specs/pretrain_mini.textproto --set train.files=data/sentences.txt", true);
}

void AddFinetune(Command& app) {
  AddTrain(app, "finetune",
      "Train a model on labelled data, from a model folder or from scratch. Resumes from the "
      "newest checkpoint of the run directory, if there is one.",
      "tools/specs/sst2.textproto --set model.start_from=runs/pretrain_mini", false);
}

}  // namespace cloze
