#include "tasks/training/trainer.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/system.h"
#include "tasks/run/trainer_state.h"
#include "tasks/training/run_result.h"

namespace cloze {
namespace {

// Returns the share of the run after which its loss should be below the entropy of the targets:
// twice the warm-up, at least a tenth and 20 steps, at most 1; 2 (never) for fewer than 20 steps.
// `total_steps`: 0 if the run is timed.
double PlateauCheckAt(const ScheduleSpec& schedule, int64_t total_steps) {
  constexpr double kMinSteps = 20;  // that the mean loss is of
  const double steps = static_cast<double>(total_steps), least = steps > 0 ? kMinSteps / steps : 0;
  const double warmup =
      schedule.warmup_steps() > 0 ? schedule.warmup_steps() / steps : schedule.warmup_share();
  if (least > 1) return 2;  // never
  return std::min(1.0, std::max({0.1, 2.0 * warmup, least}));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    const LoadedSpec& loaded, const Options& options) {
  auto trainer = std::unique_ptr<Trainer>(new Trainer(options));
  const absl::Status status = trainer->Start(loaded);
  if (status.ok()) return trainer;
  if (trainer->run_.folder.has_value()) trainer->run_.folder->Undo(ExitOf(status));
  return status;
}

absl::Status Trainer::Start(const LoadedSpec& loaded) {
  ASSIGN_OR_RETURN(const std::string checkpoint, StartRun(loaded, &run_));
  RETURN_IF_ERROR(best_.CheckMetric());
  if (!checkpoint.empty()) {
    RETURN_IF_ERROR(checkpoints_.Resume(checkpoint));
  } else if (!run_.options.fork.empty()) {
    RETURN_IF_ERROR(ForkRun(&run_));
  }
  return run_.ranks().size() == 1
             ? absl::OkStatus()
             : run_.ranks().CheckSame("the weights", run_.model->HashWeights());
}

absl::StatusOr<Trainer::Summary> Trainer::Run() {
  RETURN_IF_ERROR(Begin());
  RETURN_IF_ERROR(Loop());
  run_.progress->Finish();
  RETURN_IF_ERROR(best_.Finish());
  ASSIGN_OR_RETURN(Summary summary, Summarize());
  RETURN_IF_ERROR(run_.ranks().OnRoot([&] { return Conclude(&summary); }));
  return summary;
}

absl::Status Trainer::Conclude(Summary* summary) {
  const RunInputs& inputs = *run_.inputs;
  if (!inputs.validation.has_value() || summary->best.values.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Baselines baselines,
      MeasureBaselines(spec(), inputs.config, *inputs.tokenizer, inputs.train->store,
          inputs.validation->store, run_.options.stop));
  summary->result = DescribeResult(spec(), summary->best, baselines, summary->steps);
  const OrderedJson& result = summary->result;
  if (result.is_null()) return absl::OkStatus();
  run_.Note("result: ", result["sentence"].get<std::string>());
  if (result["warning"].is_string()) run_.Note(result["warning"].get<std::string>());
  return WriteFileAtomically(run_.folder->Path(kResultName), ToJsonText(result));
}

absl::Status Trainer::Begin() {
  const bool first = run_.ranks().first();
  const OutputSpec& output = spec().output();
  run_.progress = std::make_unique<Progress>(
      Progress::Options{.log_path = first ? run_.folder->Path(kLogName) : "",
          .events_path = first && output.tensorboard() ? run_.folder->Path(kEventsName) : "",
          .step = run_.state.step(),
          .total_steps = run_.clock->total_steps(),
          .log_every_steps = output.log_every_steps(),
          .tokens = run_.state.tokens(),
          .seconds = run_.state.seconds(),
          .fd = first ? 2 : -1});
  for (const std::string& note : run_.notes) run_.progress->Note(note);
  return run_.ranks().OnRoot([&]() -> absl::Status {
    if (!best_.keeps_spec())
      RETURN_IF_ERROR(WriteFileAtomically(run_.folder->Path(kSpecName), PrintEffective(spec())));
    RETURN_IF_ERROR(run_.inputs->task->WriteFiles(run_.inputs->config, run_.folder->directory()));
    return WriteRunInfo(run_.folder->Path("about.json"), *run_.inputs, run_.options.program);
  });
}

absl::Status Trainer::Loop() {
  Synchronize();
  run_.clock->Start(run_.state.step());
  Fetch(run_.state.next_example(), run_.clock->done(),
      {run_.state.waiting_example().begin(), run_.state.waiting_example().end()});
  while (true) {
    Synchronize();
    RETURN_IF_ERROR(Evaluate());
    best_.RetryUnsaved();
    const bool finished = run_.Finished(run_.clock->done());
    if (finished) RETURN_IF_ERROR(CheckLearned(run_.state));
    if (finished || stopped_ || run_.clock->Due(run_.save_every)) {
      RETURN_IF_ERROR(checkpoints_.Save(finished || stopped_));
      WatchSources();
    }
    if (finished) return absl::OkStatus();
    if (stopped_ && run_.saved_step == run_.state.step()) {
      return Error(Exit::kInterrupted, "stopped after ", run_.clock->Describe(run_.saved_step),
          "; run the same command again to continue");
    }
    RETURN_IF_ERROR(Step());
    const double before = run_.clock->done();
    run_.clock->Advance(run_.state.step());
    if (!run_.BetweenAverages()) run_.model->AverageRanks();
    RETURN_IF_ERROR(NoteIfNotLearning(before));
    run_.state.set_evaluation_due(run_.inputs->validation.has_value() &&
                                  (run_.clock->over() || run_.clock->Due(run_.evaluate_every)));
  }
}

void Trainer::Synchronize() {
  const RunOptions& options = run_.options;
  double now[] = {run_.ranks().first() ? options.clock() : 0,
      options.stop != nullptr && *options.stop ? 1.0 : 0.0};
  run_.ranks().Sum(absl::MakeSpan(now));
  run_.seconds = now[0], stopped_ = now[1] > 0 && !run_.BetweenAverages();
}

absl::Status Trainer::Evaluate() {
  if (!run_.state.evaluation_due() || stopped_) return absl::OkStatus();
  const auto evaluate = [&]() -> absl::Status {
    const auto average = run_.model->UseAverage();
    ASSIGN_OR_RETURN(
        const MetricResults results, run_.model->Evaluate(run_.inputs->validation->store,
                                         spec().evaluation().max_examples(), run_.options.stop));
    return best_.Add(results);
  };
  const absl::Status status = evaluate();
  if (status.ok()) {
    run_.state.set_evaluation_due(false);
    WatchSources();
    if (OutOfPatience(spec(), run_.state) && !run_.clock->over()) {
      run_.Note("no better ", run_.state.metric(), " in ", run_.state.evaluations_without_best(),
          " evaluations: the run ends after step ", run_.state.step());
    }
  }
  Synchronize();
  run_.progress->SkipTime();
  const bool failed = !status.ok() && ExitOf(status) != Exit::kInterrupted;
  return failed ? checkpoints_.SaveBefore(status) : absl::OkStatus();
}

void Trainer::Fetch(int64_t example, double done, std::vector<int64_t> waiting) {
  next_ = std::async(std::launch::async, [this, example, done, waiting = std::move(waiting)] {
    return run_.batcher->Next(example, done, waiting);
  });
}

absl::Status Trainer::Step() {
  TrainerState& state = run_.state;
  const double asked = SteadySeconds();
  const absl::StatusOr<StepData> data = next_.get();
  const double waited = SteadySeconds() - asked;
  const absl::Status read = run_.ranks().Agree(data.status());
  if (!read.ok()) return checkpoints_.SaveBefore(read);
  const double done = run_.clock->Done(state.step() + 1);
  Fetch(data->next, done, data->waiting);
  const double loss = run_.model->ForwardBackward(*data);
  if (run_.options.on_gradients != nullptr)
    run_.options.on_gradients(state.step() + 1, run_.model->gradients());
  const double rate = run_.clock->Rate(spec().optimizer().learning_rate(), state.step());
  const ModelTrainer::StepResult result = run_.model->Update(loss, rate, &state);
  state.set_next_example(data->next);
  state.mutable_waiting_example()->Assign(data->waiting.begin(), data->waiting.end());
  state.set_tokens(state.tokens() + data->tokens);
  const int64_t step = state.step();
  run_.progress->Step({.step = step,
      .loss = loss,
      .learning_rate = rate,
      .grad_norm = result.grad_norm,
      .done = run_.clock->Done(step),
      .seconds_left = run_.clock->SecondsLeft(),
      .later_batches = run_.batcher->LaterBatches(run_.clock->Done(step)),
      .tokens = data->tokens,
      .data_wait = waited,
      .skipped = !result.skipped.empty(),
      .ranks = run_.model->work()});
  if (!result.skipped.empty()) {
    run_.Note(result.skipped);
    RETURN_IF_ERROR(CheckSkipped(state));
  }
  if (run_.options.after_step != nullptr) run_.options.after_step(step);
  return absl::OkStatus();
}

absl::Status Trainer::NoteIfNotLearning(double before) {
  const double when = PlateauCheckAt(spec().schedule(), run_.clock->total_steps());
  if (before >= when || run_.clock->done() < when) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double chance, run_.inputs->task->ChanceLoss(run_.inputs->train->store));
  const std::string note = PlateauNote(run_.progress->smoothed_loss(), chance, spec(),
      run_.inputs->config.labels.size(), run_.clock->total_steps());
  if (!note.empty()) run_.Note(note);
  return absl::OkStatus();
}

void Trainer::WatchSources() {
  for (const auto* built : {&run_.inputs->train, &run_.inputs->validation}) {
    if (sources_changed_ || !built->has_value()) continue;
    const absl::Status status = CheckSources((*built)->sources);
    if (status.ok()) continue;
    sources_changed_ = true;
    run_.Note("warning: ", status.message(),
        "; this run continues with the data that it read at its start");
  }
}

absl::StatusOr<Trainer::Summary> Trainer::Summarize() const {
  const std::string& metric = run_.state.metric();
  Summary summary;
  summary.steps = run_.state.step();
  summary.loss = run_.state.last_loss();
  summary.best = best_.Results();
  if (run_.inputs->validation.has_value() && !metric.empty()) {
    ASSIGN_OR_RETURN(summary.metric, FindMetric(MetricsOf(*run_.inputs->task, spec()), metric));
  }
  return summary;
}

}  // namespace cloze
