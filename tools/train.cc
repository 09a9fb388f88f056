// `cloze pretrain` and `cloze finetune`: train a model as a spec describes.
#include <unistd.h>

#include <cstdio>

#include "tasks/reports/repeat.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/plan.h"
#include "tools/stop.h"

namespace cloze {
namespace {

struct Options {
  std::string spec, fork;
  std::vector<std::string> overrides;
  bool plan = false;
};

void ShowPreparing(absl::string_view stage, int64_t done, int64_t total) {
  if (!::isatty(2)) return;
  std::fprintf(stderr, "\r%s %3.0f %%", std::string(stage).c_str(),
      total > 0 ? 100.0 * done / total : 100.0);
  if (done >= total) std::fputs("\r\x1b[K", stderr);
}

std::string Describe(const TaskSpec& spec, const RepeatSummary& summary) {
  const RepeatSummary::Run& best = summary.runs[summary.best];
  std::string line = absl::StrCat("{\"model\": ", JsonString(spec.output().directory()),
      ", \"best_by\": ", JsonString(best.summary.metric), ", \"mean\": ", JsonNumber(summary.mean),
      ", \"deviation\": ", JsonNumber(summary.deviation), ", \"best_seed\": ", best.seed,
      ", \"values\": [");
  for (size_t i = 0; i < summary.runs.size(); ++i)
    absl::StrAppend(&line, i > 0 ? ", " : "", JsonNumber(summary.runs[i].value));
  return absl::StrCat(line, "], \"validation\": ", best.summary.best.ToJson(), "}\n");
}

absl::Status Train(const Options& options, bool pretrain) {
  ASSIGN_OR_RETURN(const LoadedSpec loaded, LoadVerifiedSpec(options.spec, options.overrides));
  const auto task = MakeTask(loaded.spec);
  if (task->pretrains() != pretrain)
    return SpecError(loaded, task->name(),
        absl::StrCat("is a task for `cloze ", pretrain ? "finetune" : "pretrain", "`"));
  const std::atomic<bool>* stop = StopOnSignals();  // saves and ends
  if (options.plan) return PrintPlan(loaded, stop);
  const Trainer::Options how = {
      .preparing = ShowPreparing, .stop = stop, .after_step = nullptr, .fork = options.fork};
  if (loaded.spec.repeat() > 1) {
    ASSIGN_OR_RETURN(const RepeatSummary repeated, TrainRepeatedly(loaded, how));
    return WriteStdout(Describe(loaded.spec, repeated));
  }
  ASSIGN_OR_RETURN(const auto trainer, Trainer::Create(loaded, how));
  ASSIGN_OR_RETURN(const Trainer::Summary summary, trainer->Run());
  std::string line = absl::StrCat("{\"model\": ", JsonString(loaded.spec.output().directory()),
      ", \"steps\": ", summary.steps, ", \"train_loss\": ", JsonNumber(summary.loss));
  if (!summary.metric.empty())
    absl::StrAppend(&line, ", \"best_by\": ", JsonString(summary.metric),
        ", \"validation\": ", summary.best.ToJson());
  return WriteStdout(line + "}\n");
}

void AddTrain(CLI::App& app, Run* run, const char* name, const char* summary, const char* example,
    bool pretrain) {
  CLI::App* command = app.add_subcommand(name, summary);
  auto options = std::make_shared<Options>();
  command
      ->add_option("spec", options->spec, "Spec file; `cloze spec explain` describes its fields.")
      ->required();
  AddSetOption(command, &options->overrides);
  command
      ->add_option("--fork", options->fork,
          "Start a new run in output.directory, at step 0, with the weights of the newest "
          "checkpoint of this run directory.")
      ->type_name("FOLDER");
  command->add_flag("--plan", options->plan,
      "Estimate memory and time, from a few real steps, without training.");
  command->footer(absl::StrCat(
      "Examples:\n  cloze ", name, " ", example, "\n  cloze ", name, " ", example, " --plan"));
  command->callback([=] { *run = [=] { return Train(*options, pretrain); }; });
}

}  // namespace

void AddPretrain(CLI::App& app, Run* run) {
  AddTrain(app, run, "pretrain",
      "Pretrain a model on unlabelled text (masked language modelling). Resumes from the newest "
      "checkpoint of the run directory, if there is one.",
      "tools/specs/pretrain_mini.textproto --set train.files=data/sentences.txt", true);
}

void AddFinetune(CLI::App& app, Run* run) {
  AddTrain(app, run, "finetune",
      "Train a model on labelled data, from a model folder or from scratch. Resumes from the "
      "newest checkpoint of the run directory, if there is one.",
      "tools/specs/sst2.textproto --set model.start_from=runs/pretrain_mini", false);
}

}  // namespace cloze
